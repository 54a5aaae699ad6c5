"""The ledger: what has left a device, as its owner may read it and as an observer would."""

import numpy as np
import pytest
from tests.secagg.worlds import secagg_config
from tests.squares_worlds import some_people, squares_federation

from federank.errors import BadFile
from federank.federation.client import epsilon_promised, epsilon_so_far
from federank.methods.frugal.engines import FrugalClients, added_up
from federank.privacy.accountant import epsilon_of_mu
from federank.privacy.ledger import Entry, Ledger, SentMessage
from federank.privacy.policy import SharedProfile

OUTWARD = SharedProfile(np.array([2, 5, 8], np.int32), np.array([True, False, True]), np.ones(3, np.bool_), True)


def update(**biases):
    rows = {int(name[1:]): bias for name, bias in biases.items()}
    items = np.array(sorted(rows), np.int32)
    raised = np.array([rows[item] > 0 for item in items.tolist()], dtype=np.bool_)
    return items[raised], items[~raised]


def ledger():
    kept = Ledger()
    kept.record(3, OUTWARD, *update(_2=0.5, _4=-0.5))
    kept.record(9, OUTWARD, *update(_2=0.25, _5=0.1, _4=-0.1, _7=-0.3))
    return kept


def test_every_row_that_leaves_is_entered_with_when_how_often_and_as_what():
    assert list(ledger().entries.values()) == [
        Entry(2, 3, 9, 2, 0, True),
        Entry(4, 3, 9, 0, 2, None),
        Entry(5, 9, 9, 1, 0, False),
        Entry(7, 9, 9, 0, 1, None),
    ]
    assert ledger().liked().tolist() == [2, 5]


def test_what_left_as_real_once_stays_real_when_it_is_sent_as_a_decoy_later():
    kept = ledger()
    decoys_now = OUTWARD._replace(real=np.array([False, True, False]))
    kept.record(10, decoys_now, *update(_2=0.5, _5=0.5, _8=0.5))
    assert {item: kept.entries[item].real for item in (2, 5, 8)} == {2: True, 5: True, 8: False}
    assert kept.liked().tolist() == [2, 5, 8]
    assert kept.really_liked().tolist() == [2, 5]
    assert kept.disclosed([2, 5, 8, 9]) == 0.5


def test_the_disclosed_share_counts_what_is_really_ones_own():
    history = [2, 8, 30, 31]
    assert Ledger().disclosed(history) == 0
    assert ledger().disclosed(history) == 0.25
    assert ledger().disclosed([5, 6]) == 0  # a decoy that happens to be asked about
    assert ledger().disclosed([]) == 0


def test_rows_are_plain_values():
    assert ledger().to_rows()[0] == {
        "item": 2,
        "first_round": 3,
        "last_round": 9,
        "times_liked": 2,
        "times_compared": 0,
        "real": True,
    }
    as_in_sqlite = [row | {"real": None if row["real"] is None else int(row["real"])} for row in ledger().to_rows()]
    assert Ledger.from_rows(as_in_sqlite) == ledger()


@pytest.mark.parametrize("row", [{}, {"item": "x"}, {"item": 1, "real": 2}])
def test_rows_that_cannot_be_read_are_refused(row):
    with pytest.raises(BadFile):
        Ledger.from_rows([row])


def with_messages():
    kept = Ledger()
    kept.record_message(4, OUTWARD, 1, 5)
    later = SharedProfile(np.array([5, 9], np.int32), np.array([True, True]), np.ones(2, np.bool_), True)
    kept.record_message(6, later, 2, 5)
    return kept


def test_a_message_made_from_everything_is_entered_with_what_stood_for_the_history():
    kept = with_messages()
    assert kept.messages == [SentMessage(1, 5, 4, 3), SentMessage(2, 5, 6, 2)]
    assert list(kept.entries.values()) == [
        Entry(2, 4, 4, 1, 0, True),
        Entry(5, 4, 6, 2, 0, True),  # a decoy first, and really liked later: it stays real
        Entry(8, 4, 4, 1, 0, True),
        Entry(9, 6, 6, 1, 0, True),
    ]
    assert (kept.spent, Ledger().spent) == (2, 0)
    assert kept.disclosed([2, 9, 30, 31]) == 0.5


def test_messages_survive_their_rows():
    assert Ledger.from_rows(with_messages().to_rows(), with_messages().message_rows()) == with_messages()


def test_the_ledgers_of_the_reference_engine_tell_every_message_and_what_it_was_made_from():
    federation = squares_federation(some_people(), messages=2, cohorts=2, dropout=0.5, allowed=np.arange(80) % 3)
    fleet = FrugalClients(federation)
    for _ in range(federation.schedule.rounds):
        asked, _ = federation.invite()
        updates = dict(enumerate(fleet.train(asked, federation.model)))
        federation.finish(asked, added_up(federation, updates))
    columns = fleet.ledgers, federation.sent, federation.schedule.uploads, fleet.shared_profiles
    for kept, spent, allowed, taken in zip(*columns, strict=True):
        assert kept.spent == len(kept.messages) == spent <= allowed
        assert all(message.allowed == allowed for message in kept.messages)
        expected = taken.profile if spent else []
        np.testing.assert_array_equal(kept.liked(), expected)


def test_the_guarantee_of_a_season_is_that_of_its_noise():
    config, quiet = secagg_config(), secagg_config(noise=0)
    assert epsilon_promised(config) == epsilon_of_mu(config.mu(), float(config.delta))
    assert epsilon_promised(secagg_config(noise=900)) < epsilon_promised(config)
    assert epsilon_promised(quiet) is None
    assert epsilon_so_far(config, Ledger()) == 0
