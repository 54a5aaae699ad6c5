"""Who is invited and counted: all clients equally often, once per round, and late uploads are not charged."""

import asyncio

import pytest
from tests.service.federations import PATIENT, establish_small, opened, serving, some_update, stored
from tests.service.server.test_few_messages import HISTORIES, few, prepared

from federank.service.server.store.grants import grant, note_waiting, waiting_elsewhere
from federank.service.server.store.queries import (
    close_round,
    enrol,
    leave,
    open_round,
    tallies,
)
from federank.service.server.tickets import make_ticket

ROUNDS, TARGET, CLIENTS = 20, 5, 24


async def take_every_ticket(device):
    while True:
        await device.work(wait=2)


async def test_two_workers_invite_all_clients_equally_often(store):
    """A third of the clients wait at one worker, the others at the other one."""
    few(store, {"target": TARGET}, messages=ROUNDS)
    async with serving(store) as one, serving(store) as other:
        devices = [await (one if number % 3 == 0 else other).device() for number in range(CLIENTS)]
        tasks = [asyncio.create_task(take_every_ticket(device)) for device in devices]
        for number in range(ROUNDS):
            await one.open_round(number)
            await one.until(lambda view: view.round.granted == TARGET)
            change(store, "UPDATE metadata SET value = ? WHERE name = 'close'", number)
            await one.until(lambda view, number=number: view.round.number > number)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    counts = [count for (count,) in stored(store, "SELECT invitations FROM clients")]
    assert sum(counts) >= ROUNDS * TARGET
    assert max(counts) - min(counts) <= 1


def change(store, statement, number):
    with opened(store) as connection, connection.transaction():
        if not connection.run(statement, str(number).encode()):
            connection.run("INSERT INTO metadata (name, value) VALUES ('close', ?)", str(number).encode())


def test_clients_of_an_ended_worker_are_not_waited_for(store, monkeypatch):
    few(store)
    with opened(store) as connection, connection.transaction():
        for name in ("a", "b"):
            enrol(connection, name, name.encode())
        assert note_waiting(connection, "ended", ["a", "b"]) == {"a": 0, "b": 0}
        assert waiting_elsewhere(connection, "mine") == {0: 2}
        assert waiting_elsewhere(connection, "ended") == {}
        monkeypatch.setattr("federank.service.server.store.grants.WAITING_SECONDS", -1.0)
        assert waiting_elsewhere(connection, "mine") == {}


async def test_a_late_upload_is_not_charged(store):
    """Four are invited for three uploads: the one that comes too late may send as many uploads as before."""
    few(store, {"target": 3, "over_selection": 4 / 3})
    async with serving(store) as running:
        devices = await running.devices(4)
        made = [await prepared(*one) for one in zip(devices, HISTORIES[:4], strict=True)]
        for device, (ticket, body) in zip(devices[:3], made[:3], strict=True):
            assert (await device.send(ticket, body)).status_code == 201
        await running.version(1)
        ticket, body = made[3]
        assert (await devices[3].task(ticket)).status_code == 410, "withdrawn before it computes"
        assert (await devices[3].send(ticket, body)).status_code == 410
    charged = dict(stored(store, "SELECT client, invitations FROM clients"))
    assert [charged[device.name] for device in devices] == [1, 1, 1, 0]


@pytest.mark.slow
async def test_other_workers_give_no_second_ticket(store):
    async with serving(store, {"target": 3} | PATIENT) as running, serving(store) as another:
        device = await running.device()
        await device.upload(some_update(1))
        await another.open_round()
        device.client = another.client
        assert (await device.work(wait=1)).status_code == 204


@pytest.fixture
def connection(store):
    establish_small(store)
    with opened(store) as connection:
        yield connection


def test_only_open_rounds_grant_tickets(connection):
    open_round(connection, 0, 0)
    one, other = (make_ticket(b"k" * 32, device, 0, 0) for device in ("one", "other"))
    assert grant(connection, 0, {one: "one"}, set(), 9)[:3] == ([one], set(), set())
    assert grant(connection, 0, {one: "one"}, {one}, 9)[:3] == ([one], set(), set())
    close_round(connection, 0, 0)
    assert grant(connection, 0, {one: "one", other: "other"}, {one}, 9)[:3] == ([], set(), set())
    assert connection.one("SELECT granted FROM grants") == (1,)
    nothing = grant(connection, 1, {other: "other"}, set(), 9)
    assert nothing[:3] == ([], set(), set()), "nor has one that has not begun"


def test_tallies_of_clients_departures_and_discarded_rounds(connection):
    for name in ("one", "two", "three"):
        enrol(connection, name, name.encode())
    for name in ("two", "two", "nobody"):
        leave(connection, name)
    open_round(connection, 0, 0)
    close_round(connection, 0, minimum=1)
    assert tallies(connection) == (2, 1, 1)
    assert connection.one("SELECT COUNT(*) FROM clients") == (2,)
