"""What a client is told of its upload under secure aggregation, and what a discarded round costs it."""

import asyncio
import threading

import pytest
from tests.service.federations import refusal, stored
from tests.service.server.secure.federations import (
    HISTORIES,
    cohort,
    counted,
    federation,
    final,
    outcome,
    prepared_upload,
    unchecked_upload,
)

from federank.secagg.exchange import AGGREGATED, read_record
from federank.service.server import secure_rounds as rounds
from federank.service.server.store.queries import put_value

pytestmark = pytest.mark.slow


async def uploaded(device, history):
    """Take part in the open round; the ticket."""
    ticket = await device.ticket()
    _, body = await prepared_upload(device, ticket, history)
    assert (await device.send(ticket, body)).status_code == 201
    return ticket


async def close(running, number):
    """End the open round before its deadline, with however few uploads."""
    await running.service.writer.write(lambda connection: put_value(connection, "close", number))


def invitations(store):
    return [count for (count,) in stored(store, "SELECT invitations FROM clients ORDER BY invitations")]


async def test_outcome_waits_for_an_absent_helper(store, tmp_path):
    async with federation(tmp_path, store) as (helper, running):
        device = await running.device()
        ticket = await uploaded(device, HISTORIES[0])
        await counted(store, 1)
        helper.stop()
        await close(running, 0)
        await running.until(lambda view: view.abandoned == 1)
        assert (await outcome(device, ticket))["outcome"] == "waiting"
        assert invitations(store) == [1]
        helper.start()
        told = await final(device, ticket)
        assert (told["outcome"], "record" in told) == ("abandoned", True)
        assert invitations(store) == [0]


async def test_lost_record_is_fetched_before_the_next_round(store, tmp_path, monkeypatch):
    """The helper has ended the round, but the leader has not stored its record."""
    async with federation(tmp_path, store) as (_, running):
        device = await running.device()
        ticket = await uploaded(device, HISTORIES[0])
        await counted(store, 1)
        kept, lost = rounds.store.put_discarded, []
        monkeypatch.setattr(
            rounds.store, "put_discarded", lambda *given: kept(*given) if lost else lost.append(given[1])
        )
        await close(running, 0)
        told = await final(device, ticket)
        assert (lost, "record" in told) == ([0], True)


async def test_discarded_round_that_the_helper_has_summed_stays_charged(sqlite_store, tmp_path, monkeypatch):
    async with federation(tmp_path, sqlite_store, projections=0) as (_, running):
        devices = await running.devices(3)
        tickets = [await uploaded(*one) for one in zip(devices[:2], HISTORIES, strict=False)]
        body = await unchecked_upload(devices[2], monkeypatch)
        assert (await devices[2].send(await devices[2].ticket(), body)).status_code == 201
        told = await final(devices[0], tickets[0])
        record = read_record(told["record"].encode(), running.service.config.sums.config.helper_public())
        assert (told["outcome"], record.state) == ("abandoned", AGGREGATED)
    assert invitations(sqlite_store) == [1, 1, 1]


async def test_complete_round_withdraws_its_other_invitations(store, tmp_path, monkeypatch):
    finish, may_finish = rounds.RoundOfSums.finish, threading.Event()
    monkeypatch.setattr(rounds.RoundOfSums, "finish", lambda *given: may_finish.wait(600) and finish(*given))
    async with federation(tmp_path, store, rounds={"over_selection": 1.4}) as (_, running):
        devices = await running.devices(4)
        tickets = [await one.ticket() for one in devices]
        await cohort(devices[:3])
        while (refused := await devices[3].task(tickets[3])).status_code == 200:
            await asyncio.sleep(0.02)
        may_finish.set()
        assert refusal(refused) == (410, "late")
