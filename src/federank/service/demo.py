"""A demo to visit: a federation on this machine, with virtual neighbours to keep a visitor company.

1. A synthetic city gives the catalogue, and its people the neighbours; none of them is real. Or the catalogue is of
   films that people know, and only the tastes are synthetic.
2. The first model is learnt in a simulation, from everyone's full list (the page says so), so that the first visitor
   already gets sensible recommendations.
3. A helper is started as a process of its own, and a server opens on a store that is gone when it ends: no single
   process reads a message. Both run on one machine, so this shows how it works and guarantees nothing; the page says
   so.
4. On a local network all of it is over https, with a certificate made at start whose fingerprint is shown, and a code
   to scan with a phone.
5. Simulated clients of other synthetic people take part over HTTP at a leisurely pace, each with as few messages as the
   visitor: a visitor's browser is one more client among them. A client that has sent its messages leaves and another
   joins, so the demo runs for as long as it is left running.
6. The process of the simulated clients is watched: when it ends it is started again, and the page says which it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from federank.data.films import film_details, films
from federank.data.interactions import Interactions
from federank.data.synthetic import city
from federank.errors import FedeRankError, SettingError, StoreAway
from federank.extras import need

if TYPE_CHECKING:
    from federank.service.simulated_clients.rehearsal import Fleet


# A process that is watched: when it ends it is started again, after a pause that grows while it keeps ending early.
#
# The process prints a word for each state that it reaches, one per line. `report` is called with every state:
#
#     starting    the process was started
#     ...         whatever the process prints
#     stopped     the process has ended, and is started again after a pause


STARTING, RUNNING, STOPPED = "starting", "running", "stopped"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a process that has ended is started again; they double each time."""
STEADY_SECONDS = 120.0
"""A process that has lived this long did not end early: the next pause is the first one again."""


class Watched:
    """A process that is started, and started again whenever it ends, until `stop`.

    `command` gets the number of starts so far. `say` is called with a sentence when the process has ended.
    """

    def __init__(
        self, command: Callable[[int], list[str]], report: Callable[[str], None], say: Callable[[str], None]
    ) -> None:
        self._command, self._report, self._say = command, report, say
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # no process is started after `stop`
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def start(self) -> None:
        """Start the process, and watch it from a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the process, and do not start it again."""
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.terminate()
        self._thread.join()

    def _watch(self) -> None:
        starts, pause = 0, FIRST_PAUSE
        while (process := self._started(starts)) is not None:
            starts, began = starts + 1, time.monotonic()
            self._report(STARTING)
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    self._report(line.strip())
            code = process.wait()
            if self._stopping.is_set():
                return
            self._report(STOPPED)
            if time.monotonic() - began >= STEADY_SECONDS:
                pause = FIRST_PAUSE
            self._say(f"ended with exit code {code}; it is started again in {pause:.0f} s.")
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _started(self, starts: int) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            # In a session of its own: Ctrl-C in the terminal is for the parent, which then ends it.
            self._process = subprocess.Popen(
                self._command(starts), stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            return self._process


# Joining from another client of the same network: an address, a code to scan, and a certificate's fingerprint.


ANY = ("0.0.0.0", "::")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def network_address(host: str) -> str:
    """The address by which others on the network find this machine, where it listens on all of its addresses."""
    if host not in ANY:
        return host
    # No packet is sent: a datagram socket that is pointed somewhere only looks up the way there.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))
            found = str(line.getsockname()[0])
        except OSError:
            found = ""
    if not found or found.startswith("127."):
        raise SettingError("This machine has no address on a network; leave --host out, or name an address.")
    return found


def certificate_fingerprint(certificate: Path) -> str:
    """SHA-256 of a certificate, as browsers show it."""
    digits = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest().upper()
    return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))


def code_rows(address: str) -> list[str]:
    """A QR code of an address: a row of 0 and 1 for each line, with its quiet edge."""
    import segno

    return ["".join("1" if dark else "0" for dark in row) for row in segno.make(address, micro=False).matrix_iter()]


def code_lines(address: str) -> str:
    """The same for a terminal, two rows a line; dark on light whatever the terminal's colours are."""
    rows = code_rows(address)
    rows += ["0" * len(rows[0])] * (len(rows) % 2)
    blocks = {"00": " ", "10": "▀", "01": "▄", "11": "█"}
    lines = [
        "".join(blocks[one + other] for one, other in zip(*rows[place : place + 2], strict=True))
        for place in range(0, len(rows), 2)
    ]
    return "\n".join(f"\x1b[30;107m{line}\x1b[0m" for line in lines)


def joining_info(address: str, certificate: Path | None) -> dict[str, Any]:
    """What the operator's page shows to anyone who wants to join."""
    return {
        "address": address,
        "fingerprint": None if certificate is None else certificate_fingerprint(certificate),
        "code": code_rows(address),
    }


def _city_users(people: int, seed: int, people_seed: int) -> Interactions:
    return city(people, checkins=40 * people, seed=seed, people_seed=people_seed)


def _film_users(people: int, _seed: int, people_seed: int) -> Interactions:
    return films(people, seed=people_seed)


class World(NamedTuple):
    """What a demo is about: who the first model is learnt from, and who takes part later."""

    draw: Callable[..., Interactions]
    draw_others: Callable[[int, int, int], Interactions]
    texts: dict[str, dict[str, Any]]
    """By language: name, description and noun. English first, which is the federation's own."""
    details: Callable[[], dict[int, dict[str, Any]]] = dict
    """Further fields of the catalogue's items."""


CLIENTS = 100
"""Simulated clients that are enrolled at a time: half of what one range of addresses may enrol at once, so that those
of a restart need not wait."""
REQUESTS_PER_SECOND = 1.0
"""How often all of them together ask for work: a round every eight seconds or so."""
PEOPLE, GENERATION_SECONDS = 1000, 3600.0
"""People who are drawn at a time, and for how long they take turns: with five messages each, 820 get theirs."""
SEEDS_PER_START = 1000
"""A process that is started again draws other people than the one before it."""
UPLOAD_PERIOD = 60.0
"""Seconds: a client of the demo uploads at most once per minute, where a real federation's usual period is a day."""
_TEXTS = {
    "en": "A demo: {what}. The first recommendations come from the complete lists of invented people, and simulated "
    "devices take part with you. Here a device sends at most once a minute; in real use it would be once a day.",
    "de": "Eine Demo: {what}. Die ersten Empfehlungen stammen aus den vollständigen Listen erfundener Menschen, und "
    "simulierte Geräte machen mit. Hier sendet ein Gerät höchstens einmal pro Minute, im Alltag wäre es einmal am Tag.",
    "it": "Una demo: {what}. I primi consigli nascono dalle liste complete di persone inventate, e con te partecipano "
    "dispositivi simulati. Qui ogni dispositivo invia al massimo una volta al minuto; di solito, una volta al giorno.",
}
RUN_BY = "whoever started this demo"


def _texts(**worlds: tuple[str, str, str, str]) -> dict[str, dict[str, Any]]:
    """Name, description and noun by language, from (name, what it is about, one item, many items)."""
    return {
        language: {
            "name": name,
            "description": _TEXTS[language].format(what=what),
            "noun": {"one": one, "many": many},
        }
        for language, (name, what, one, many) in worlds.items()
    }


SUGGESTED_SHARE = {"sharing": "fixed-subset", "pi": 0.3, "basis": "shared"}
SIMULATED_SHARE = {"sharing": "fixed-subset", "pi": 1.0, "basis": "shared"}
"""Simulated clients have nothing to keep back. If each shared a third of its list, the model would become one of
thirds: in 900 rounds its precision@10 for people whom it has not met fell from .083 to .063."""
LEAST_COHORT = 8
ROUND = {"target": LEAST_COHORT, "minimum": LEAST_COHORT, "over_selection": 1.0, "deadline": 20.0}
WORLDS = {
    "city": World(
        city,
        _city_users,
        _texts(
            en=("Around town", "an invented city, invented visitors", "place", "places"),
            de=("Unterwegs in der Stadt", "eine erfundene Stadt, erfundene Gäste", "Ort", "Orte"),
            it=("In giro per la città", "una città inventata, visitatori inventati", "luogo", "luoghi"),
        ),
    ),
    "films": World(
        films,
        _film_users,
        _texts(
            en=("Film night", "real films, an invented audience", "film", "films"),
            de=("Filmabend", "echte Filme, erfundenes Publikum", "Film", "Filme"),
            it=("Serata cinema", "film veri, pubblico inventato", "film", "film"),
        ),
        film_details,
    ),
}


def live_on(
    address: str,
    draw: Callable[[int], Interactions],
    seeds: Iterable[int],
    report: Callable[[str], None],
    ca: str | None = None,
) -> None:
    """Let simulated clients take part in the federation at this address for as long as this process runs.

    Those that have sent their messages leave, and others join. After `GENERATION_SECONDS` all leave, and `draw` draws
    other people with the next seed. `report` is called with each state (`Watched`).
    """

    async def play(fleet: Fleet) -> None:
        await fleet.enrol()
        report(RUNNING)
        await fleet.take_part()

    for seed in seeds:
        report(STARTING)
        fleet = fleet_of(
            address, draw(seed), CLIENTS, seed=seed, seconds=GENERATION_SECONDS, rate=REQUESTS_PER_SECOND, ca=ca
        )
        asyncio.run(play(fleet))


def fleet_of(
    address: str,
    data: Interactions,
    people: int,
    *,
    seed: int = 1,
    rounds: int | None = None,
    seconds: float | None = None,
    rate: float | None = None,
    ca: str | None = None,
) -> Fleet:
    """Clients of the first people of a data set; where they play for a time, the others wait for their turn."""
    from federank.service.client.http import Client
    from federank.service.client.secure import pin
    from federank.service.simulated_clients.methods import Models, Plan, SimulatedClients
    from federank.service.simulated_clients.processes import fetch_federation
    from federank.service.simulated_clients.rehearsal import Fleet

    with Client(address, ca=ca) as client:
        info, ids = fetch_federation(client)
        pinned = pin(client, info, ca) if info.is_summed else None
    clients = SimulatedClients(info, ids, data, seed, SIMULATED_SHARE)
    users = clients.participants.tolist()
    trusted = None if ca is None else ssl.create_default_context(cafile=ca)
    last_version = None if rounds is None else info.version + rounds
    plan = Plan(address=address, trusted=trusted, last_version=last_version, seconds=seconds, rate=rate)
    successors = None if seconds is None else users[people:]
    return Fleet(plan, clients, Models(info), users[:people], pinned, successors=successors)


def serve_demo(
    *, world: str = "city", seed: int = 1, host: str = "127.0.0.1", port: int = 8470, say: Callable[[str], None] = print
) -> int:
    """Open a federation with simulated clients and serve it until a signal to stop; an exit code."""
    need("service", "federank demo --serve")
    from federank.methods.registry import recommender_class
    from federank.service.local_helper import MEMORY, allows_leader, exit_on_sigterm, running_helper
    from federank.service.server.bootstrap import establish
    from federank.service.server.http.listening import self_signed
    from federank.service.server.methods import SERVER_METHODS
    from federank.service.server.processes import Serving, bind, serve
    from federank.service.server.secure_config import USUAL_CLIP, SecaggSpec
    from federank.service.server.settings import RoundSettings, TrustSettings
    from federank.service.server.store.database import Database
    from federank.service.server.store.queries import put_value
    from federank.service.server.store.schema import create_tables

    shown = network_address(host)
    public, admin = bind(shown, port), bind("127.0.0.1", port + 1 if port else 0)
    draw, _, texts, details = WORLDS[world]
    texts = dict(texts)
    own = texts.pop("en")
    say(f"{own['name']}: the first model is learnt in a simulation ...")
    data = draw(seed=seed)
    trained = recommender_class("frugal")(seed=seed, clip=USUAL_CLIP).fit(data)
    with exit_on_sigterm(), ExitStack() as open_ones:
        folder = open_ones.enter_context(tempfile.TemporaryDirectory(prefix="federank-demo-"))
        certificate, key = (None, None) if shown in LOOPBACK else self_signed(Path(folder), (shown, *LOOPBACK))
        helper, helper_store = None, Path(folder) / "helper.sqlite"
        if MEMORY.is_dir():
            keys = open_ones.enter_context(tempfile.TemporaryDirectory(prefix="federank-demo-", dir=MEMORY))
            helper = open_ones.enter_context(
                running_helper(helper_store, host=shown, certificate=certificate, key=key, keys=keys)
            )
        authority = None if certificate is None else certificate.read_text()
        # So few people cannot have noise and recommendations both: there is none, and the page claims no figure for it.
        spec = (
            None
            if helper is None
            else SecaggSpec(
                helper=helper,
                sigma=0.0,
                least_cohort=LEAST_COHORT,
                authority=authority,
                allow=allows_leader(helper_store),
            )
        )
        store = f"sqlite:///{Path(folder) / 'federation.sqlite'}"
        database = Database(store)
        with database.connection() as connection:
            create_tables(connection)
            served, rounds = SERVER_METHODS["frugal"], RoundSettings(**ROUND)  # type: ignore[arg-type]
            token = establish(
                connection,
                served.kind.made({"seed": seed, "clip": USUAL_CLIP, "messages": trained.settings.messages}),
                data,
                rounds,
                served=served,
                name=own["name"],
                trained=trained,
                sums=spec,
                details=details(),
            )
            with connection.transaction():
                put_value(connection, "suggested_policy", SUGGESTED_SHARE)
                put_value(connection, "description", own["description"])
                put_value(connection, "noun", own["noun"])
                put_value(connection, "language", "en")
                put_value(connection, "translations", texts)
                put_value(connection, "upload_period", UPLOAD_PERIOD)
                put_value(connection, "run_by", RUN_BY)
        database.release()
        scheme = "http" if certificate is None else "https"
        address = f"{scheme}://{shown}:{public.getsockname()[1]}"
        say(f"Open {address} in a browser. {CLIENTS} simulated clients are started, to take part with you.")
        if certificate is not None:
            with database.connection() as connection, connection.transaction():
                put_value(connection, "joining", joining_info(address, certificate))
            database.release()
            say(code_lines(address))
            say("A phone on the same network can scan it. The browser warns of a certificate that it does not know;")
            say(f"go on if it shows this fingerprint (SHA-256): {certificate_fingerprint(certificate)}")
        else:
            say("For phones on the same network, with a code to scan: --host 0.0.0.0, or make visit HOST=0.0.0.0.")
        say(f"Everyone, you too, sends at most {trained.settings.messages} messages; models go on for all.")
        say(f"The operator's page is {scheme}://127.0.0.1:{admin.getsockname()[1]}/admin, its token {token}")
        if helper is None:
            say(
                f"There is no folder of memory ({MEMORY}) for a helper's keys: this server reads messages, and says so."
            )
        else:
            say(f"Messages are split between this server and a helper, another process here ({helper}).")
        say("Nothing of it is kept. End it with Ctrl-C.")
        known = [] if certificate is None else [str(certificate)]

        def command(starts: int) -> list[str]:
            return [sys.executable, "-m", __name__, address, world, str(seed), str(starts), *known]

        def report(state: str) -> None:
            with suppress(StoreAway), database.connection() as connection, connection.transaction():
                put_value(connection, "simulated", {"state": state, "clients": CLIENTS})

        company = Watched(command, report, lambda what: say(f"The process of the simulated clients {what}"))
        company.start()
        try:
            # All clients of the demo have one address, and anyone may visit. Every other limit is the default.
            trust = TrustSettings(enrolment_rate=0, invited_only=False)
            serving = Serving(store=store, trust=trust, quiet=True, certificate=certificate, key=key)
            return serve(serving, public, admin)
        finally:
            company.stop()


def _main(address: str, world: str, seed: str, starts: str, ca: str | None = None) -> int:
    """The process of the simulated clients; an exit code."""
    first = (int(seed) + 1 + SEEDS_PER_START * int(starts)) % 2**31

    def draw(people_seed: int) -> Interactions:
        return WORLDS[world].draw_others(PEOPLE, int(seed), people_seed)

    def report(state: str) -> None:
        sys.stdout.write(f"{state}\n")
        sys.stdout.flush()

    try:
        live_on(address, draw, itertools.count(first), report, ca)
    except FedeRankError as fault:
        sys.stderr.write(f"federank: {fault}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
