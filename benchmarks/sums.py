"""How much two servers bear whose sums no one can open alone: messages a second, how long they take, memory, disk.

Starts `federank helper` and `federank serve --helper` as processes of their own, on SQLite, and sends them the messages
of a whole cohort: 3,706 items x 21 numbers, as MovieLens 1M would have with 22 factors and no minimum support. Messages
are made before the clock runs, since in the world devices make them.

With `--norm-check` every message carries a proof of its norm, by 128 projections; the keys are the same.

1. All at once, 32 at a time: `messages_per_s`, from the first upload to the version that is published, by the clock;
   `messages_per_s_by_cpu` is what the busier of the two servers can do with a core of its own, by its processor time,
   which other work on the machine does not change. `close_s` is from the last receipt to that version.
2. At 80 % of that load: `p99_ms` of an upload, from its first byte to its receipt.
3. `helper_ms_per_message`: processor time of the helper. `leader_ms_per_message`: the same of the leader.
4. `device_ms`: making and splitting one message in Python; `device_ms_node`: in JavaScript, under node;
   `large_device_ms_node`: the same of a message of 10,372 items x 65. All are processor time, which a busy machine
   does not change.
5. `leader_mb`, `helper_mb`: peak memory; `disk_mb`: both stores at their largest.

`--closing N` plays one round of N messages instead, for `close_s`, memory and disk. `close_queue_s` is how long threads
of both servers waited for a core meanwhile: what a busy machine adds. All people have one history, so that messages
are made quickly, while others are sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import federank as fr
from federank._numerics.arrays import IntVector
from federank.federation.client import Terms, split
from federank.federation.method import Client as Device
from federank.federation.secure import length_of, secure_message
from federank.secagg.upload import rounding_chances
from federank.service.client.federation import FederationInfo, fetch_info, fetch_model, read_enrolment, read_ticket
from federank.service.client.http import Client
from federank.service.client.secure import Pinned, checked_offer, pin
from federank.service.simulated_clients.connection import Connection
from service import Watched, write_rows

ITEMS, FACTORS, AT_ONCE, PROJECTIONS = 3706, 22, 32, 128
LARGE = 10_372, 66
"""As many numbers as a quarter of Amazon's 41,488 items x 65."""
PAGE = Path(fr.__file__).parent / "service" / "web"


@contextmanager
def process(*command: str, first: str) -> Iterator[tuple[str, Watched, subprocess.Popen[str]]]:
    """A server as a process: what it calls its address, and an eye on it."""
    started = subprocess.Popen([sys.executable, "-m", "federank", *command], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        address = next(line.split()[1] for line in started.stdout if line.startswith(first))
        watched = Watched(started.pid)
        try:
            yield address, watched, started
        finally:
            watched.stop()
    finally:
        started.terminate()
        started.wait()


def whole_message(info: FederationInfo, terms: Terms, broadcast: Any, profile: IntVector) -> IntVector:
    """A client's message in integers."""
    stage = terms.offer.stage
    update = info.settings.client_update(Device(1, 0, terms.offer.round, profile, stage=stage), broadcast).update
    method = info.settings.covering(broadcast, stage)
    return secure_message(method, stage, update, rounding_chances(length_of(method, stage), os.urandom))


class Disk:
    """The largest that some files were."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.most = folder, 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(0.2):
            sizes = [path.stat().st_size for path in self.folder.glob("*.sqlite*") if path.exists()]
            self.most = max(self.most, sum(sizes))

    def stop(self) -> float:
        self._stopping.set()
        self._thread.join()
        return self.most / 2**20


async def in_turns(works: list[Any], at_once: int) -> list[Any]:
    """What these coroutines give, this many at a time."""
    gate = asyncio.Semaphore(at_once)

    async def one(work: Any) -> Any:
        async with gate:
            return await work

    return list(await asyncio.gather(*(one(work) for work in works)))


class Cohort:
    """The devices of a cohort, without their waiting: a connection each, a history each."""

    def __init__(self, address: str, people: int, seed: int = 1) -> None:
        self.address, rng = address, np.random.default_rng(seed)
        self.profiles = [np.sort(rng.choice(ITEMS, 60, replace=False)).astype(np.int32) for _ in range(people)]
        self.connections = [Connection(address) for _ in self.profiles]

    async def enrol(self) -> None:
        async def one(connection: Connection) -> None:
            reply = await connection.request("POST", "/clients", b"{}")
            _, connection.token = read_enrolment(reply.content)
            connection.close()

        await in_turns([one(connection) for connection in self.connections], AT_ONCE)

    async def tickets(self) -> list[str]:
        async def one(connection: Connection) -> str:
            while True:
                reply = await connection.request("GET", "/work?wait=20", timeout=60)
                if reply.status == 200:
                    connection.close()  # making everyone's message takes longer than a server keeps it
                    return read_ticket(reply.content).ticket

        return await in_turns([one(connection) for connection in self.connections], 4 * AT_ONCE)

    def uploads(self, pinned: Pinned, round_number: int) -> tuple[list[bytes], float]:
        """Everyone's upload of a round, and how long one takes in the median, in seconds."""
        with Client(self.address) as client:
            info = fetch_info(client)
            model = fetch_model(client, info)
            content = client.request("GET", f"/sums/offer?round={round_number}").content
        terms, made, took = Terms(pinned.config, checked_offer(content, info, pinned, model, round_number)), [], []
        broadcast = info.settings.records.sent(**model.tables, **model.overall)
        for profile in self.profiles:
            began = time.process_time()
            made.append(split(terms, whole_message(info, terms, broadcast, profile)))
            took.append(time.process_time() - began)
        return made, statistics.median(took)

    async def send(self, tickets: list[str], uploads: list[bytes], rate: float | None) -> list[float]:
        """Send them all, as fast as can be or this many a second; how long each took."""
        began = time.monotonic()

        async def one(number: int) -> float:
            if rate is not None:
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            sent = time.monotonic()
            path = f"/tasks/{tickets[number]}/update"
            reply = await self.connections[number].request("POST", path, uploads[number], timeout=120)
            assert reply.status == 201, (reply.status, reply.content[:200])
            took = time.monotonic() - sent
            self.connections[number].close()
            return took

        at_once = AT_ONCE if rate is None else len(tickets)
        return await in_turns([one(number) for number in range(len(tickets))], at_once)

    async def send_as_made(self, pinned: Pinned, tickets: list[str]) -> None:
        """Everyone's message of the second round, from the first one's history, made when it is their turn."""
        with Client(self.address) as client:
            info = fetch_info(client)
            model = fetch_model(client, info)
            content = client.request("GET", "/sums/offer?round=1").content
        terms = Terms(pinned.config, checked_offer(content, info, pinned, model, 1))
        whole = whole_message(
            info, terms, info.settings.records.sent(**model.tables, **model.overall), self.profiles[0]
        )

        async def one(number: int) -> None:
            path = f"/tasks/{tickets[number]}/update"
            reply = await self.connections[number].request("POST", path, split(terms, whole), timeout=300)
            self.connections[number].close()
            assert reply.status == 201, (reply.status, reply.content[:200])

        await in_turns([one(number) for number in range(len(tickets))], AT_ONCE)

    async def version(self, version: int) -> None:
        connection = Connection(self.address)
        while json.loads((await connection.request("GET", "/status")).content)["version"] < version:
            await asyncio.sleep(0.1)  # asking costs the leader a little too
        connection.close()


async def measure(address: str, people: int, factors: int, leader: Watched, helper: Watched) -> dict[str, Any]:
    """Three rounds: a first one of popularity, one as fast as can be, one at 80 % of that."""
    cohort = Cohort(address, people)
    await cohort.enrol()
    with Client(address) as client:
        pinned = pin(client, fetch_info(client))
    found: dict[str, Any] = {"people": people, "items": ITEMS, "columns": factors - 1}
    rate: float | None = None
    for number in range(3):
        tickets = await cohort.tickets()
        uploads, device = cohort.uploads(pinned, number)
        before = leader.cpu_seconds(), helper.cpu_seconds()
        began = time.monotonic()
        took = await cohort.send(tickets, uploads, rate)
        received = time.monotonic()
        await cohort.version(number + 1)
        ended = time.monotonic()
        if number == 1:
            rate = 0.8 * people / (ended - began)
            found |= {
                "messages_per_s": people / (ended - began),
                "close_s": ended - received,
                "helper_ms_per_message": 1000 * (helper.cpu_seconds() - before[1]) / people,
                "leader_ms_per_message": 1000 * (leader.cpu_seconds() - before[0]) / people,
                "messages_per_s_by_cpu": people
                / max(leader.cpu_seconds() - before[0], helper.cpu_seconds() - before[1]),
                "device_ms": 1000 * device,
                "bytes_up": len(uploads[0]),
            }
        if number == 2:
            found["p99_ms"] = 1000 * float(np.quantile(took, 0.99))
    return found


async def measure_closing(address: str, people: int, factors: int, leader: Watched, helper: Watched) -> dict[str, Any]:
    """A round of popularity, then one of whole messages: how long it takes from the last receipt to its version."""
    cohort = Cohort(address, people)
    await cohort.enrol()
    with Client(address) as client:
        pinned = pin(client, fetch_info(client))
    tickets = await cohort.tickets()
    uploads, _ = cohort.uploads(pinned, 0)
    await cohort.send(tickets, uploads, None)
    await cohort.version(1)
    tickets = await cohort.tickets()
    before, began = (leader.cpu_seconds(), helper.cpu_seconds()), time.monotonic()
    await cohort.send_as_made(pinned, tickets)
    received, used = time.monotonic(), (leader.cpu_seconds(), helper.cpu_seconds())
    queued = leader.queue_seconds() + helper.queue_seconds()
    await cohort.version(2)
    ended, after = time.monotonic(), (leader.cpu_seconds(), helper.cpu_seconds())
    return {
        "people": people,
        "items": ITEMS,
        "columns": factors - 1,
        "messages_per_s": people / (ended - began),
        "close_s": ended - received,
        "close_leader_cpu_s": after[0] - used[0],
        "close_helper_cpu_s": after[1] - used[1],
        "close_queue_s": leader.queue_seconds() + helper.queue_seconds() - queued,
        "leader_ms_per_message": 1000 * (after[0] - before[0]) / people,
        "helper_ms_per_message": 1000 * (after[1] - before[1]) / people,
    }


def device_under_node(folder: Path, projections: int, items: int = ITEMS, factors: int = FACTORS) -> float | None:
    """Milliseconds that a message takes in JavaScript, in the median of twenty; None where there is no node."""
    node = shutil.which("node")
    if node is None:
        return None
    program = folder / "device.mjs"
    program.write_text(f"""
const parts = ["canonical", "config", "upload", "proof"].map((name) => import(`{PAGE.as_uri()}/secagg/${{name}}.js`));
const sums = Object.assign({{}}, ...(await Promise.all(parts)));
const check = sums;
const {{ directionsOf, privateMessage }} = await import("{(PAGE / "methods/frugal_private.js").as_uri()}");
const [items, factors] = [{items}, {factors}];
const vectors = Float32Array.from({{ length: items * factors }}, Math.random);
const weights = Float32Array.from({{ length: items }}, () => 0.1 + Math.random());
const profile = Int32Array.from({{ length: 60 }}, (_, n) => n * 7);
const pair = await crypto.subtle.generateKey({{ name: "ECDH", namedCurve: "P-256" }}, true, ["deriveBits"]);
const key = sums.hexOf(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)));
const length = items * (factors - 1);
const zeros = "0".repeat(64);
const about = {{ config: zeros, round: 1, version: 1, model: zeros, length, stage: 1 }};
const offer = {{ ...about, columns: factors - 1, clip: "1.0", scale: 4096, noise: 0, key, expires: 0 }};
const took = [];
for (let turn = 0; turn < 20; turn++) {{
  const began = process.cpuUsage();
  const known = directionsOf({{ vectors, weights }});
  const whole = privateMessage(1, items, profile, known, sums.roundingChances(length));
  if ({projections}) await check.sendChecked(check.checkParameters({projections}), offer, whole);
  else await sums.makeUpload(offer, whole, sums.newSecrets());
  const {{ user, system }} = process.cpuUsage(began);
  took.push((user + system) / 1000);
}}
console.log(took.sort((one, other) => one - other)[10]);
""")
    done = subprocess.run([node, program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--people", type=int, default=1000, help="how many messages a round has")
    asked.add_argument("--closing", type=int, metavar="N", help="one round of this many messages: how long it closes")
    asked.add_argument("--factors", type=int, default=FACTORS, help="of the model; an upload has one column less")
    asked.add_argument("--norm-check", action="store_true", help="with a proof of every message's norm")
    asked.add_argument("--json", action="store_true")
    options = asked.parse_args()
    people = options.closing or options.people
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        folder = Path(name)
        data = folder / "data.tsv"
        write_rows(data, [(f"person {item % 2}", f"item {item}") for item in range(ITEMS)])
        disk = Disk(folder)
        helping = ["helper", "--any-leader", "--port", "0", "--store", f"sqlite:///{folder}/helper.sqlite", "--quiet"]
        with process(*helping, "--keys", f"{memory}/keys", "--address-rate", "0", first="helper") as (
            origin,
            helper,
            _,
        ):
            serving = ["serve", "frugal", "--port", "0", "--admin-port", "0", "--rehearsal", "--quiet"]
            serving += ["--data", str(data), "--store", f"sqlite:///{folder}/leader.sqlite", "--helper", origin]
            serving += [
                "--factors",
                str(options.factors),
                "--min-support",
                "1",
                "--messages",
                "5",
                "--sigma",
                "8",
                "--target",
                str(people),
            ]
            serving += ["--norm-check", str(PROJECTIONS) if options.norm_check else "off"]
            with process(*serving, "--deadline", "3600", first="federation") as (address, leader, _):
                measured = measure_closing if options.closing else measure
                found = asyncio.run(measured(address, people, options.factors, leader, helper))
                found |= {"leader_mb": leader.peak_mb, "helper_mb": helper.peak_mb}
        found["disk_mb"] = disk.stop()
        check = PROJECTIONS if options.norm_check else 0
        found["device_ms_node"] = device_under_node(folder, check, ITEMS, options.factors)
        found["large_device_ms_node"] = device_under_node(folder, check, *LARGE)
    found["cores"] = os.cpu_count()
    if options.json:
        print(
            json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()})
        )
        return
    for name, value in found.items():
        print(f"{name:24} {value:,.2f}" if isinstance(value, float) else f"{name:24} {value}")


if __name__ == "__main__":
    main()
