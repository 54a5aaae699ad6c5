"""A device's file of the version before: it opens, its interrupted Update is sent, and it goes on."""

import sqlite3
from pathlib import Path

import pytest
from tests.service.device.worlds import FACTORS, ITEMS, scripted_federation

from federank.protocol.messages import decode_update
from federank.service.device.life import take_part
from federank.service.device.owner.recommending import recommend
from federank.service.device.requests.client import Client
from federank.service.device.store.store import DeviceStore

DUMP = Path(__file__).with_name("device_of_0_1_0.sql")
"""Written by version 0.1.0: a history of four items, sticky half of it, three rounds stored, a fourth interrupted."""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "device.sqlite"
    sql = sqlite3.connect(path)
    sql.executescript(DUMP.read_text())
    sql.close()
    path.chmod(0o600)
    return path


def test_a_device_of_version_0_1_0_is_read_as_it_was_written(path):
    with DeviceStore(path) as store:
        identity, (policy, chosen_by) = store.identity(), store.policy()
        assert (identity.device, identity.seed, identity.facts.n_items) == ("d1", 577090037, ITEMS)
        assert (policy.sharing, policy.pi, policy.never_items, chosen_by) == ("sticky", 0.5, {4}, "owner")
        assert store.profile().tolist() == [1, 4, 6, 9]
        assert (store.rounds(), store.last_ticket(), store.model_version()) == (4, "ticket4", 3)
        assert store.round_vector(FACTORS).items == {6, 9}
        assert store.ledger().really_liked().tolist() == [6, 9]
        assert {suggestion.item for suggestion in recommend(store, ITEMS)}.isdisjoint({"101", "104", "106", "109"})


def test_a_device_of_version_0_1_0_sends_what_was_interrupted_and_goes_on(path):
    with scripted_federation() as federation, DeviceStore(path) as store:
        federation.version, federation.tickets = 3, 4
        waiting = store.pending()
        with Client(federation.address, token="t1", sleep=lambda _: None) as client:
            assert take_part(store, client, 2, lambda _: None) == 3
        assert federation.uploads[0] == ("ticket4", waiting.body)
        assert [ticket for ticket, _ in federation.uploads] == ["ticket4", "ticket5", "ticket6"]
        for _, body in federation.uploads:
            update = decode_update(body, FACTORS, ITEMS)
            assert set(update.items[update.biases > 0].tolist()) <= {6, 9}
        assert store.rounds() == 6
        assert store.pending() is None
