"""Kinds of upload: what is refused when it arrives, what is shortened, and what it adds to its round's sum."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.service.federations import FPL_SERVER, ITEMS, some_update

from federank.errors import BadMessage
from federank.federation import wire
from federank.federation.defences import shortened
from federank.federation.wire import encode
from federank.methods.fpl.method import FPL, FPLUpdate
from federank.service.server.model_versions import first_model

FORM = FPL_SERVER.form(FPL(factors=3, triples=2), ITEMS, 2.0)
PLAIN = FPL_SERVER.kinds["plain"]


def rows(*lengths, factors=3):
    """An Update whose rows (vector and bias together) have these lengths, all numbers of a row being equal."""
    each = np.array(lengths, dtype=np.float32) / np.sqrt(np.float32(factors + 1))
    vectors = np.repeat(each[:, None], factors, axis=1)
    return FPLUpdate(np.arange(len(lengths), dtype=np.int32), vectors, each.copy())


def lengths_of(update):
    return np.sqrt((update.vectors.astype(np.float64) ** 2).sum(axis=1) + update.biases.astype(np.float64) ** 2)


@pytest.mark.parametrize("lengths", [(), (1.9,), (0.0, 1.0, 1.99), (2.0,)])
def test_rows_that_are_short_enough_are_not_touched(lengths):
    update = rows(*lengths)
    assert PLAIN.judge(encode(update), FORM) == 0
    np.testing.assert_equal(wire.values(PLAIN.summand(encode(update), FORM)), wire.values(update))


@pytest.mark.parametrize("length", [2.01, 2.5, 2.9, 3.1, 100.0])
def test_a_row_that_is_a_little_too_long_is_shortened_and_counted(length):
    body = encode(rows(1.0, length, 0.5))
    assert PLAIN.judge(body, FORM) == 1
    np.testing.assert_allclose(lengths_of(PLAIN.summand(body, FORM)), [1.0, 2.0, 0.5], rtol=1e-6)


def test_one_long_number_among_small_ones_is_enough_to_be_shortened():
    update = FPLUpdate(np.array([3], np.int32), np.array([[0.0, -2.5, 0.0]], np.float32), np.zeros(1, np.float32))
    assert PLAIN.judge(encode(update), FORM) == 1
    np.testing.assert_allclose(PLAIN.summand(encode(update), FORM).vectors, [[0, -2, 0]], rtol=1e-6)


def test_a_long_bias_counts_as_its_rows_length():
    update = FPLUpdate(np.array([3], np.int32), np.zeros((1, 3), np.float32), np.array([-8], np.float32))
    assert PLAIN.judge(encode(update), FORM) == 1
    np.testing.assert_allclose(PLAIN.summand(encode(update), FORM).biases, [-2.0], rtol=1e-6)


def test_shortening_keeps_the_direction():
    update = FPLUpdate(np.array([3], np.int32), np.array([[3, 0, -4]], np.float32), np.array([12], np.float32))
    np.testing.assert_allclose(shortened(update, 6.5).update.vectors, [[1.5, 0, -2]], rtol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        b"garbage",
        encode(some_update(1, rows=5)),
        encode(some_update(1, factors=4)),
        encode(some_update(1, items=ITEMS + 20, rows=4)),
        encode(rows(float("nan"))),
    ],
)
def test_what_is_out_of_bounds_is_refused(body):
    with pytest.raises(BadMessage):
        PLAIN.judge(body, FORM)


def test_an_upload_of_as_many_rows_as_the_task_allows_is_taken():
    assert PLAIN.judge(encode(some_update(1, rows=4)), FORM) == 0


def test_an_upload_is_scaled_down_to_the_clip():
    form = FPL_SERVER.form(FPL(factors=3, triples=2, clip=1.5), ITEMS, 2.0)
    summand = PLAIN.summand(encode(rows(1.0, 2.0, 3.0)), form)
    np.testing.assert_allclose(lengths_of(summand), np.array([1.0, 2.0, 2.0]) / 2, rtol=1e-6)


@pytest.mark.parametrize("biases", [(100.0,), (1.0, -0.5), (8.0, -8.0), (5.0, 5.0, -10.0), (-8.0,)])
def test_an_upload_that_no_pairs_give_is_implausible(biases):
    assert why_implausible(biases) is not None


@pytest.mark.parametrize("biases", [(7.0, -7.0), (-7.0,), (3.5, 3.5, -1.0, -6.0)])
def test_an_upload_that_some_pairs_give_is_plausible(biases):
    assert why_implausible(biases) is None


def why_implausible(biases):
    method, count = FPL(n_items=ITEMS, factors=3, triples=7), len(biases)
    model = first_model(FPL_SERVER.first_content(method, SimpleNamespace(n_items=ITEMS), None))
    body = encode(FPLUpdate(np.arange(count, dtype=np.int32), np.zeros((count, 3), np.float32), np.float32(biases)))
    return FPL_SERVER.implausible(method, model, body)
