"""Whatever happens to a leader of sums, every share is in its round's sum once, and every round ends."""

import asyncio
import json

import httpx
import pytest
from tests.commands import succeeded
from tests.service.federations import ITEMS, Device, Served, stored
from tests.service.helper.helpers import HelperProcess
from tests.service.server.secure.federations import (
    HISTORIES,
    assert_simulated,
    cohort,
    federation,
    loud_upload,
    prepared_upload,
)

from federank.service.server import rounds as leading
from federank.service.server import secure_rounds as preparing
from federank.service.server.helper_line import HelperLine
from federank.service.server.secure_rounds import RoundOfSums
from federank.service.server.store import secure as sums_store

STEPS = {
    "before the offer is kept": (sums_store, "put_offer", "before"),
    "after the offer is kept, before the round is open": (sums_store, "put_offer", "after"),
    "before uploads are prepared": (HelperLine, "prepare", "before"),
    "after the helper has said which stand": (HelperLine, "prepare", "after"),
    "before the helper has looked at proofs": (HelperLine, "look", "before"),
    "after the helper has looked at proofs": (HelperLine, "look", "after"),
    "before the leader has looked at a proof": (preparing, "accepts", "before"),
    "after the leader has looked at a proof": (preparing, "accepts", "after"),
    "before shares are added": (sums_store, "add_prepared", "before"),
    "after shares are added": (sums_store, "add_prepared", "after"),
    "before the round is closed": (leading, "close_round", "before"),
    "after the round is closed": (leading, "close_round", "after"),
    "before the set is answered": (HelperLine, "answer", "before"),
    "after the set is answered, before the answer is kept": (HelperLine, "answer", "after"),
    "after the answer is kept": (sums_store, "put_answer", "after"),
    "before the record is made": (RoundOfSums, "record", "before"),
    "before the version is published": (leading, "publish", "before"),
    "after the version is published": (leading, "publish", "after"),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
async def test_crash_at_any_step_loses_and_repeats_nothing(sqlite_store, tmp_path, monkeypatch, step):
    """The next leader has nothing but the store and the helper. Where norms are checked a malicious client is left out,
    and counted once."""
    place, name, when = STEPS[step]
    real, crashed = getattr(place, name), []

    def crashing(*values, **named):
        if crashed:
            return real(*values, **named)
        crashed.append(step)
        if when == "after":
            real(*values, **named)
        raise RuntimeError("gone")

    monkeypatch.setattr(place, name, crashing)
    malicious = int(name != "prepare")  # the one step without a check
    rounds, projections = {"target": 3 + malicious}, None if malicious else 0
    async with federation(tmp_path, sqlite_store, rounds, projections=projections) as (_, running):
        devices, attackers = await running.devices(3), await running.devices(malicious)
        messages = []
        for number in range(2):
            await running.open_round(number)
            for attacker in attackers:
                assert (await attacker.send(await attacker.ticket(), await loud_upload(attacker))).status_code == 201
            messages.append(await cohort(devices))
            await running.version(number + 1)
    assert crashed
    assert_simulated(sqlite_store, messages, 3 + malicious)
    assert stored(sqlite_store, "SELECT state FROM rounds WHERE number < 2") == [("aggregated",)] * 2
    left_out = [(number, "norm-too-large", 1) for number in range(2 * malicious)]
    assert stored(sqlite_store, "SELECT round, reason, count FROM refusals ORDER BY round") == left_out


async def one_message(address, history):
    """A device on a bad network: it sends one message, trying again whatever fails."""
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        device = ticket = body = None
        while True:
            try:
                device = device or await Device.enrolled(client)
                if ticket is None:
                    answer = await device.work(wait=5)
                    ticket = answer.json()["ticket"] if answer.status_code == 200 else None
                    continue
                if body is None:
                    _, body = await prepared_upload(device, ticket, history)
                answer = await device.send(ticket, body)
                if answer.status_code in (200, 201):
                    return 1
                assert answer.status_code == 410, answer.text
                return 0
            except (httpx.TransportError, KeyError, AssertionError):
                await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_both_servers_are_killed_and_every_version_is_recomputed(tmp_path, memory):
    names = [f"item-{number:02d}" for number in range(ITEMS)]
    (tmp_path / "items.csv").write_text("user,item\n" + "".join(f"{who},{name}\n" for who in "ab" for name in names))
    helper = HelperProcess(tmp_path, memory).start()
    flags = ["--method", "frugal", "--helper", helper.address, "--sigma", "1", "--least-cohort", "6", "--messages", "3"]
    flags += ["--target", "6", "--factors", "4", "--clip", "3", "--min-support", "1", "--deadline", "600"]
    store = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    served = None
    try:
        served = Served(store, "--data", "items.csv", "--rehearsal", *flags, folder=tmp_path)
        for number in range(3):
            devices = [asyncio.create_task(one_message(served.address, HISTORIES[n])) for n in range(6)]
            for pause in (0.2, 0.6, 0.4):
                await asyncio.sleep(pause)
                await asyncio.to_thread(killed_and_back, served if number % 2 else helper)
            assert sum(await asyncio.gather(*devices)) == 6
            await has_version(served.address, number + 1)
        verifying = ("audit", "verify", served.address, "--helper", helper.address, "--json")
        found = json.loads((await asyncio.to_thread(succeeded, *verifying)).stdout)
        assert (found["versions"], found["messages"]) == (3, 18)
    finally:
        if served is not None:
            served.stop()
        helper.kill()


def killed_and_back(process):
    process.kill()
    process.start()


async def has_version(address, version):
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        while (await client.get("/api/v1/status")).json()["version"] < version:
            await asyncio.sleep(0.05)
