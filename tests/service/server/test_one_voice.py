"""One voice each, and none lost: who has reported in a fold, which rounds have tickets to give."""

import pytest
from tests.service.federations import PATIENT, establish_small, in_a_loop, opened, serving, some_update

from federank.service.server.store.grants import grant
from federank.service.server.store.queries import (
    close_round,
    enrol,
    leave,
    open_round,
    tallies,
)
from federank.service.server.tickets import make_ticket


@pytest.mark.slow
@in_a_loop
async def test_another_worker_gives_no_ticket_to_who_has_reported(store):
    async with serving(store, {"target": 3} | PATIENT) as running, serving(store) as another:
        device = await running.device()
        assert (await device.take_part(some_update(1))).status_code == 201
        await another.open_round()
        device.client = another.client
        assert (await device.work(wait=1)).status_code == 204


@pytest.fixture
def connection(store):
    establish_small(store)
    with opened(store) as connection:
        yield connection


def test_a_round_that_is_not_open_has_no_ticket_to_give(connection):
    open_round(connection, 0, 0)
    one, other = (make_ticket(b"k" * 32, device, 0, 0) for device in ("one", "other"))
    assert grant(connection, 0, {one: "one"}, set(), 9)[:3] == ([one], set(), set())
    assert grant(connection, 0, {one: "one"}, {one}, 9)[:3] == ([one], set(), set())
    close_round(connection, 0, 0)
    assert grant(connection, 0, {one: "one", other: "other"}, {one}, 9)[:3] == ([], set(), set())
    assert connection.one("SELECT granted FROM grants") == (1,)
    nothing = grant(connection, 1, {other: "other"}, set(), 9)
    assert nothing[:3] == ([], set(), set()), "nor has one that has not begun"


def test_clients_departures_and_abandoned_rounds_are_counted_as_they_happen(connection):
    for name in ("one", "two", "three"):
        enrol(connection, name, name.encode())
    for name in ("two", "two", "nobody"):
        leave(connection, name)
    open_round(connection, 0, 0)
    close_round(connection, 0, minimum=1)
    assert tallies(connection) == (2, 1, 1)
    assert connection.one("SELECT COUNT(*) FROM devices") == (2,)
