"""Small federations for tests: established in a store, served in this process or in one of their own, with clients.

`serving(...)` runs a worker's real parts in this process, with requests handed to its application directly.
`Served` starts `federank serve` as a process on free ports.
"""

import asyncio
import inspect
import json
import os
import signal
import time
from contextlib import asynccontextmanager, contextmanager

import httpx
import numpy as np
from safetensors.numpy import load
from tests.commands import serve_words, started
from tests.pasted import free_ports
from tests.worlds import decode_update

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.federation.wire import encode
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate
from federank.service.server.bootstrap import establish
from federank.service.server.config import read_config
from federank.service.server.http.app import admin_app, public_app
from federank.service.server.logs import Log
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.service import open_service
from federank.service.server.settings import RoundSettings, TrustSettings
from federank.service.server.store.database import Database
from federank.service.server.store.schema import create_tables
from federank.service.server.store.versions import newest_model

ITEMS, FACTORS, TRIPLES = 12, 3, 4
FPL_SERVER, FRUGAL_SERVER = SERVER_METHODS["fpl"], SERVER_METHODS["frugal"]
TENSORS = {"Content-Type": "application/octet-stream"}
WAITS = 10**6
"""How often a test looks whether what it waits for has come: without end, as the runner ends a test that hangs."""
KEEP = {"keep_updates": True}
PATIENT = {"deadline": 600.0}
ONE = {"target": 1} | PATIENT
"""Rounds that end with their first upload, and no earlier."""
NO_LIMITS = {
    "client_rate": 0,
    "address_rate": 0,
    "enrolment_rate": 0,
    "range_rate": 0,
    "address_connections": 0,
    "invited_only": False,
    # Tests send what they like, and compare the model with the plain sum; test_defences.py has the defences on.
    "refuse_implausible": False,
    "row_quantile": 1.0,
    "move_quantile": 1.0,
}


async def eventually(holds, pause=0.02):
    """Wait until a function, or a coroutine function, returns something true; that value."""
    for _ in range(WAITS):
        value = holds()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await asyncio.sleep(pause)
    raise AssertionError("what was waited for has not happened")


def wait_until(holds, pause=0.05):
    """Wait until a function returns something true; that value."""
    for _ in range(WAITS):
        if value := holds():
            return value
        time.sleep(pause)
    raise AssertionError("what was waited for has not happened")


def refusal(answer):
    """The status of an answer that refuses, and its code."""
    return answer.status_code, answer.json()["error"]


def same_bits(one, other):
    """Whether two arrays of 32-bit floats are the same to the last bit."""
    return np.array_equal(one.view(np.uint32), other.view(np.uint32))


def small_world():
    """Twelve items with titles and categories, and two users whose names must not be in any store."""
    items = [f"item-{number:02d}" for number in range(ITEMS)]
    titles = {item: f"Place {item}" for item in items}
    categories = {item: ["Museum" if place % 2 else "Café"] for place, item in enumerate(items)}
    users = ["somebody-one"] * 6 + ["somebody-two"] * 6
    return Interactions.from_columns(users, items, titles=titles, categories=categories, name="Testville")


@contextmanager
def opened(address):
    """A connection to a store."""
    database = Database(address)
    try:
        with database.connection() as connection:
            yield connection
    finally:
        database.close()


def establish_in(address, settings, served, rounds=None, data=None, **more):
    """Establish a federation in a store; the operator's token."""
    with opened(address) as connection:
        create_tables(connection)
        chosen = RoundSettings(**(rounds or {}))
        return establish(connection, settings, data or small_world(), chosen, served=served, **more)


def establish_small(address, rounds=None, data=None, **settings):
    """Establish a small federation of FPL in a store; the operator's token."""
    chosen = FPL(**({"factors": FACTORS, "triples": TRIPLES, "learning_rate": 0.5} | settings))
    return establish_in(address, chosen, FPL_SERVER, rounds, data)


def newest(address):
    """The newest model that a store has."""
    with opened(address) as connection:
        return newest_model(connection)


def some_update(seed, rows=3, items=ITEMS, factors=FACTORS):
    """An Update of random rows."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(items, rows, replace=False)).astype(np.int32)
    biases = np.clip(rng.normal(size=rows), -1, 1) / 2
    biases -= max(0.0, biases.mean())  # what a pair gives one item it takes from another
    return FPLUpdate(chosen, rng.normal(size=(rows, factors)).astype(np.float32), biases.astype(np.float32))


class Device:
    """A device that does what a test says."""

    def __init__(self, client, enrolment):
        self.client, self.name, self.token = client, enrolment["client"], enrolment["token"]
        self.headers = {"Authorization": f"Bearer {self.token}"}

    @classmethod
    async def enrolled(cls, client):
        answer = await client.post("/api/v1/clients", json={})
        assert answer.status_code == 201, answer.text
        return cls(client, answer.json())

    async def work(self, wait=5):
        return await self.client.get(f"/api/v1/work?wait={wait}", headers=self.headers)

    async def ticket(self):
        for _ in range(12):  # as devices do: nothing to do for now, so ask again
            answer = await self.work()
            if answer.status_code != 204:
                break
        assert answer.status_code == 200, answer.status_code
        return answer.json()["ticket"]

    async def task(self, ticket, have=None):
        query = "" if have is None else f"?have={have}"
        return await self.client.get(f"/api/v1/tasks/{ticket}{query}", headers=self.headers)

    async def send(self, ticket, body, **headers):
        content = encode(body) if isinstance(body, FPLUpdate) else body
        place = f"/api/v1/tasks/{ticket}/update"
        return await self.client.post(place, content=content, headers=self.headers | TENSORS | headers)

    async def take_part(self, update):
        """One complete interaction; the answer to the upload."""
        ticket = await self.ticket()
        task = await self.task(ticket)
        assert task.status_code in (200, 410), task.text
        return await self.send(ticket, update)

    async def upload(self, update):
        """One complete interaction, whose upload is stored."""
        answer = await self.take_part(update)
        assert answer.status_code == 201, answer.text

    async def leave(self):
        return await self.client.delete("/api/v1/clients/me", headers=self.headers)


async def persistent_life(address, seed):
    """A device on a bad network: it takes part in one round, trying again whatever fails; 1 when it has a receipt."""
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        device = ticket = None
        while True:
            try:
                if device is None:
                    device = await Device.enrolled(client)
                if ticket is None:
                    answer = await device.work(wait=5)
                    ticket = answer.json()["ticket"] if answer.status_code == 200 else None
                    continue
                assert (await device.task(ticket)).status_code in (200, 410)
                answer = await device.send(ticket, some_update(seed))
                if answer.status_code >= 400 and answer.json()["error"] == "late":
                    ticket = None  # it took so long that someone else was asked instead
                    continue
                assert answer.status_code in (200, 201), answer.text
                return 1
            except httpx.TransportError:
                await asyncio.sleep(0.05)


class Running:
    """A worker in this process."""

    def __init__(self, service, token, public, admin):
        self.service, self.token, self.client, self.admin = service, token, public, admin
        self.operator = {"Authorization": f"Bearer {token}"}

    async def device(self):
        return await Device.enrolled(self.client)

    async def devices(self, count):
        return [await self.device() for _ in range(count)]

    async def upload(self, *updates):
        """Each update from a new device."""
        for update in updates:
            await (await self.device()).upload(update)

    async def play(self, rounds=1, seed=0):
        """Rounds of one upload, all from one new device."""
        device = await self.device()
        for number in range(rounds):
            before = self.service.latest.model.version
            await device.upload(some_update(seed + number))
            await self.version(before + 1)
        return device

    async def get(self, path, **values):
        """A public answer's content."""
        return (await self.client.get(f"/api/v1/{path}", **values)).json()

    async def ask(self, method, path, **values):
        """The operator's request: status and content of the answer."""
        answer = await self.admin.request(method, f"/admin/api/v1/{path}", headers=self.operator, **values)
        return answer.status_code, answer.json()

    async def begin_season(self, **spec):
        """Begin another season; what it is, once this worker follows it."""
        status, begun = await self.ask("POST", "seasons", json=spec)
        assert status == 201, begun
        await self.until(lambda _: self.service.config.season.number == begun["number"])
        return begun

    async def invitations(self, count):
        status, told = await self.ask("POST", "invitations", json={"count": count})
        assert status == 200, told
        return told["invitations"]

    async def overview(self):
        return (await self.ask("GET", "overview"))[1]

    async def log(self):
        return (await self.ask("GET", "log"))[1]

    async def metrics(self):
        return (await self.admin.get("/metrics")).text

    async def until(self, condition):
        """Wait until the worker's view is such."""
        return await eventually(lambda: condition(self.service.latest), 0.01)

    async def version(self, number):
        return await self.until(lambda view: view.model.version >= number)

    async def open_round(self, number=0):
        return await self.until(lambda view: view.round and view.round.number == number and view.round.state == "open")


@asynccontextmanager
async def serving(address, rounds=None, trust=None, log=None, token=None, data=None, **settings):
    """A worker on a store, in which a federation is established if there is none."""
    token = establish_small(address, rounds, data, **settings) or token
    service = open_service(address, TrustSettings(**(NO_LIMITS | (trust or {}))), log or Log(None))
    await service.start()
    public = httpx.AsyncClient(transport=httpx.ASGITransport(public_app(service)), base_url="http://test", timeout=60)
    admin = httpx.AsyncClient(transport=httpx.ASGITransport(admin_app(service)), base_url="http://test", timeout=60)
    try:
        async with public, admin:
            yield Running(service, token, public, admin)
    finally:
        await service.stop()


def rows_sent(content):
    """The items of the small federation whose rows a server sent."""
    return wire.decode_rows(FPLModel, FPL(n_items=ITEMS, factors=FACTORS), content).items.tolist()


def stored(address, query, *values):
    """What the store holds."""
    with opened(address) as connection:
        return connection.all(query, *values)


def recomputed(address):
    """The newest vectors and biases, from the store alone: its first version, the uploads of every aggregated round in
    the order of their digests, summed in float32 and multiplied by the learning rate; and rollbacks by its log.
    """
    with opened(address) as connection:
        config, last = read_config(connection), newest_model(connection).version
        rate = np.float32(config.settings.learning_rate)
        first = load(bytes(connection.one("SELECT body FROM versions WHERE version = 0")[0]))
        aggregated = iter(connection.all("SELECT number FROM rounds WHERE state = 'aggregated' ORDER BY number"))
        details = connection.all("SELECT detail FROM actions WHERE action = 'rollback' ORDER BY number")
        rollbacks = {done["as_version"]: done["to"] for done in (json.loads(detail) for (detail,) in details)}
        models = [(first["vectors"], first["biases"])]
        for version in range(1, last + 1):
            if version in rollbacks:
                models.append(models[rollbacks[version]])
                continue
            [number] = next(aggregated)
            vectors, biases = models[-1]
            sums = np.zeros_like(vectors), np.zeros_like(biases)
            for (body,) in connection.all("SELECT body FROM uploads WHERE round = ? ORDER BY digest", number):
                update = decode_update(bytes(body), config.settings.factors, config.n_items)
                sums[0][update.items] += update.vectors
                sums[1][update.items] += update.biases
            models.append((vectors + rate * sums[0], biases + rate * sums[1]))
        assert next(aggregated, None) is None, "every aggregated round has made a version"
    return models[-1]


def assert_recomputed(address, model=None):
    """A model, or the newest one of a store, is what the store's uploads give, to the last bit."""
    model, (vectors, biases) = model or newest(address), recomputed(address)
    assert same_bits(model.vectors, vectors)
    assert same_bits(model.content.tables["biases"], biases)


class Served:
    """`federank serve` as a process; of FPL where no method is named."""

    def __init__(self, store, *flags, folder):
        self.store, self.flags, self.folder = store, flags, folder
        if "--method" not in flags:
            self.flags = ("--method", "fpl", *flags)
        self.token = None
        self._ports = tuple(map(str, free_ports(2)))  # the same ones after a restart, as clients know no others
        self.start()

    def start(self):
        ports = ("--port", self._ports[0], "--admin-port", self._ports[1])
        words = serve_words("--store", self.store, *self.flags, *ports)
        self.log = (self.folder / "server.log").open("ab")
        self.process = started(*words, cwd=self.folder, stderr=self.log)
        told = {}
        while "store" not in told:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"exit code {self.stop()}: {(self.folder / 'server.log').read_text()}")
            name, _, value = line.strip().partition("  ")
            told[name.strip()] = value.strip()
        if "admin token" in told:
            self.token = told["admin token"].split()[0]
        self.address = told["federation"]
        self.admin_address = told["operator"].removesuffix("/admin")

    def client(self, **values):
        return httpx.Client(base_url=self.address, timeout=30, **values)

    def kill(self):
        """As a crash would: no chance to tidy up."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self._close()
        return self.process.returncode

    def _close(self):
        self.process.stdout.close()
        self.log.close()

    def lines(self):
        return [json.loads(line) for line in (self.folder / "server.log").read_text().splitlines() if line[:1] == "{"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def until_ready(self, client=None):
        with client or self.client() as asking:
            wait_until(lambda: _is_ready(asking))
        return self


def _is_ready(client):
    try:
        return client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False
