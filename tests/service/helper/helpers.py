"""Second servers for tests: in this process or in one of their own, asked by a leader that signs its requests."""

import asyncio
import re
import signal
import subprocess
import tempfile
import threading
from contextlib import asynccontextmanager, contextmanager

import httpx
import numpy as np
from tests.commands import started
from tests.pasted import free_ports
from tests.secagg.worlds import LEADER, LENGTH, MODEL, STAGE, messages, secagg_config, uploads

from federank.secagg.exchange import SIGNATURE_HEADER, Terms, encode_reports, sign_request
from federank.secagg.keys import public_key_of
from federank.secagg.round_config import read_offer
from federank.secagg.upload import report_of
from federank.service.helper.api import HelperApp
from federank.service.helper.rounds import HelperSettings
from federank.service.helper.service import open_helper
from federank.service.server.http.listening import ConnectionLimits, bind, uvicorn_server
from federank.service.server.logs import Log

ORIGIN = "https://helper.example"
OPEN_TO_ALL = {"address_rate": 0, "any_leader": True}
"""Tests of rounds begin with no formalities; test_allowed_leaders.py has those."""


def terms(**changes):
    usual = {"version": 4, "model": MODEL.hex(), "length": LENGTH, "stage": STAGE, "seconds": 600}
    return Terms(**(usual | changes))


class Leader:
    """A leader that asks what a test wants, and signs it."""

    def __init__(self, client, key, private=LEADER, **changes):
        self.client, self.private, self.key = client, private, key
        about = {"helper_key": key.hex(), "leader_key": public_key_of(private).hex(), "helper_origin": ORIGIN}
        self.config = secagg_config(**(about | changes))

    @classmethod
    async def of(cls, client, **changes):
        told = (await client.get("/identity")).json()
        changes = {"helper_origin": told["origin"]} | changes
        leader = cls(client, bytes.fromhex(told["key"]), **changes)
        answer = await leader.post("/federations", leader.config.to_bytes())
        assert answer.status_code == 201, answer.text
        return leader

    async def post(self, path, body=b"", private=None):
        signature = sign_request(private or self.private, path, body)
        return await self.client.post(path, content=body, headers={SIGNATURE_HEADER: signature})

    def path(self, number, act):
        return f"/federations/{self.config.digest().hex()}/rounds/{number}/{act}"

    async def get(self, number, what):
        return await self.client.get(self.path(number, what))

    async def ask_offer(self, number, **changes):
        return await self.post(self.path(number, "offer"), terms(**changes).to_bytes())

    async def offer(self, number):
        answer = await self.ask_offer(number)
        assert answer.status_code == 200, answer.text
        return read_offer(answer.content, self.key)

    async def prepare(self, number, reports):
        return await self.post(self.path(number, "prepare"), encode_reports(reports))

    async def answer(self, number, reports):
        return await self.post(self.path(number, "answer"), encode_reports(reports))

    async def abandon(self, number):
        return await self.post(self.path(number, "abandon"))


class Played:
    """The messages and uploads of a round's people."""

    def __init__(self, offered, people=5, seed=1):
        self.messages = messages(people, seed=seed)
        self.uploads = uploads(offered, self.messages, seed=seed + 100)
        self.reports = [report_of(offered.digest(), upload) for upload in self.uploads]
        self.shares = np.sum([upload.share for upload in self.uploads], axis=0, dtype=np.uint32)


@asynccontextmanager
async def in_round(store, folder, people=5, **changes):
    """A helper that has offered round 0 to a leader; the leader, and the round's uploads."""
    async with helping(store, folder) as (_, client):
        leader = await Leader.of(client, **changes)
        yield leader, Played(await leader.offer(0), people)


@asynccontextmanager
async def helping(store, folder, log=None, **settings):
    """A helper in this process; its service and a client of it."""
    chosen = HelperSettings(**(OPEN_TO_ALL | settings))
    service = open_helper(store, ORIGIN, folder / "keys", chosen, log or Log(None))
    transport = httpx.ASGITransport(HelperApp(service), raise_app_exceptions=False)
    try:
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=60) as client:
            yield service, client
    finally:
        service.stop()


class HelperProcess:
    """`federank helper` as a process on a free port, that keeps its port when it is started again.

    The system hands that port to no connection while the helper is away.
    """

    def __init__(self, folder, keys, *flags):
        self.folder, self.keys, self.flags, self.process = folder, keys, flags, None
        [self.port] = free_ports(1)

    def start(self):
        words = ("helper", "--port", self.port, "--store", "helper.db", "--keys", self.keys, "--address-rate", 0)
        self.process = started(*words, "--any-leader", *self.flags, cwd=self.folder, stderr=subprocess.PIPE)
        self.said = [self.process.stdout.readline() for _ in range(4)]
        assert self.said[-1], self.process.communicate()[1]
        self.address = re.search(r"helper\s+(\S+)", self.said[0]).group(1)
        return self

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self):
        self.process.terminate()
        _, log = self.process.communicate()
        return self.process.returncode, log


@contextmanager
def helper_process(folder):
    """A helper process, with its keys in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as keys:
        helper = HelperProcess(folder, keys).start()
        try:
            yield helper
        finally:
            if helper.process.poll() is None:
                helper.stop()


class ThreadedHelper:
    """A helper on a port of this machine, in a thread; away and back again at the same port."""

    def __init__(self, folder, **settings):
        self.store, self.folder, self.port = f"sqlite:///{folder / 'helper.sqlite'}", folder, free_ports(1)[0]
        self.settings = HelperSettings(**(OPEN_TO_ALL | settings))

    def start(self):
        self.socket = bind("127.0.0.1", self.port)
        self.origin = f"http://127.0.0.1:{self.port}"
        self.service = open_helper(self.store, self.origin, self.folder / "keys", self.settings, Log(None))
        limits = ConnectionLimits(header_timeout=10, reading_timeout=30)
        self.server = uvicorn_server(HelperApp(self.service), limits)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[self.socket])))
        self.thread.start()
        return self

    def stop(self):
        self.server.should_exit = True
        self.thread.join()
        self.service.stop()
        self.socket.close()

    def renew_identity(self):
        """Away, a new key that the old one has signed for, and back."""
        self.stop()
        open_helper(self.store, self.origin, self.folder / "keys", self.settings, Log(None), new_identity=True).stop()
        self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
