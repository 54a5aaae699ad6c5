"""Clients that take a ticket and send nothing: others are invited instead, and the silent ones last."""

import asyncio

import pytest
from tests.service.federations import PATIENT, serving, some_update
from tests.service.server.test_few_messages import few

from federank.service.server import selection

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(selection, "PATIENCE_SHARE", 0.0005)  # of 600 seconds
    monkeypatch.setattr(selection, "LEAST_PATIENCE", 0.01)


async def test_unused_tickets_are_given_to_others(sqlite_store):
    async with serving(sqlite_store, {"target": 2, "over_selection": 1.0} | PATIENT) as running:
        for device in await running.devices(2):
            await device.ticket()
        await running.upload(some_update(0), some_update(1))
        await running.version(1)


async def test_late_upload_counts_while_the_round_is_open(sqlite_store):
    async with serving(sqlite_store, {"target": 2, "over_selection": 1.0} | PATIENT) as running:
        slow, quick, other = await running.devices(3)
        ticket = await slow.ticket()
        await other.ticket()
        await quick.upload(some_update(1))
        assert (await slow.send(ticket, some_update(2))).status_code == 201
        await running.version(1)


async def test_clients_that_miss_rounds_are_invited_last(sqlite_store):
    async with serving(sqlite_store, {"target": 1, "over_selection": 1.0} | PATIENT) as running:
        silent, lively = await running.device(), await running.device()
        for number in range(2):
            await silent.ticket()  # and no answer
            await lively.upload(some_update(number))
            await running.version(number + 1)
        await running.open_round(2)
        assert running.service.selection._missed[silent.name] == 2
        hoping = [asyncio.create_task(device.work(wait=20)) for device in (silent, lively)]
        assert (await hoping[1]).status_code == 200
        ticket = (await hoping[1]).json()["ticket"]
        assert (await lively.send(ticket, some_update(9))).status_code == 201
        hoping[0].cancel()
        answer = await silent.work(wait=30)
        assert answer.status_code == 200, "who is asked last is asked when no one else has come"
        assert (await silent.send(answer.json()["ticket"], some_update(10))).status_code == 201
        assert silent.name not in running.service.selection._missed, "one answer is enough to be asked like others"


async def test_tickets_make_up_for_missing_uploads(sqlite_store, monkeypatch):
    monkeypatch.setattr(selection, "MISSING_RATE", 0.5)
    async with serving(sqlite_store, {"target": 4, "over_selection": 1.0} | PATIENT) as running:
        devices = await running.devices(8)
        hands_out = running.service.selection
        assert hands_out._most_tickets() == 4
        for device in devices[:4]:
            await device.ticket()  # and no answer
        await running.until(lambda _: hands_out._missing > 0.9)
        assert hands_out._most_tickets() == 8, "half of all at most are expected to be missing"
        for seed, device in enumerate(devices[4:]):
            await device.upload(some_update(seed))
        await running.version(1)
        await running.until(lambda _: hands_out._round == 1)
        assert hands_out._missing < 0.1, "who answers is expected to answer"
        assert hands_out._most_tickets() == 4


async def test_few_messages_are_not_wasted_on_missing_uploads(sqlite_store):
    async with serving(few(sqlite_store, {"target": 50})) as running:
        hands_out = running.service.selection
        hands_out._missing = 0.3
        assert hands_out._most_tickets() == 66, "50 / 0.7 are 71, less what chance may add"
