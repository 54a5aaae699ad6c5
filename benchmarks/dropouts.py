"""How long rounds take where devices vanish: none, 30 % in every round, and 300 of 500 that never answer.

Starts `federank serve` as a process of its own and plays devices against it that take their time, as people's do: an
answer takes a second in the median, some take three. Devices send an Update of nothing: what is measured is who is
asked, and when. `round_s` is the middle and `round_s_mean` the mean of the rounds after the first few, in which the
server has learnt how long answers take and how many never come.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from federank.errors import NoAnswer
from federank.federation.wire import encode
from federank.methods.fpl.method import FPLUpdate
from federank.service.client.federation import read_enrolment
from federank.service.simulated_clients.connection import Connection
from service import server, write_rows

FACTORS = 20
NOTHING = encode(FPLUpdate(np.zeros(0, np.int32), np.zeros((0, FACTORS), np.float32), np.zeros(0, np.float32)))
LEARNING = 5
"""Rounds that are left out: the server does not know its devices yet."""


class People:
    """Devices that answer in their own time, or not at all."""

    def __init__(self, address: str, asked: argparse.Namespace, vanish: float, silent: int, seed: int) -> None:
        self._address, self._asked, self._vanish = address, asked, vanish
        self._silent = silent
        self._chance = random.Random(seed)
        self.answers, self.late = 0, 0

    async def play(self, rounds: int) -> list[float]:
        """Take part until this many rounds were aggregated; when each was, in seconds from the first."""
        lives = [asyncio.create_task(self._live(n < self._silent)) for n in range(self._asked.devices)]
        watching, times, seen = Connection(self._address), [], 0
        try:
            while len(times) < rounds:
                reply = await watching.request("GET", "/status")
                version = int(json.loads(reply.content)["version"])
                times += [time.monotonic()] * (version - seen)
                seen = version
                for life in lives:
                    if life.done():
                        life.result()
                await asyncio.sleep(0.02)
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            watching.close()
        return times

    async def _live(self, is_silent: bool) -> None:
        connection = Connection(self._address)
        try:
            _, connection.token = read_enrolment((await connection.request("POST", "/clients", b"{}")).content)
            while True:
                try:
                    await self._round(connection, is_silent)
                except NoAnswer:
                    await asyncio.sleep(0.2)
        finally:
            connection.close()

    async def _round(self, connection: Connection, is_silent: bool) -> None:
        reply = await connection.request("GET", "/work?wait=20", timeout=60)
        if reply.status != 200:
            return
        ticket = json.loads(reply.content)
        seconds = self._asked.answer * self._chance.lognormvariate(0.0, 0.5)
        if is_silent or self._chance.random() < self._vanish:
            await asyncio.sleep(20 * seconds)  # gone, and back much later
            return
        await asyncio.sleep(seconds)
        sent = await connection.request("POST", f"/tasks/{ticket['ticket']}/update", NOTHING)
        self.answers += sent.status in (200, 201)
        self.late += sent.status == 410


def measure(
    asked: argparse.Namespace, data: Path, folder: Path, name: str, vanish: float, silent: int
) -> dict[str, Any]:
    store = f"sqlite:///{folder / name}.sqlite"
    rounds = ["--target", str(asked.target), "--minimum", str(asked.target), "--deadline", "60"]
    rounds += ["--over-selection", str(asked.over_selection), "--factors", str(FACTORS), "--no-refuse-implausible"]
    with server(asked, data, store, *rounds) as (address, _):
        people = People(address, asked, vanish, silent, seed=1)
        times = asyncio.run(people.play(asked.rounds + LEARNING))
    took = [later - earlier for earlier, later in zip(times[LEARNING - 1 :], times[LEARNING:], strict=False)]
    return {
        "round_s": round(statistics.median(took), 2),
        "round_s_mean": round(statistics.mean(took), 2),
        "slowest_s": round(max(took), 2),
        "too_late": people.late,
        "answers": people.answers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    parser.add_argument("--devices", type=int, default=500)
    parser.add_argument("--silent", type=int, default=300, help="devices of the last case that never answer")
    parser.add_argument("--target", type=int, default=50, help="reports that end a round")
    parser.add_argument("--rounds", type=int, default=25, help="rounds that are measured")
    parser.add_argument("--answer", type=float, default=1.0, help="seconds that an answer takes in the median")
    parser.add_argument("--over-selection", type=float, default=1.3)
    asked = parser.parse_args()
    asked.undefended, asked.triples = False, 10
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.tsv"
        write_rows(data, ((user, user + step) for user in range(300) for step in range(20)))
        found: dict[str, Any] = {
            "devices": asked.devices,
            "target": asked.target,
            "over_selection": asked.over_selection,
        }
        for case, (vanish, silent) in {"none": (0.0, 0), "vanish_30": (0.3, 0), "silent": (0.0, asked.silent)}.items():
            found[case] = measure(asked, data, folder, case, vanish, silent)
        found["ratio_vanish_30"] = round(found["vanish_30"]["round_s_mean"] / found["none"]["round_s_mean"], 2)
        found["ratio_silent"] = round(found["silent"]["round_s_mean"] / found["none"]["round_s_mean"], 2)
    print(json.dumps(found) if asked.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
