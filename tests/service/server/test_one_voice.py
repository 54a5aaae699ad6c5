"""One voice each, and none lost: who has reported in a fold, which rounds have tickets to give, what a buffer keeps."""

import asyncio

import pytest
from tests.service.federations import KEEP, PATIENT, establish_small, in_a_loop, serving, some_update, stored

from federank.service.server.store.database import Database
from federank.service.server.store.schema import MIGRATIONS, migrate
from federank.service.server.store.statements.devices import enrol, leave, tallies
from federank.service.server.store.statements.grants import grant, used_tickets
from federank.service.server.store.statements.rounds import close_round, open_round
from federank.service.server.tickets import make_ticket

BUFFERED = {"mode": "buffered", "fold_every": 2, "staleness": 4} | PATIENT


async def fold(running, version, seed):
    """Two strangers report, and the buffer is folded."""
    for place in range(2):
        device = await running.device()
        assert (await device.take_part(some_update(seed + place))).status_code == 201
    await running.version(version)
    await running.open_round(version)


@in_a_loop
async def test_a_device_with_several_tickets_has_one_voice_in_a_fold(store):
    async with serving(store, BUFFERED, KEEP) as running:
        greedy = await running.device()
        tickets = [await greedy.ticket()]
        for version in (1, 2):
            await fold(running, version, 10 * version)
            tickets.append(await greedy.ticket())
        answers = [await greedy.send(ticket, some_update(seed)) for seed, ticket in enumerate(tickets)]
        assert [answer.status_code for answer in answers] == [201, 409, 409]
        assert answers[1].json()["error"] == "reported"
        assert (await greedy.send(tickets[0], some_update(0))).status_code == 200, "a receipt stays true"
        assert stored(store, "SELECT COUNT(*) FROM uploads WHERE round = 2") == [(1,)]
        assert running.service.latest.model.version == 2


@pytest.mark.slow
@in_a_loop
async def test_who_reported_with_an_older_ticket_waits_for_the_next_fold(store):
    async with serving(store, BUFFERED, KEEP) as running:
        slow = await running.device()
        ticket = await slow.ticket()
        await fold(running, 1, 10)
        assert (await slow.send(ticket, some_update(1))).status_code == 201
        assert (await slow.work(wait=1)).status_code == 204
        other = await running.device()
        await other.take_part(some_update(2))
        await running.version(2)
        assert (await slow.work(wait=10)).status_code == 200


@pytest.mark.slow
@in_a_loop
async def test_another_worker_gives_no_ticket_to_who_has_reported(store):
    async with serving(store, BUFFERED, KEEP) as running, serving(store) as another:
        device = await running.device()
        ticket = await device.ticket()
        await fold(running, 1, 10)
        assert (await device.send(ticket, some_update(1))).status_code == 201
        await another.open_round(1)
        device.client = another.client
        assert (await device.work(wait=1)).status_code == 204


@in_a_loop
async def test_a_buffer_below_its_minimum_is_not_closed_and_nothing_is_lost(store):
    rounds = {"mode": "buffered", "fold_every": 5, "minimum": 2} | PATIENT
    async with serving(store, rounds, KEEP) as running:
        await (await running.device()).take_part(some_update(1))
        answer = await running.admin.post("/admin/api/v1/close", headers=running.operator)
        assert (answer.status_code, answer.json()["error"]) == (409, "too-few")
        assert "1 of the 2" in answer.json()["message"]
        await asyncio.sleep(0.3)
        assert stored(store, "SELECT state FROM rounds") == [("open",)]
        await (await running.device()).take_part(some_update(2))
        assert (await running.admin.post("/admin/api/v1/close", headers=running.operator)).status_code == 202
        await running.version(1)
        assert stored(store, "SELECT reports FROM rounds WHERE number = 0") == [(2,)]


@pytest.fixture
def connection(store):
    establish_small(store)
    database = Database(store)
    with database.connection() as connection:
        yield connection
    database.close()


def test_a_round_that_is_not_open_has_no_ticket_to_give(connection):
    open_round(connection, 0, 0)
    one, other = (make_ticket(b"k" * 32, device, 0, 0) for device in ("one", "other"))
    assert grant(connection, 0, {one: "one"}, set(), 9) == ([one], set(), set())
    assert grant(connection, 0, {one: "one"}, {one}, 9) == ([one], set(), set())
    close_round(connection, 0, 0)
    assert grant(connection, 0, {one: "one", other: "other"}, {one}, 9) == ([], set(), set())
    assert connection.one("SELECT granted FROM grants") == (1,)
    nothing = grant(connection, 1, {other: "other"}, set(), 9)
    assert nothing == ([], set(), set()), "nor has one that has not begun"


def test_devices_departures_and_abandoned_rounds_are_counted_as_they_happen(connection):
    for name in ("one", "two", "three"):
        enrol(connection, name, name.encode())
    for name in ("two", "two", "nobody"):
        leave(connection, name)
    open_round(connection, 0, 0)
    close_round(connection, 0, minimum=1)
    assert tallies(connection) == (2, 1, 1)
    assert connection.one("SELECT COUNT(*) FROM devices") == (2,)


def test_an_older_store_is_counted_once_and_its_uploads_keep_their_voice(store):
    database = Database(store)
    with database.connection() as connection:
        migrate(connection, MIGRATIONS[:1])
        connection.run("INSERT INTO devices (device, token) VALUES (?, ?)", "d", b"t")
        connection.run("INSERT INTO rounds (number, version, state) VALUES (0, 0, 'abandoned'), (1, 0, 'open')")
        ticket = make_ticket(b"k" * 32, "d", 1, 0)
        upload = (
            "INSERT INTO uploads (ticket, round, kind, digest, size, clipped, body) VALUES (?, 1, 'plain', ?, 0, 0, ?)"
        )
        connection.run(upload, ticket.use, b"digest", b"")
        assert migrate(connection) == 1
        assert tallies(connection) == (1, 0, 1)
        assert used_tickets(connection, [ticket]) == {ticket.use}
    database.close()
