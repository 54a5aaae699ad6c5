"""A server that is killed and started again, many times, while devices that never give up take part."""

import os
import random
import signal
import threading
import time
from multiprocessing import get_context

import httpx
from tests.service.federations import some_update, wait_until

from federank.federation.wire import encode
from federank.service.server.processes import Serving, asyncio_run, bind
from federank.service.server.settings import TrustSettings

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "federank.service.server.http.app", "federank.service.server.http.listening"])


class Persistent(threading.Thread):
    """A device that never gives up: it sends the same bytes again until they are answered."""

    def __init__(self, address, seed):
        super().__init__(daemon=True)
        self.address, self.seed = address, seed
        self.receipts, self.twice = [], []
        self.ending = threading.Event()
        self.rounds, self.name = 0, ""

    def run(self):
        with httpx.Client(base_url=self.address + "/api/v1", timeout=10) as self.client:
            told = self.ask("POST", "/clients", json={})
            if told is None:
                return
            self.name = told.json()["client"]
            self.headers = {"Authorization": f"Bearer {told.json()['token']}"}
            while not self.ending.is_set():
                work = self.ask("GET", "/work?wait=1", headers=self.headers)
                if work is not None and work.status_code == 403:
                    return  # banned
                if work is not None and work.status_code == 200:
                    self.take_part(work.json()["ticket"])

    def take_part(self, ticket):
        self.rounds += 1
        body = encode(some_update(1000 * self.seed + self.rounds))
        headers = self.headers | {"Content-Type": "application/octet-stream"}
        answer = self.ask("POST", f"/tasks/{ticket}/update", content=body, headers=headers)
        if answer is not None and answer.status_code in (200, 201):
            receipt = answer.json()["receipt"]
            (self.twice if receipt in self.receipts else self.receipts).append(receipt)

    def ask(self, method, path, **values):
        while not self.ending.is_set():
            try:
                answer = self.client.request(method, path, **values)
                if answer.status_code < 500:
                    return answer
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        return None


class Forked:
    """A server that is killed and started again, many times: each a fork of a process that has everything imported."""

    def __init__(self, store):
        self.store, self.sockets = store, [bind("127.0.0.1", 0), bind("127.0.0.1", 0)]
        self.address, self.admin_address = (f"http://127.0.0.1:{bound.getsockname()[1]}" for bound in self.sockets)

    def start(self):
        self.process = FORKS.Process(target=_serve, args=(self.store, *self.sockets), daemon=True)
        self.process.start()

    def end(self, how):
        os.kill(self.process.pid, how)
        self.process.join()

    def close(self):
        for bound in self.sockets:
            bound.close()


def _serve(store, public, admin):
    trust = TrustSettings(client_rate=0, address_rate=0, enrolment_rate=0, keep_updates=True, refuse_implausible=False)
    asyncio_run(Serving(store=store, trust=trust, quiet=True), public, admin)


def play_between_kills(server, devices, kills, meanwhile=None):
    """Kill a server this many times: at random moments after its start, and every other time once it has worked.

    `meanwhile`, where there is one, is called with the number of each kill before it, when the server has worked.
    """

    def until_another_receipt():
        before = sum(len(device.receipts) for device in devices)
        wait_until(lambda: sum(len(device.receipts) for device in devices) > before, 0.02)

    for device in devices:
        device.start()
    chance = random.Random(7)
    for number in range(kills):
        server.start()
        if number % 2 or meanwhile is not None:
            until_another_receipt()
        time.sleep(chance.choice((0.0, 0.1, 0.3)) + chance.uniform(0.0, 0.3))
        if meanwhile is not None:
            meanwhile(number)
        server.end(signal.SIGKILL)
    server.start()
    until_another_receipt()
    for device in devices:
        device.ending.set()
    for device in devices:
        device.join(30)
    server.end(signal.SIGTERM)
    server.close()
