"""Two servers through everything: a whole federation of sums over TLS with PostgreSQL, both killed again and again.

A fleet of virtual devices, people's devices in Python with a file each, and browsers play the rounds of one cohort, all
of them in every round. Meanwhile leader and helper are killed (SIGKILL) in turns and started again. In the end
`federank audit verify` recomputes every version from what the two have published.

    python benchmarks/sums_endurance.py --json            500 + 20 devices and 3 browsers, 10 rounds, 20 kills of each

It ends with 1 if a version is missing or does not follow.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import federank as fr
from federank.errors import FedeRankError
from federank.privacy.policy import Policy
from federank.service.client.client import take_part
from federank.service.client.enrolment import enrol
from federank.service.client.http import Client
from federank.service.client.state import ChosenPolicy
from federank.service.client.store import ClientStore
from federank.service.server.http.listening import self_signed
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from service import free_port, postgresql, write_rows

PATIENCE = 60
"""How often a device of the fleet tries while a server is away."""


@dataclass
class Killable:
    """A server as a process that can be killed, and is at the same address when it is started again."""

    command: list[str]
    log: Path
    kills: int = 0
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "federank", *self.command], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it listens by now

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        self.kills += 1

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.communicate()


@dataclass
class World:
    """Where everything is."""

    folder: Path
    leader: str
    helper: str
    ca: str
    data: fr.Interactions

    def status(self) -> dict[str, Any] | None:
        """How the leader is doing; None while it is away."""
        with suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.leader}/api/v1/status", verify=self.ca, timeout=20)
            if answer.status_code == 200:
                found: dict[str, Any] = answer.json()
                return found
        return None


def person(world: World, number: int, rounds: int, faults: list[str]) -> None:
    """One person's device in Python: a history, a file, and as many rounds as there are."""
    profile = world.folder / f"person-{number}.csv"
    own = world.data.item_ids[world.data.profiles.of(number % world.data.n_users)].tolist()
    profile.write_text("item\n" + "\n".join(map(str, own)) + "\n")
    path = world.folder / f"person-{number}.db"
    chosen = ChosenPolicy(Policy(sharing="fixed-subset", pi=1.0, basis="shared"), "owner")
    made = 0
    while made < rounds:
        try:
            with Client(world.leader, ca=world.ca) as client:
                if not path.exists():
                    enrol(client, path, profile, lambda *_: chosen, ca=world.ca, helper_ca=world.ca)
                with ClientStore(path) as store:
                    client.token = store.identity().token
                    take_part(store, client, rounds - made, lambda _: None)
                    made = store.ledger().spent
        except FedeRankError as fault:
            faults.append(f"{type(fault).__name__}: {fault}")
            time.sleep(1)


def killer(
    both: tuple[Killable, Killable], times: int, people: int, world: World, rounds: int, done: threading.Event
) -> None:
    """Kill the two in turns once everyone is there, as often as was asked for, spread over the rounds."""
    chance = random.Random(1)
    while not done.wait(0.2) and (world.status() or {"clients": 0})["clients"] < people:
        pass
    for number in range(2 * times):
        while not done.is_set():
            status = world.status()
            if status is not None and status["version"] >= (number // 2) * rounds // times - 1:
                break
            time.sleep(0.2)
        if done.wait(chance.uniform(0.1, 1.5)):
            return
        one = both[number % 2]
        one.kill()
        one.start()


@contextmanager
def browsers(world: World, count: int) -> Iterator[Callable[[], list[int]]]:
    """Browsers that take part, if there are to be any; what gives how many messages of each were received."""
    if not count:
        yield list
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.service.web.browsing import Visitor, browsing

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no chromium here; --browsers 0 does without.")
    with browsing(chromium) as browser:
        visitors = [Visitor(browser, world.leader, ignore_https_errors=True).open().pick(5) for _ in range(count)]
        for visitor in visitors:
            visitor.share(100).take_part()
        yield lambda: [Visitor.received(visitor.stored()) for visitor in visitors]


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A store for the leader and one for the helper."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/leader.sqlite", f"sqlite:///{folder}/helper.sqlite"
        return
    with postgresql(folder) as address:
        import psycopg

        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE DATABASE helper")
        yield address, address.rpartition("/")[0] + "/helper"


def endure(asked: argparse.Namespace) -> dict[str, Any]:
    """Play it all; what was found."""
    all_users = asked.fleet + asked.devices + asked.browsers
    with (
        tempfile.TemporaryDirectory() as name,
        tempfile.TemporaryDirectory(dir="/dev/shm") as memory,
        stores(asked.store, Path(name)) as (leading, helping),
    ):
        folder = Path(name)
        data = fr.city(max(asked.fleet, asked.devices), asked.items, 30 * max(asked.fleet, asked.devices))
        rows = folder / "data.tsv"
        write_rows(rows, zip(data.user_ids[data.users], data.item_ids[data.items], strict=True))
        certificate, key = self_signed(folder, ("127.0.0.1", "localhost"))
        tls = ["--tls-cert", str(certificate), "--tls-key", str(key)]
        ports = free_port(), free_port()
        origin = f"https://127.0.0.1:{ports[1]}"
        helper = Killable(
            ["helper", "--any-leader", "--port", str(ports[1]), "--origin", origin, "--store", helping, *tls],
            folder / "helper.log",
        )
        helper.command += ["--keys", f"{memory}/keys", "--address-rate", "0"]
        leader = Killable(
            ["serve", "frugal", "--port", str(ports[0]), "--admin-port", "0", "--store", leading, *tls],
            folder / "leader.log",
        )
        leader.command += ["--data", str(rows), "--rehearsal", "--helper", origin]
        leader.command += ["--helper-ca", str(certificate), "--sigma", "2", "--messages", str(asked.rounds)]
        leader.command += ["--factors", "12", "--target", str(all_users), "--deadline", str(asked.deadline)]
        leader.command += ["--least-cohort", str(min(50, all_users))]
        leader.command += ["--min-support", "1"]  # a handful of clients would support too few items for a second round
        world = World(folder, f"https://127.0.0.1:{ports[0]}", origin, str(certificate), fr.load(rows))
        try:
            helper.start()
            leader.start()
            return play(asked, world, leader, helper)
        finally:
            leader.stop()
            helper.stop()


def play(asked: argparse.Namespace, world: World, leader: Killable, helper: Killable) -> dict[str, Any]:
    """Everyone takes part until the last round is aggregated; then all of it is recomputed."""
    faults: list[str] = []
    done, began = threading.Event(), time.monotonic()
    with browsers(world, asked.browsers) as received:
        people = [
            threading.Thread(target=person, args=(world, number, asked.rounds, faults), daemon=True)
            for number in range(asked.devices)
        ]
        plan = Plan(address=world.leader, last_version=asked.rounds, attempts=PATIENCE)
        rehearsal = Rehearsal(
            plan=plan, data=world.data, users=asked.fleet, specs={"pi": 1.0}, ca=world.ca, helper_ca=world.ca
        )
        fleet = threading.Thread(target=lambda: rehearse(rehearsal), daemon=True)
        people_there = asked.fleet + asked.devices + asked.browsers
        turns = (leader, helper), asked.kills, people_there, world, asked.rounds, done
        killing = threading.Thread(target=killer, args=turns)
        for thread in (*people, fleet, killing):
            thread.start()
        status: dict[str, Any] = {}
        while time.monotonic() - began < asked.most_seconds:
            status = world.status() or status
            if status.get("version", 0) >= asked.rounds:
                break
            received()  # a browser's page lives only while it is asked something
            told = {name: status.get(name) for name in ("version", "round", "open", "reports", "clients")}
            print(round(time.monotonic() - began), told, leader.kills, helper.kills, faults[-1:], file=sys.stderr)
            time.sleep(5)
        done.set()
        killing.join()
        by_browser = received()
    command = [sys.executable, "-m", "federank", "audit", "verify", world.leader, "--helper", world.helper, "--json"]
    command += ["--ca", world.ca, "--helper-ca", world.ca]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(verified.stdout) if verified.returncode == 0 else {"versions": 0, "messages": 0}
    return {
        "everybody": asked.fleet + asked.devices + asked.browsers,
        "rounds": asked.rounds,
        "store": asked.store,
        "leader_kills": leader.kills,
        "helper_kills": helper.kills,
        "seconds": time.monotonic() - began,
        "rounds_abandoned": status.get("rounds_abandoned"),
        "versions": found["versions"],
        "messages": found["messages"],
        "messages_of_browsers": by_browser,
        "verified": verified.returncode == 0 and found["versions"] >= asked.rounds,
        "complaint": verified.stderr[-500:] if verified.returncode else "",
        "faults_of_devices": len(faults),
        "first_faults": sorted(set(faults))[:3],
        "first_errors": [*errors_in(leader.log), *errors_in(helper.log)],
    }


def errors_in(log: Path) -> list[str]:
    """The first few errors that a server has noted."""
    return [line for line in log.read_text().splitlines() if '"level": "error"' in line or "Traceback" in line][:3]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (
        ("fleet", 500),
        ("devices", 20),
        ("browsers", 3),
        ("rounds", 10),
        ("kills", 20),
        ("items", 400),
    ):
        asked.add_argument(f"--{name}", type=int, default=usual)
    asked.add_argument("--store", choices=["postgresql", "sqlite"], default="postgresql")
    asked.add_argument("--deadline", type=float, default=90.0, help="seconds that a round waits for those who are away")
    asked.add_argument("--most-seconds", type=float, default=3600.0)
    asked.add_argument("--json", action="store_true")
    options = asked.parse_args()
    found = endure(options)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:22} {value}")
    sys.stdout.flush()
    os._exit(0 if found["verified"] else 1)  # devices that still wait for a round are not waited for


if __name__ == "__main__":
    main()
