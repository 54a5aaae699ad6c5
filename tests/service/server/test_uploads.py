"""Kinds of upload: what is refused when it arrives, what is shortened, and what it adds to its round's sum."""

import numpy as np
import pytest
from tests.service.federations import ITEMS, KEEP, PATIENT, in_a_loop, serving, some_update

from federank.errors import BadMessage
from federank.federation.server import Form
from federank.methods.fpl import wire as messages
from federank.methods.fpl.server import FPL_SERVER, shortened
from federank.methods.fpl.wire import CheckedUpdate, Update, encode

FORM = Form(factors=3, n_items=ITEMS, most_rows=4, most_norm=2.0, most_bytes=10_000)
PLAIN = FPL_SERVER.kinds["plain"]


def rows(*lengths, factors=3):
    """An Update whose rows (vector and bias together) have these lengths, all numbers of a row being equal."""
    each = np.array(lengths, dtype=np.float32) / np.sqrt(np.float32(factors + 1))
    vectors = np.repeat(each[:, None], factors, axis=1)
    return Update(np.arange(len(lengths), dtype=np.int32), vectors, each.copy())


def lengths_of(update):
    return np.sqrt((update.vectors.astype(np.float64) ** 2).sum(axis=1) + update.biases.astype(np.float64) ** 2)


@pytest.mark.parametrize("lengths", [(), (1.9,), (0.0, 1.0, 1.99), (2.0,)])
def test_rows_that_are_short_enough_are_not_touched(lengths):
    update = rows(*lengths)
    assert PLAIN.judge(encode(update), FORM) == 0
    for one, other in zip(PLAIN.summand(encode(update), FORM), update, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("length", [2.01, 2.5, 2.9, 3.1, 100.0])
def test_a_row_that_is_a_little_too_long_is_shortened_and_counted(length):
    body = encode(rows(1.0, length, 0.5))
    assert PLAIN.judge(body, FORM) == 1
    np.testing.assert_allclose(lengths_of(PLAIN.summand(body, FORM)), [1.0, 2.0, 0.5], rtol=1e-6)


def test_one_long_number_among_small_ones_is_enough_to_be_shortened():
    update = Update(np.array([3], np.int32), np.array([[0.0, -2.5, 0.0]], np.float32), np.zeros(1, np.float32))
    assert PLAIN.judge(encode(update), FORM) == 1
    np.testing.assert_allclose(PLAIN.summand(encode(update), FORM).vectors, [[0, -2, 0]], rtol=1e-6)


def test_a_long_bias_counts_as_its_rows_length():
    update = Update(np.array([3], np.int32), np.zeros((1, 3), np.float32), np.array([-8], np.float32))
    assert PLAIN.judge(encode(update), FORM) == 1
    np.testing.assert_allclose(PLAIN.summand(encode(update), FORM).biases, [-2.0], rtol=1e-6)


def test_shortening_keeps_the_direction():
    update = Update(np.array([3], np.int32), np.array([[3, 0, -4]], np.float32), np.array([12], np.float32))
    np.testing.assert_allclose(shortened(update, 6.5).vectors, [[1.5, 0, -2]], rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"garbage", "is a safetensors message"),
        (encode(some_update(1, rows=5)), "has 5 rows; the task allows 4"),
        (encode(some_update(1, factors=4)), "of shape"),
        (encode(some_update(1, items=ITEMS + 20, rows=4)), "within 0 to"),
        (encode(rows(float("nan"))), "not finite"),
    ],
)
def test_what_is_out_of_bounds_is_refused_with_a_sentence(body, sentence):
    with pytest.raises(BadMessage, match=sentence):
        PLAIN.judge(body, FORM)


def test_an_upload_of_as_many_rows_as_the_task_allows_is_taken():
    assert PLAIN.judge(encode(some_update(1, rows=4)), FORM) == 0


def test_what_an_upload_adds_is_known_to_be_checked_shortened_or_not():
    for update in (rows(1.0), rows(5.0)):
        assert isinstance(PLAIN.summand(encode(update), FORM), CheckedUpdate)


@in_a_loop
async def test_an_update_is_checked_once_when_it_arrives_and_not_again_when_it_is_folded(sqlite_store, monkeypatch):
    checked = []
    check = messages.check_values
    monkeypatch.setattr(messages, "check_values", lambda *values: (checked.append(values[:2]), check(*values)))
    async with serving(sqlite_store, {"target": 2, "over_selection": 1.0} | PATIENT, KEEP) as running:
        for seed in (1, 2):
            device = await running.device()
            assert (await device.take_part(some_update(seed))).status_code == 201
        await running.version(1)
    updates = [one for one in checked if one[0] == "an Update"]  # the server reads its own Broadcasts too
    assert updates == [("an Update", "vectors"), ("an Update", "biases")] * 2
