"""A real server for the page's tests: `python -m tests.service.web.server FOLDER '{"people": 60, ...}'`.

It founds a federation on a small synthetic city (or on synthetic items), binds free ports, prints one line of JSON with
its addresses and the operator's token, and serves until it is told to stop.
"""

import json
import sys
from pathlib import Path

from federank.data.films import films
from federank.data.interactions import Interactions
from federank.data.synthetic import city
from federank.methods.fpl.recommender import FPL
from federank.methods.frugal.recommender import Frugal
from federank.service.demo import joining_info
from federank.service.server.bootstrap import establish
from federank.service.server.http import app
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.processes import Serving, bind, serve
from federank.service.server.secure_config import SecaggSpec
from federank.service.server.settings import RoundSettings, TrustSettings
from federank.service.server.store.database import Database
from federank.service.server.store.queries import put_value
from federank.service.server.store.schema import create_tables


def world(options):
    """The catalogue: a small city, films that people know, or this many items with these titles."""
    if "films" in options:
        return films(options["films"])
    if "made_up" in options:
        items = range(options["made_up"])
        titles = {item: f"Synthetic place number {item}" for item in items}
        categories = {item: [f"Kind {item % 20}"] for item in items}
        return Interactions.from_columns([0] * len(items), list(items), titles=titles, categories=categories)
    if "opinions" in options:
        items = list(range(options["opinions"]))
        titles = {item: f"Film number {item}" for item in items}
        return Interactions.from_columns(
            [0] * len(items), items, [1.0 + 4 * (item % 2) for item in items], titles=titles
        )
    if "titles" in options:
        titles = dict(enumerate(options["titles"]))
        return Interactions.from_columns([0] * len(titles), list(titles), titles=titles)
    return city(options.get("people", 60), options.get("places", 150), options.get("checkins", 1200))


def learnt(method, settings, data):
    """A first model that has learnt from people."""
    if method == "fpl":
        return FPL(factors=settings.factors, epochs=60).fit(data)
    return Frugal(min_support=1, factors=settings.factors, messages=settings.messages).fit(data)


def main(folder, options):
    store = f"sqlite:///{Path(folder) / 'federation.db'}"
    database = Database(store)
    with database.connection() as connection:
        create_tables(connection)
        served = SERVER_METHODS[options.get("method", "fpl")]
        first = {
            "fpl": {"factors": 8, "triples": 12},
            "frugal": {"factors": 8, "messages": 3, "min_support": 1},
            "pmf": {"factors": 4, "initial_range": 1.0, "learning_rate": 0.4, "decay": 0.95},
        }[served.name]
        settings = served.kind(**(first | options.get("settings", {})))
        rounds = RoundSettings(**({"target": 1, "deadline": 5.0} | served.rounds | options.get("rounds", {})))
        data = world(options)
        trained = learnt(served.name, settings, data) if options.get("learnt") else None
        name = options.get("name", "Testville")
        sums = SecaggSpec(**options["sums"]) if "sums" in options else None
        token = establish(connection, settings, data, rounds, served=served, name=name, trained=trained, sums=sums)
        for fact in ("noun", "description", "seen", "run_by"):
            if fact in options:
                put_value(connection, fact, options[fact])
        with connection.transaction():
            put_value(connection, "suggested_policy", options.get("suggested_policy"))
    if "page" in options:
        app.PAGE = Path(options["page"])
    public, admin = bind("127.0.0.1", options["port"]), bind("127.0.0.1", 0)
    addresses = {
        name: f"http://127.0.0.1:{bound.getsockname()[1]}" for name, bound in (("public", public), ("admin", admin))
    }
    if options.get("joining"):
        with database.connection() as connection, connection.transaction():
            put_value(connection, "joining", joining_info(addresses["public"], None))
    print(json.dumps(addresses | {"token": token}), flush=True)  # noqa: T201
    trust = TrustSettings(
        client_rate=0, address_rate=0, enrolment_rate=0, keep_updates="sums" not in options, invited_only=False
    )
    return serve(Serving(store=store, trust=trust, quiet=True), public, admin)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
