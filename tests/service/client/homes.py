"""Clients at home, and real servers for them: a leader in a thread, with a helper or without."""

import asyncio
import random
import sqlite3
import threading
import time
from contextlib import closing, contextmanager

from tests.commands import succeeded
from tests.pasted import free_ports
from tests.service.federations import NO_LIMITS, wait_until
from tests.service.helper.helpers import ThreadedHelper
from tests.service.server.secure.federations import establish_sums

from federank.privacy.policy import Policy
from federank.service.client import client as device
from federank.service.client.enrolment import enrol
from federank.service.client.federation import fetch_info, fetch_model
from federank.service.client.http import Client
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import ClientStore
from federank.service.server.http.app import public_app
from federank.service.server.http.listening import ConnectionLimits, bind, uvicorn_server
from federank.service.server.logs import Log
from federank.service.server.service import open_service
from federank.service.server.settings import TrustSettings

HISTORY = [1, 4, 6, 9]
"""Items of the scripted federation; the ids of its catalogue begin at 100."""
ALL_OF_IT = Policy(sharing="all", pi=1.0, basis="history")
EVERYTHING = Policy(sharing="fixed-subset", pi=1.0, basis="shared")
HISTORIES = [["item-00", "item-01", "item-02"], ["item-00", "item-03"], ["item-04", "item-05", "item-06"]]


class Home:
    """A client at home: its file, its connection, and its notes to the owner."""

    def __init__(self, federation, folder, items=HISTORY, policy=EVERYTHING, name="device", sleep=None, **more):
        self.federation, self.path, self.notes = federation, folder / f"{name}.sqlite", []
        self._sleep = sleep or (lambda _: None)
        folder.mkdir(exist_ok=True)
        profile = folder / f"me-{name}.csv"
        ids = [100 + item if isinstance(item, int) else item for item in items]
        profile.write_text("item\n" + "".join(f"{item}\n" for item in ids))
        more = {"random_bits": random.Random(1).getrandbits} | more  # the same in every run
        with self.client() as client:
            enrol(client, self.path, profile, lambda *_: ChosenPolicy(policy, "owner"), **more)

    def client(self, **more):
        usual = {"token": None, "note": self.notes.append, "sleep": self._sleep}
        return Client(self.federation.address, **(usual | more))

    def act(self, action, **more):
        """What an action makes of the client's store and connection."""
        with ClientStore(self.path) as store, self.client(token=store.identity().token, **more) as client:
            return action(store, client)

    def take_part(self, rounds=1, **more):
        return self.act(lambda store, client: device.take_part(store, client, rounds, self.notes.append), **more)

    def read(self, reader, *more):
        with ClientStore(self.path) as store:
            return reader(store, *more)

    def model(self):
        return self.read(ClientStore.model, self.read(ClientStore.identity).info)

    def run(self, *words):
        """What `federank client WORDS` prints."""
        return succeeded("client", *words, "--state", self.path).stdout

    def outcomes(self):
        """What the client knows of each of its uploads; None while it waits."""
        return [sent.outcome for sent in self.read(ClientStore.uploads)]

    def sql(self, statement, *values):
        """Run a statement on the client's file, as nothing but a fault would."""
        with closing(sqlite3.connect(self.path)) as sql, sql:
            return sql.execute(statement, values).fetchall()

    def everything(self):
        """Every row of every table, to see whether anything has changed."""
        tables = sorted(name for (name,) in self.sql("SELECT name FROM sqlite_master WHERE type = 'table'"))
        return {name: self.sql(f"SELECT * FROM {name}") for name in tables}


def secure_home(leader, folder, number=0):
    """A client of a real federation, which waits as it is told to."""
    bits = random.Random(number).getrandbits
    return Home(leader, folder, HISTORIES[number % 3], name=f"device-{number}", sleep=time.sleep, random_bits=bits)


def all_take_part(homes):
    """All of them take part in one round at the same time; how many uploads of each were stored."""
    stored = []
    threads = [threading.Thread(target=lambda home=home: stored.append(home.take_part())) for home in homes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return stored


def published(leader, version):
    """The model of a leader, once it has published a version."""
    with Client(leader.address) as client:
        wait_until(lambda: fetch_info(client).version >= version)
        return fetch_model(client, fetch_info(client))


class Leader:
    """A leader's worker with its real parts, on a port of this machine, in a thread."""

    def __init__(self, store, port=None):
        self.port = port or free_ports(1)[0]
        self.socket = bind("127.0.0.1", self.port)
        self.address = f"http://127.0.0.1:{self.port}"
        self.store, self.ready = store, threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.thread.start()
        assert self.ready.wait(600)

    async def _serve(self):
        service = open_service(self.store, TrustSettings(**NO_LIMITS), Log(None))
        await service.start()
        self.server = uvicorn_server(public_app(service), ConnectionLimits(header_timeout=10, reading_timeout=30))
        self.ready.set()
        await self.server.serve(sockets=[self.socket])
        service.selection.end()
        await service.stop()

    def stop(self):
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


@contextmanager
def leading(store, port=None):
    """A leader on an established federation."""
    leader = Leader(store, port)
    try:
        yield leader
    finally:
        leader.stop()


@contextmanager
def two_servers(folder, **given):
    """A leader and a helper of a new federation of Frugal."""
    store = f"sqlite:///{folder / 'leader.sqlite'}"
    with ThreadedHelper(folder) as helper:
        establish_sums(store, helper.origin, **given)
        with leading(store) as leader:
            yield leader, helper
