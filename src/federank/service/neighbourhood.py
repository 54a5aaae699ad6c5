"""A neighbourhood to visit: a federation on this machine, with virtual neighbours to keep a visitor company.

1. A synthetic city gives the catalogue, and its people the neighbours; none of them is real. Or the catalogue is of
   films that people know, and only the tastes are made up.
2. The first model is learnt in a simulation, from everybody's whole list (the page says so), so that the first visitor
   already gets sensible recommendations.
3. A server opens on a store that is gone when it ends.
4. Some of these people take part over HTTP at a leisurely pace, each sharing a third of their list and each with as few
   messages in its life as the visitor: a visitor's browser is one more device among them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from federank.data.city.city import city
from federank.data.films.films import films
from federank.data.interactions import Interactions
from federank.errors import SettingError


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
NEIGHBOURS_SHARE = {"sharing": "sticky", "pi": 0.3, "basis": "shared"}
ROUND = {"target": 8, "over_selection": 1.0, "deadline": 20.0}
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


def live(address: str, data: Interactions, people: int, *, rounds: int | None = None, rate: float | None = None) -> int:
    """Let the first people of a data set take part in the federation at this address; how often they did."""
    from federank.service.device.client import Client
    from federank.service.fleet.devices import Models
    from federank.service.fleet.frugal import virtual_devices
    from federank.service.fleet.processes import fetch_federation
    from federank.service.fleet.rehearsal import Fleet, Plan

    with Client(address) as client:
        facts, ids = fetch_federation(client)
    devices = virtual_devices(facts, ids, data, 1, NEIGHBOURS_SHARE)
    users = devices.participants[:people].tolist()
    last_version = None if rounds is None else facts.version + rounds
    plan = Plan(address=address, last_version=last_version, rate=rate)
    return asyncio.run(Fleet(plan, devices, Models(facts), users).play()).interactions


def serve_neighbourhood(
    *, world: str = "city", seed: int = 1, host: str = "127.0.0.1", port: int = 8470, say: Callable[[str], None] = print
) -> int:
    """Open a federation with neighbours and serve it until told to stop; an exit code."""
    for package in ("httptools", "httpx", "prometheus_client", "starlette", "uvicorn", "uvloop"):
        if find_spec(package) is None:
            raise SettingError(f'The service needs {package}: pip install "federank[service]".')
    from federank.recommenders.methods.frugal import Frugal
    from federank.service.server.families.squares import SQUARES
    from federank.service.server.federation.establishing import establish
    from federank.service.server.processes import Serving, bind, serve
    from federank.service.server.settings import RoundSettings, TrustSettings
    from federank.service.server.store.database import Database
    from federank.service.server.store.schema import migrate
    from federank.service.server.store.statements import put_fact

    public, admin = bind(host, port), bind("127.0.0.1", port + 1 if port else 0)
    draw, name, what, noun = WORLDS[world]
    say(f"{name}: the first model is learnt in a simulation ...")
    data = draw(seed=seed)
    trained = Frugal(seed=seed).fit(data)
    with tempfile.TemporaryDirectory(prefix="federank-neighbourhood-") as folder:
        store = f"sqlite:///{Path(folder) / 'federation.sqlite'}"
        database = Database(store)
        with database.connection() as connection:
            migrate(connection)
            settings, rounds = trained.settings, RoundSettings(**ROUND)  # type: ignore[arg-type]
            token = establish(connection, settings, data, rounds, family=SQUARES, name=name, trained=trained)
            with connection.transaction():
                put_fact(connection, "suggested_policy", NEIGHBOURS_SHARE)
                put_fact(connection, "description", DESCRIPTION.format(what=what, neighbours=NEIGHBOURS))
                put_fact(connection, "noun", noun)
        database.release()
        address = f"http://{host}:{public.getsockname()[1]}"
        say(f"Open {address} in a browser: {NEIGHBOURS} virtual neighbours take part with you.")
        say(f"Everybody, you too, sends at most {trained.settings.messages} messages; models go on for all.")
        say(f"The operator's page is http://127.0.0.1:{admin.getsockname()[1]}/admin, its token {token}")
        say("Nothing of it is kept. End it with Ctrl-C.")
        neighbours = subprocess.Popen([sys.executable, "-m", __name__, address, str(seed), world])
        trust = TrustSettings(device_rate=0, address_rate=0, enrolment_rate=0)
        try:
            return serve(Serving(store=store, trust=trust, quiet=True), public, admin)
        finally:
            neighbours.terminate()
            neighbours.wait()


def _live_on(address: str, seed: int, world: str) -> None:
    with suppress(KeyboardInterrupt):
        live(address, WORLDS[world].draw(seed=seed), NEIGHBOURS, rate=REQUESTS_A_SECOND)


if __name__ == "__main__":
    _live_on(sys.argv[1], int(sys.argv[2]), sys.argv[3])
