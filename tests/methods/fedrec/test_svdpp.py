"""The short cut of SVD++ against W moved row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.methods.fedrec.kernels import (
    Shift,
    implicit_row,
    moved_together,
    moved_without,
    needs_settling,
    settled,
)
from federank.methods.fedrec.reference import normaliser

FACTORS = 4
WIDTH = (0,) * FACTORS


def started(rows):
    return Shift(np.float32(1), np.zeros(FACTORS, np.float32), rows.sum(axis=0))


def written_out(rows, shift):
    return np.array([implicit_row(rows, place, shift, WIDTH) for place in range(len(rows))])


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(0, 1000))
def test_any_sequence_of_steps_leaves_the_same_w_as_moving_each_row(places, seed):
    # Place 8 is none of the eight: the rating is a virtual one, and all rows move.
    rng = np.random.default_rng(seed)
    plain = rng.normal(size=(8, FACTORS)).astype(np.float32)
    rows = plain.copy()
    shift = started(rows)
    for place in places:
        keep, move = np.float32(rng.uniform(0.8, 1)), rng.normal(size=FACTORS).astype(np.float32) * np.float32(0.1)
        others = np.arange(8) != place
        plain[others] = keep * plain[others] - move
        if place < 8:
            own = implicit_row(rows, place, shift, WIDTH)
            shift = moved_without(rows, place, own, shift, keep, move, 8)
        else:
            shift = moved_together(shift, keep, move, 8)
        if needs_settling(shift):
            shift = settled(rows, 8, shift, WIDTH)
    np.testing.assert_allclose(written_out(rows, shift), plain, atol=2e-5)
    np.testing.assert_allclose(shift.total, plain.sum(axis=0), atol=1e-4)


def test_settling_changes_no_w():
    rows = np.random.default_rng(1).normal(size=(3, FACTORS)).astype(np.float32)
    shift = Shift(np.float32(1e-4), np.ones(FACTORS, np.float32), np.zeros(FACTORS, np.float32))
    before = written_out(rows, shift)
    assert needs_settling(shift)
    after = settled(rows, 3, shift, WIDTH)
    assert not needs_settling(after)
    np.testing.assert_array_equal(written_out(rows, after), before)


def test_an_empty_sum_needs_no_normaliser():
    assert normaliser(0) == 1
    assert normaliser(4) == pytest.approx(0.5)
