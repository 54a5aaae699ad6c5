"""The parts of the demo that need no browser and no server; tests/service/web/test_neighbourhood.py has the rest."""

import time

import numpy as np
import pytest

from federank.service import demo as demo_clients
from federank.service.demo import CLIENTS, GENERATION_SECONDS, PEOPLE, REQUESTS_PER_SECOND, WORLDS
from federank.service.helper.store import FORMAT, SCHEMA, add_round, end_round
from federank.service.server.store.database import Database
from federank.service.server.store.schema import create_tables
from federank.service.server.store.secure import put_answer, put_offer, put_record

MESSAGES = 5


@pytest.mark.parametrize("world", WORLDS)
def test_those_who_take_part_later_have_other_lists_of_the_same_catalogue(world):
    draw, draw_others, *_ = WORLDS[world]
    first, later, last = draw(seed=3), draw_others(200, 3, 4), draw_others(200, 3, 5)
    title_of = dict(zip(first.item_ids.tolist(), first.titles.tolist(), strict=True))
    for others in (later, last):
        assert others.n_users == 200
        assert dict(zip(others.item_ids.tolist(), others.titles.tolist(), strict=True)).items() <= title_of.items()
    assert later.items.tolist() != last.items.tolist()


def test_more_people_are_drawn_than_get_a_turn_in_that_time():
    assert PEOPLE > CLIENTS + GENERATION_SECONDS * REQUESTS_PER_SECOND / MESSAGES


def test_only_the_latest_sums_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_clients, "PRUNING_SECONDS", 0.01)
    monkeypatch.setattr(demo_clients, "KEPT_SUMS", 3)
    stores = [f"sqlite:///{tmp_path / name}" for name in ("leader.sqlite", "helper.sqlite")]
    leader, helper = (Database(store) for store in stores)
    with leader.connection() as connection:
        create_tables(connection)
        for number in range(8):
            put_offer(connection, number, b"offer", 2)
            put_answer(connection, number, b"record", np.ones(2, dtype=np.uint32))
            put_record(connection, number, b"record", b"noisy", b"members")
    with helper.connection() as connection:
        create_tables(connection, SCHEMA, FORMAT)
        for number in range(8):
            add_round(connection, b"config", number, b"terms", b"public", b"offer", 0)
            end_round(connection, b"config", number, "answered", b"record", total=b"total")

    def kept():
        with leader.connection() as connection:
            sums = connection.all("SELECT round FROM sums WHERE LENGTH(noisy) > 0 AND LENGTH(helper_sum) > 0")
        with helper.connection() as connection:
            totals = connection.all("SELECT number FROM rounds WHERE LENGTH(total) > 0")
        return [number for (number,) in sums], [number for (number,) in totals]

    assert kept() == (list(range(8)), list(range(8)))
    with demo_clients.dropping_old_sums(*stores):
        for _ in range(6000):
            if kept() == ([5, 6, 7], [5, 6, 7]):
                break
            time.sleep(0.01)
    assert kept() == ([5, 6, 7], [5, 6, 7])
    with leader.connection() as connection:
        assert connection.one("SELECT COUNT(*) FROM sums WHERE LENGTH(record) > 0") == (8,)
    leader.release()
    helper.release()
