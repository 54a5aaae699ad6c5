"""Rounding: integers of bounded length that are right on average and add up in a ring."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from federank.errors import BadMessage
from federank.secagg.ring import C_INT, centred, in_ring, in_units, round_message

MESSAGES = arrays(np.float64, st.integers(0, 50), elements=st.floats(-1e6, 1e6))


def chances(seed, count):
    return np.random.default_rng(seed).integers(0, 2**16, count, dtype=np.uint16)


@given(values=MESSAGES, clip=st.floats(1e-3, 1e6), seed=st.integers(0, 2**32))
def test_no_message_is_longer_than_the_largest_norm_in_integers(values, clip, seed):
    whole = round_message(values, clip, chances(seed, len(values)))
    assert int(np.sum(whole.astype(object) ** 2)) <= C_INT**2


def test_rounding_is_right_on_average():
    values = np.array([0.3, -0.4, 0.00007, 0.0])
    drawn = [in_units(round_message(values, 1.0, chances(seed, 4)), 1.0) for seed in range(4000)]
    # A number is off by at most one step; this many roundings leave a hundredth of that.
    assert np.mean(drawn, axis=0) == pytest.approx(values, abs=4 * 0.5 / C_INT / 4000**0.5)


def test_a_short_message_keeps_its_size_and_a_long_one_its_direction():
    short, long = np.array([0.3, 0.4]), np.array([3e9, 4e9])
    assert in_units(round_message(short, 1.0, chances(1, 2)), 1.0) == pytest.approx(short, abs=2 / C_INT)
    assert in_units(round_message(long, 1.0, chances(1, 2)), 1.0) == pytest.approx([0.6, 0.8], abs=3 / C_INT)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_what_is_not_a_finite_number_is_refused_and_nothing_leaves(value):
    with pytest.raises(BadMessage, match="not finite"), np.errstate(over="ignore"):
        round_message(np.array([1.0, value]), 1.0, chances(1, 2))


@given(whole=arrays(np.int32, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(-(10**8), 10**8)))
def test_sums_in_the_ring_are_the_sums(whole):
    summed = np.zeros(whole.shape[1], dtype=np.uint32)
    for row in whole:
        summed += in_ring(row)
    assert centred(summed).tolist() == whole.astype(np.int64).sum(axis=0).tolist()
