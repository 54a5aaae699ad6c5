"""Who is invited, where uploads are counted: everyone before anyone twice, whichever worker they wait at."""

import asyncio

from tests.service.federations import ITEMS, in_a_loop, opened, serving, stored
from tests.service.server.test_few_messages import FACTORS, HISTORIES, few, message_of

from federank.methods.frugal.wire import decode_frugal_broadcast, encode_frugal_update
from federank.service.server.store.grants import note_waiting, waiting_elsewhere
from federank.service.server.store.queries import (
    enrol,
)

ROUNDS, TARGET, CLIENTS = 20, 5, 24


async def wait_again_and_again(device):
    """A client that takes every ticket it is given."""
    while True:
        await device.work(wait=2)


@in_a_loop
async def test_two_workers_invite_all_clients_equally_often(store):
    """A third of the clients wait at one worker, the others at the other one."""
    few(store, {"target": TARGET}, messages=ROUNDS)
    async with serving(store) as one, serving(store) as other:
        places = [one if number % 3 == 0 else other for number in range(CLIENTS)]
        devices = [await place.device() for place in places]
        tasks = [asyncio.create_task(wait_again_and_again(device)) for device in devices]
        for number in range(ROUNDS):
            await one.open_round(number)
            await one.until(lambda view: view.round.granted == TARGET)
            change(store, "UPDATE metadata SET value = ? WHERE name = 'close'", number)
            await one.until(lambda view, number=number: view.round.number > number)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    counts = [count for (count,) in stored(store, "SELECT invitations FROM devices")]
    assert sum(counts) >= ROUNDS * TARGET
    assert max(counts) - min(counts) <= 1


def change(store, statement, number):
    with opened(store) as connection, connection.transaction():
        if not connection.run(statement, str(number).encode()):
            connection.run("INSERT INTO metadata (name, value) VALUES ('close', ?)", str(number).encode())


def test_a_worker_that_has_ended_keeps_no_room(store, monkeypatch):
    few(store)
    with opened(store) as connection, connection.transaction():
        for name in ("a", "b"):
            enrol(connection, name, name.encode())
        assert note_waiting(connection, "ended", ["a", "b"]) == {"a": 0, "b": 0}
        assert waiting_elsewhere(connection, "mine") == {0: 2}
        assert waiting_elsewhere(connection, "ended") == {}
        monkeypatch.setattr("federank.service.server.store.grants.WAITING_SECONDS", -1.0)
        assert waiting_elsewhere(connection, "mine") == {}


@in_a_loop
async def test_a_late_upload_is_not_charged(store):
    """Four are asked for three uploads: the one that comes too late may send as many uploads as before."""
    few(store, {"target": 3, "over_selection": 4 / 3})
    async with serving(store) as running:
        devices = [await running.device() for _ in range(4)]
        tickets = [await device.ticket() for device in devices]
        broadcast = decode_frugal_broadcast((await devices[0].task(tickets[0])).content, FACTORS, ITEMS)
        bodies = [encode_frugal_update(message_of(broadcast, history)) for history in HISTORIES[:4]]
        for device, ticket, body in list(zip(devices, tickets, bodies, strict=True))[:3]:
            assert (await device.send(ticket, body)).status_code == 201
        await running.version(1)
        assert (await devices[3].task(tickets[3])).status_code == 410, "withdrawn before it computes"
        assert (await devices[3].send(tickets[3], bodies[3])).status_code == 410
    charged = dict(stored(store, "SELECT device, invitations FROM devices"))
    assert [charged[device.name] for device in devices[:3]] == [1, 1, 1]
    assert charged[devices[3].name] == 0
