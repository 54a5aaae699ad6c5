"""How much a federation's server bears: interactions a second, how long they take, memory, bytes.

Starts `federank serve` as a process of its own and plays a fleet of virtual devices against it on the same machine. An
interaction is complete: a device is given work, fetches its task and the rows that changed, trains on its pairs,
uploads, and the Update is stored for good.

1. As many as can be: `interactions_per_s`.
2. At 80 % of that load: `p99_ms` of an interaction, from the ticket to the receipt.
3. Memory: `peak_mb` of the server's processes, and what it grew by over the second half of the interactions.
4. With --idle N: the server's memory with N devices enrolled that all hold the line.
5. With --compare-defences N, instead: two servers, one with the defences and one without, loaded in turns N times
   each, so that whatever else the machine does falls on both alike; `ratio` is what the defended one bears of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pwd
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

import federank as fr
from datasets import benchmark_data
from federank.service.client.federation import read_enrolment
from federank.service.simulated_clients.connection import Connection

FACTORS = 64


class Watched:
    """A server's processes: their memory now and at its highest, and the processor time they took."""

    def __init__(self, process: int) -> None:
        self._process = psutil.Process(process)
        self.peak_mb = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _all(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def mb(self) -> float:
        found = 0.0
        for process in self._all():
            try:
                found += process.memory_info().rss / 2**20
            except psutil.NoSuchProcess:
                continue
        return found

    def cpu_seconds(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._all())

    def queue_seconds(self) -> float:
        """How long its threads have waited for a core, which a busy machine makes longer and free cores do not."""
        waited = 0
        for process in self._all():
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                waited += int((thread / "schedstat").read_text().split()[1])
        return waited / 1e9

    def _watch(self) -> None:
        while not self._stopping.wait(0.2):
            self.peak_mb = max(self.peak_mb, self.mb())


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """A PostgreSQL server in a folder; the address of its database. It does not run as root."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    user = {"user": "postgres", "group": pwd.getpwnam("postgres").pw_gid} if os.getuid() == 0 else {}
    data = folder / "postgresql"
    data.mkdir()
    if user:
        folder.chmod(0o755)
        os.chown(data, pwd.getpwnam("postgres").pw_uid, pwd.getpwnam("postgres").pw_gid)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": data, **user}
    subprocess.run([programs / "initdb", "-D", data / "data", "-U", "federank", "--auth=trust"], check=True, **quiet)
    port = free_port()
    listening = ["-c", "listen_addresses=127.0.0.1", "-k", data, "-p", str(port)]
    server = subprocess.Popen([programs / "postgres", "-D", data / "data", *listening], **quiet)
    try:
        while subprocess.run([programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], **quiet).returncode:
            time.sleep(0.1)
        yield f"postgresql://federank@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def write_data(asked: argparse.Namespace, folder: Path) -> tuple[Path, str]:
    """The data as a file that server and fleet read, and their name."""
    data = (
        benchmark_data() if asked.catalogue is None else fr.city(1000, asked.catalogue, max(asked.catalogue, 132_000))
    )
    path = folder / "data.tsv"
    write_rows(path, zip(data.user_ids[data.users], data.item_ids[data.items], strict=True))
    return path, data.name


def write_rows(path: Path, rows: Iterable[tuple[Any, Any]]) -> None:
    """A file of who has what."""
    with path.open("w") as file:
        file.write("user\titem\n")
        file.writelines(f"{user}\t{item}\n" for user, item in rows)


@contextmanager
def server(asked: argparse.Namespace, data: Path, store: str, *more: str) -> Iterator[tuple[str, Watched]]:
    """`federank serve` as a process; its address, and an eye on it."""
    command = [
        sys.executable,
        "-m",
        "federank",
        "serve",
        asked.method,
        "--port",
        "0",
        "--admin-port",
        "0",
        "--rehearsal",
        "--plain",
        "--quiet",
    ]
    command += ["--data", str(data), "--store", store, *more]
    if asked.method == "fpl":
        command += ["--triples", str(asked.triples)]
    else:
        # Nobody is done while it is measured, and every upload covers all items.
        command += ["--factors", str(FACTORS), "--messages", "1000", "--min-support", "1"]
    if asked.undefended:
        command += ["--no-refuse-implausible", "--row-quantile", "1", "--move-quantile", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = next(line.split()[1] for line in process.stdout if line.startswith("federation"))
        watched = Watched(process.pid)
        try:
            yield address, watched
        finally:
            watched.stop()
    finally:
        process.terminate()
        process.wait()


def play(asked: argparse.Namespace, address: str, data: Path, seconds: float, *more: str) -> dict[str, Any]:
    """A fleet as processes of its own; what it told, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "federank",
        "client",
        "simulate",
        "--server",
        address,
        "--data",
        str(data),
        "--json",
    ]
    command += ["--users", str(asked.devices), "--seconds", str(seconds), "--processes", str(asked.processes)]
    told: dict[str, Any] = json.loads(subprocess.run([*command, *more], check=True, stdout=subprocess.PIPE).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told["cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return told


def measure_load(asked: argparse.Namespace, data: Path, store: str) -> dict[str, Any]:
    with server(asked, data, store, *rounds_of(asked)) as (address, watched):
        play(asked, address, data, 2)  # whatever is made on first use is made now
        half = asked.seconds / 2
        began = watched.cpu_seconds()
        first = play(asked, address, data, half)
        middle_mb = watched.mb()
        second = play(asked, address, data, half)
        end_mb, took = watched.mb(), watched.cpu_seconds() - began
        interactions = first["interactions"] + second["interactions"]
        per_second = interactions / (first["seconds"] + second["seconds"])
        calm = play(asked, address, data, asked.seconds, "--rate", str(0.8 * per_second))
        return {
            "interactions_per_s": round(per_second, 1),
            "p99_ms": calm["interaction_ms"]["p99"],
            "p50_ms": calm["interaction_ms"]["p50"],
            "calm_interactions_per_s": calm["interactions_per_s"],
            "peak_mb": round(watched.peak_mb, 1),
            "grown_mb": round(end_mb - middle_mb, 1),
            "interactions": interactions,
            "bytes_per_interaction": second["bytes_per_interaction"],
            "bytes_up_per_interaction": second["bytes_up_per_interaction"],
            "full_model_bytes": second["full_model_bytes"],
            "server_cpu_ms_per_interaction": round(1000 * took / interactions, 2),
            "not_counted": second["not_counted"],
        }


def rounds_of(asked: argparse.Namespace) -> list[str]:
    """Flags of a server whose rounds are loaded."""
    rounds = ["--target", str(asked.target)]
    # Devices of a fleet that has ended hold tickets of the open round: it waits for them until its deadline.
    return [*rounds, "--over-selection", "1.1", "--deadline", "1", "--workers", str(asked.workers)]


def compare_defences(asked: argparse.Namespace, data: Path, stores: tuple[str, str]) -> dict[str, Any]:
    """Two servers in turns: with the defences, and without."""
    kinds = {"defended": False, "undefended": True}
    with ExitStack() as running:
        servers = {}
        for (name, undefended), store in zip(kinds.items(), stores, strict=True):
            own = argparse.Namespace(**vars(asked) | {"undefended": undefended})
            servers[name] = running.enter_context(server(own, data, store, *rounds_of(asked)))
            play(asked, servers[name][0], data, 2)  # whatever is made on first use is made now
        began = {name: watched.cpu_seconds() for name, (_, watched) in servers.items()}
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
        for turn in range(asked.compare_defences):
            for name in (*kinds,) if turn % 2 == 0 else reversed((*kinds,)):
                turns[name].append(play(asked, servers[name][0], data, asked.seconds))
        found: dict[str, Any] = {}
        for name, told in turns.items():
            interactions = sum(each["interactions"] for each in told)
            took = servers[name][1].cpu_seconds() - began[name]
            found[name] = {
                "interactions_per_s": [each["interactions_per_s"] for each in told],
                "p99_ms": [each["interaction_ms"]["p99"] for each in told],
                "server_cpu_ms_per_interaction": round(1000 * took / interactions, 2),
            }
    ratios = [one / other for one, other in zip(*(found[name]["interactions_per_s"] for name in kinds), strict=True)]
    cpu = [found[name]["server_cpu_ms_per_interaction"] for name in kinds]
    return found | {"ratio": round(statistics.median(ratios), 3), "cpu_ratio": round(cpu[0] / cpu[1], 3)}


def measure_idle(asked: argparse.Namespace, data: Path, store: str) -> dict[str, Any]:
    """Many devices that hold the line: a round is open that never has enough reports, and its tickets are few."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    waiting = ["--target", "2", "--minimum", "2", "--over-selection", "1", "--deadline", "3600"]
    with server(asked, data, store, *waiting) as (address, watched):
        alone = watched.mb()
        held, seconds = asyncio.run(hold_lines(address, asked.idle, 25.0))
        return {
            "idle_devices": held,
            "idle_mb": round(watched.peak_mb, 1),
            "idle_mb_before": round(alone, 1),
            "idle_seconds_to_enrol": round(seconds, 1),
        }


async def hold_lines(address: str, devices: int, seconds: float) -> tuple[int, float]:
    """Enrol this many devices and let all of them wait for work; how many held on, and how long enrolling took."""
    gate, began = asyncio.Semaphore(64), time.monotonic()
    connections = [Connection(address) for _ in range(devices)]

    async def enrol(connection: Connection) -> None:
        async with gate:
            reply = await connection.request("POST", "/clients", b"{}")
            _, connection.token = read_enrolment(reply.content)

    async def wait(connection: Connection) -> None:
        while True:
            await connection.request("GET", "/work?wait=60", timeout=120)

    await asyncio.gather(*(enrol(connection) for connection in connections))
    enrolled = time.monotonic() - began
    waits = [asyncio.create_task(wait(connection)) for connection in connections]
    await asyncio.sleep(seconds)
    held = sum(not task.done() for task in waits)
    for task in waits:
        task.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    return held, enrolled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each load lasts")
    parser.add_argument("--devices", type=int, default=200, help="devices that take part")
    parser.add_argument("--processes", type=int, default=1, help="processes of the fleet")
    parser.add_argument("--method", choices=["fpl", "frugal"], default="fpl", help="frugal: 64 factors, plain uploads")
    parser.add_argument("--triples", type=int, default=132, help="pairs that a device trains on")
    parser.add_argument("--catalogue", type=int, help="items, of a synthetic city; MovieLens 1M's otherwise")
    parser.add_argument(
        "--target", type=int, default=100, help="reports that end a round, or are aggregated in together"
    )
    parser.add_argument("--workers", type=int, help="server processes (2 on PostgreSQL, otherwise 1)")
    parser.add_argument("--postgresql", action="store_true", help="on PostgreSQL in the place of SQLite")
    parser.add_argument("--idle", type=int, metavar="N", help="also the memory of N devices that hold the line")
    parser.add_argument("--undefended", action="store_true", help="without the defences against devices that lie")
    parser.add_argument("--compare-defences", type=int, metavar="N", help="with the defences and without, N turns each")
    parser.add_argument("--only-idle", action="store_true", help="nothing but that")
    asked = parser.parse_args()
    asked.workers = asked.workers or (2 if asked.postgresql else 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, data_name = write_data(asked, folder)
        found: dict[str, Any] = {"data": data_name, "store": "postgresql" if asked.postgresql else "sqlite"}
        found |= {"workers": asked.workers, "triples": asked.triples, "devices": asked.devices}
        if asked.compare_defences:
            places = [folder / name for name in ("one", "other")]
            with ExitStack() as running:
                stores = [f"sqlite:///{place}.sqlite" for place in places]
                if asked.postgresql:
                    for place in places:
                        place.mkdir()
                    folder.chmod(0o755)
                    stores = [running.enter_context(postgresql(place)) for place in places]
                found |= compare_defences(asked, data, (stores[0], stores[1]))
        elif not asked.only_idle:
            if asked.postgresql:
                with postgresql(folder) as store:
                    found |= measure_load(asked, data, store)
            else:
                found |= measure_load(asked, data, f"sqlite:///{folder / 'load.sqlite'}")
        if asked.idle:
            found |= measure_idle(asked, data, f"sqlite:///{folder / 'idle.sqlite'}")
    print(json.dumps(found) if asked.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
