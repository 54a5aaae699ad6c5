"""What a client is told of its upload under secure aggregation, and what a discarded round costs it."""

import asyncio
import threading

import pytest
from tests.service.federations import refusal, stored
from tests.service.server.secure.federations import HISTORIES, federation, prepared_upload
from tests.service.server.secure.test_rounds_of_sums import lying_upload

from federank.secagg import upload as uploads
from federank.secagg.exchange import FOLDED, read_record
from federank.service.server import secure_rounds as rounds
from federank.service.server.store.queries import put_value

pytestmark = pytest.mark.slow


async def outcome(device, ticket):
    answer = await device.client.get(f"/api/v1/tasks/{ticket}/outcome", headers=device.headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def final(device, ticket):
    while (told := await outcome(device, ticket))["outcome"] == "waiting":
        await asyncio.sleep(0.02)
    return told


async def uploaded(device, history):
    """Take part in the open round; the ticket."""
    ticket = await device.ticket()
    _, body = await prepared_upload(device, ticket, history)
    assert (await device.send(ticket, body)).status_code == 201
    return ticket


async def prepared(store, count):
    """Wait until both servers have accepted this many uploads."""
    while stored(store, "SELECT COUNT(*) FROM uploads WHERE outcome = 'counted'") != [(count,)]:
        await asyncio.sleep(0.02)


async def close(running, number):
    """End the open round before its deadline, with however few uploads."""
    await running.service.writer.write(lambda connection: put_value(connection, "close", number))


def invitations(store):
    return [count for (count,) in stored(store, "SELECT invitations FROM devices ORDER BY invitations")]


async def test_a_discarded_round_waits_for_a_helper_that_is_away(store, tmp_path):
    async with federation(tmp_path, store) as (helper, running):
        device = await running.device()
        ticket = await uploaded(device, HISTORIES[0])
        await prepared(store, 1)
        helper.stop()
        await close(running, 0)
        await running.until(lambda view: view.abandoned == 1)
        assert (await outcome(device, ticket))["outcome"] == "waiting"
        assert invitations(store) == [1]
        helper.start()
        told = await final(device, ticket)
        assert (told["outcome"], "record" in told) == ("abandoned", True)
        assert invitations(store) == [0]


async def test_a_record_lost_by_a_crash_is_fetched_before_the_next_round(store, tmp_path, monkeypatch):
    """The helper has ended the round, but the leader has not stored its record."""
    async with federation(tmp_path, store) as (_, running):
        device = await running.device()
        ticket = await uploaded(device, HISTORIES[0])
        await prepared(store, 1)
        kept, lost = rounds.store.put_discarded, []
        monkeypatch.setattr(
            rounds.store, "put_discarded", lambda *given: kept(*given) if lost else lost.append(given[1])
        )
        await close(running, 0)
        told = await final(device, ticket)
        assert (lost, "record" in told) == ([0], True)


async def test_a_round_that_the_helper_has_summed_stays_charged_though_discarded(sqlite_store, tmp_path):
    async with federation(tmp_path, sqlite_store, projections=0) as (_, running):
        people = await running.devices(3)
        tickets = [await uploaded(*one) for one in zip(people[:2], HISTORIES, strict=False)]
        ticket = await people[2].ticket()
        before, uploads.C_INT = uploads.C_INT, 10**7
        try:
            body = await lying_upload(people[2])
        finally:
            uploads.C_INT = before
        assert (await people[2].send(ticket, body)).status_code == 201
        told = await final(people[0], tickets[0])
        record = read_record(told["record"].encode(), running.service.config.sums.config.helper_public())
        assert (told["outcome"], record.state) == ("abandoned", FOLDED)
    assert invitations(sqlite_store) == [1, 1, 1]


async def test_a_round_with_enough_uploads_withdraws_its_other_invitations(store, tmp_path, monkeypatch):
    finish, may_finish = rounds.RoundOfSums.finish, threading.Event()
    monkeypatch.setattr(rounds.RoundOfSums, "finish", lambda *given: may_finish.wait(600) and finish(*given))
    async with federation(tmp_path, store, rounds={"over_selection": 1.4}) as (_, running):
        people = await running.devices(4)
        tickets = [await one.ticket() for one in people]
        for device, ticket, history in zip(people[:3], tickets, HISTORIES, strict=False):
            _, body = await prepared_upload(device, ticket, history)
            assert (await device.send(ticket, body)).status_code == 201
        while (refused := await people[3].task(tickets[3])).status_code == 200:
            await asyncio.sleep(0.02)
        may_finish.set()
        assert refusal(refused) == (410, "late")
