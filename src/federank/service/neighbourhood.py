"""A neighbourhood to visit: a federation on this machine, with virtual neighbours to keep a visitor company.

1. A synthetic city gives the catalogue, and its people the neighbours; none of them is real. Or the catalogue is of
   films that people know, and only the tastes are made up.
2. The first model is learnt in a simulation, from everybody's whole list (the page says so), so that the first visitor
   already gets sensible recommendations.
3. A helper is started as a process of its own, and a server opens on a store that is gone when it ends: no single
   process reads a message. Both run on one machine, so this shows how it works and promises nothing; the page says so.
4. On a local network all of it is over https, with a certificate made at start whose fingerprint is shown, and a code
   to scan with a phone.
5. Some of these people take part over HTTP at a leisurely pace, each sharing a third of their list and each with as few
   messages in its life as the visitor: a visitor's browser is one more device among them.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from federank.data.city.city import city
from federank.data.films.films import films
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.service.joining import LOOPBACK, certificate_fingerprint, code_lines, joining_facts, network_address


class World(NamedTuple):
    """What a neighbourhood is about."""

    draw: Callable[..., Interactions]
    name: str
    what: str
    noun: dict[str, str]


NEIGHBOURS = 400
"""So many, because each has a handful of messages: together they last for a quarter of an hour."""
DESCRIPTION = (
    "{what} The first model was learnt from the whole lists of made-up people, before you came; since then "
    "{neighbours} of them take part with a few messages each, made from a third of their lists, as is suggested to you."
)
RUN_BY = "whoever started this demonstration"
NEIGHBOURS_SHARE = {"sharing": "sticky", "pi": 0.3, "basis": "shared"}
LEAST_COHORT = 8
MEMORY = Path("/dev/shm")
ROUND = {"target": LEAST_COHORT, "minimum": LEAST_COHORT, "over_selection": 1.0, "deadline": 20.0}
WORLDS = {
    "city": World(city, "A city and its neighbours", "A made-up city.", {"one": "place", "many": "places"}),
    "films": World(
        films,
        "Films and neighbours",
        "Films that people know; who likes them is made up.",
        {"one": "film", "many": "films"},
    ),
}
REQUESTS_A_SECOND = 2.0
"""How often the neighbours ask for work, all together: a round every four seconds or so."""


def live(
    address: str,
    data: Interactions,
    people: int,
    *,
    rounds: int | None = None,
    rate: float | None = None,
    ca: str | None = None,
) -> int:
    """Let the first people of a data set take part in the federation at this address; how often they did."""
    from federank.service.device.requests.client import Client
    from federank.service.device.requests.sums import pin
    from federank.service.fleet.devices import Models
    from federank.service.fleet.frugal import virtual_devices
    from federank.service.fleet.processes import fetch_federation
    from federank.service.fleet.rehearsal import Fleet, Plan

    with Client(address, ca=ca) as client:
        facts, ids = fetch_federation(client)
    devices = virtual_devices(facts, ids, data, 1, NEIGHBOURS_SHARE)
    users = devices.participants[:people].tolist()
    with Client(address, ca=ca) as client:
        pinned = pin(client, facts, ca) if facts.is_summed else None
    trusted = None if ca is None else ssl.create_default_context(cafile=ca)
    last_version = None if rounds is None else facts.version + rounds
    plan = Plan(address=address, trusted=trusted, last_version=last_version, rate=rate)
    return asyncio.run(Fleet(plan, devices, Models(facts), users, pinned).play()).interactions


def serve_neighbourhood(
    *, world: str = "city", seed: int = 1, host: str = "127.0.0.1", port: int = 8470, say: Callable[[str], None] = print
) -> int:
    """Open a federation with neighbours and serve it until told to stop; an exit code."""
    for package in ("httptools", "httpx", "prometheus_client", "segno", "starlette", "uvicorn", "uvloop"):
        if find_spec(package) is None:
            raise SettingError(f'The service needs {package}: pip install "federank[service]".')
    from federank.recommenders.methods.frugal import Frugal
    from federank.service.server.families.squares import SQUARES
    from federank.service.server.federation.establishing import establish
    from federank.service.server.http.tls import self_signed
    from federank.service.server.processes import Serving, bind, serve
    from federank.service.server.settings import RoundSettings, TrustSettings
    from federank.service.server.store.database import Database
    from federank.service.server.store.schema import migrate
    from federank.service.server.store.statements.facts import put_fact
    from federank.service.server.sums.agreeing import USUAL_CLIP, SumsDemand

    shown = network_address(host)
    public, admin = bind(shown, port), bind("127.0.0.1", port + 1 if port else 0)
    draw, name, what, noun = WORLDS[world]
    say(f"{name}: the first model is learnt in a simulation ...")
    data = draw(seed=seed)
    trained = Frugal(seed=seed, clip=USUAL_CLIP).fit(data)
    with ExitStack() as open_ones:
        folder = open_ones.enter_context(tempfile.TemporaryDirectory(prefix="federank-neighbourhood-"))
        certificate, key = (None, None) if shown in LOOPBACK else self_signed(Path(folder), (shown, *LOOPBACK))
        helper = open_ones.enter_context(helper_beside(Path(folder), shown, certificate, key))
        authority = None if certificate is None else certificate.read_text()
        # So few people cannot have noise and recommendations both: there is none, and the page claims no figure for it.
        demand = (
            None
            if helper is None
            else SumsDemand(helper=helper, sigma=0.0, least_cohort=LEAST_COHORT, authority=authority)
        )
        store = f"sqlite:///{Path(folder) / 'federation.sqlite'}"
        database = Database(store)
        with database.connection() as connection:
            migrate(connection)
            settings, rounds = trained.settings, RoundSettings(**ROUND)  # type: ignore[arg-type]
            token = establish(
                connection, settings, data, rounds, family=SQUARES, name=name, trained=trained, sums=demand
            )
            with connection.transaction():
                put_fact(connection, "suggested_policy", NEIGHBOURS_SHARE)
                put_fact(connection, "description", DESCRIPTION.format(what=what, neighbours=NEIGHBOURS))
                put_fact(connection, "noun", noun)
                put_fact(connection, "run_by", RUN_BY)
        database.release()
        scheme = "http" if certificate is None else "https"
        address = f"{scheme}://{shown}:{public.getsockname()[1]}"
        say(f"Open {address} in a browser: {NEIGHBOURS} virtual neighbours take part with you.")
        if certificate is not None:
            with database.connection() as connection, connection.transaction():
                put_fact(connection, "joining", joining_facts(address, certificate))
            database.release()
            say(code_lines(address))
            say("A phone on the same network can scan it. The browser warns of a certificate that it does not know;")
            say(f"go on if it shows this fingerprint (SHA-256): {certificate_fingerprint(certificate)}")
        else:
            say("For phones on the same network, with a code to scan: --host 0.0.0.0, or make visit HOST=0.0.0.0.")
        say(f"Everybody, you too, sends at most {trained.settings.messages} messages; models go on for all.")
        say(f"The operator's page is {scheme}://127.0.0.1:{admin.getsockname()[1]}/admin, its token {token}")
        if helper is None:
            say(
                f"There is no folder of memory ({MEMORY}) for a helper's keys: this server reads messages, and says so."
            )
        else:
            say(f"Messages are split between this server and a helper, another process here ({helper}).")
        say("Nothing of it is kept. End it with Ctrl-C.")
        known = [] if certificate is None else [str(certificate)]
        neighbours = subprocess.Popen([sys.executable, "-m", __name__, address, str(seed), world, *known])
        trust = TrustSettings(device_rate=0, address_rate=0, enrolment_rate=0)
        try:
            serving = Serving(store=store, trust=trust, quiet=True, certificate=certificate, key=key)
            return serve(serving, public, admin)
        finally:
            neighbours.terminate()
            neighbours.wait()


@contextmanager
def helper_beside(
    folder: Path, host: str = "127.0.0.1", certificate: Path | None = None, key: Path | None = None
) -> Iterator[str | None]:
    """A helper as a process on a free port of this machine, while the block runs; its address.

    The keys of its rounds are in memory, and gone with it; where there is no such memory there is no helper (None).
    """
    if not MEMORY.is_dir():
        yield None
        return
    command = [sys.executable, "-m", "federank", "helper", "--host", host, "--port", "0"]
    command += ["--quiet", "--address-rate", "0"]
    if certificate is not None:
        command += ["--tls-cert", str(certificate), "--tls-key", str(key)]
    with tempfile.TemporaryDirectory(prefix="federank-neighbourhood-", dir=MEMORY) as keys:
        command += ["--store", str(folder / "helper.sqlite"), "--keys", keys]
        # Ctrl-C is for the leader, which still needs its helper while it ends.
        helper = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            assert helper.stdout is not None
            words = helper.stdout.readline().split()
            if len(words) != 2:
                raise SettingError("The helper could not be started; what it said stands above.")
            yield words[1]
        finally:
            helper.terminate()
            helper.wait()
            if helper.stdout is not None:
                helper.stdout.close()


def _live_on(address: str, seed: int, world: str, ca: str | None = None) -> None:
    with suppress(KeyboardInterrupt):
        live(address, WORLDS[world].draw(seed=seed), NEIGHBOURS, rate=REQUESTS_A_SECOND, ca=ca)


if __name__ == "__main__":
    _live_on(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
