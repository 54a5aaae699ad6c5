"""The ledger: what has left a device, as its owner may read it and as an observer would."""

import numpy as np
import pytest

from federank.errors import BadFile
from federank.protocol.ledger import Entry, Ledger, read_ledger
from federank.protocol.messages import Update
from federank.protocol.policy import Outward

OUTWARD = Outward(np.array([2, 5, 8], np.int32), np.array([True, False, True]), np.ones(3, np.bool_), True)


def update(**biases):
    rows = {int(name[1:]): bias for name, bias in biases.items()}
    items = np.array(sorted(rows), np.int32)
    return Update(items, np.ones((len(items), 2), np.float32), np.array([rows[item] for item in items], np.float32))


def ledger():
    kept = Ledger()
    kept.record(3, OUTWARD, update(_2=0.5, _4=-0.5))
    kept.record(9, OUTWARD, update(_2=0.25, _5=0.1, _4=-0.1, _7=-0.3))
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
    kept.record(10, decoys_now, update(_2=0.5, _5=0.5, _8=0.5))
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


@pytest.mark.parametrize("name", ["ledger.csv", "ledger.json"])
def test_an_exported_ledger_comes_back_whole(tmp_path, name):
    path = tmp_path / name
    ledger().write(path)
    assert read_ledger(path) == ledger()
    assert [child.name for child in tmp_path.iterdir()] == [name]


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


@pytest.mark.parametrize(
    "content", ["item,real\n1,True\n", "item,first_round,last_round,times_liked\nx,1,1,1\n", "\x00"]
)
def test_what_is_no_ledger_is_refused(tmp_path, content):
    path = tmp_path / "ledger.csv"
    path.write_text(content + "1,2\n")
    with pytest.raises(BadFile, match="ledger"):
        read_ledger(path)


def test_a_ledger_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(BadFile, match="cannot be written"):
        ledger().write(tmp_path / "missing" / "ledger.csv")
