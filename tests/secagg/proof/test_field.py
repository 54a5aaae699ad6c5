"""The field of 2^64 - 2^32 + 1 elements: compiled arithmetic against Python's integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federank.secagg.proof import field
from federank.secagg.proof.circuit import random_elements
from federank.secagg.proof.field import MODULUS

EDGES = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63, MODULUS - 2**32, MODULUS - 2, MODULUS - 1]
elements = st.one_of(st.sampled_from(EDGES), st.integers(0, MODULUS - 1))
pairs = st.lists(st.tuples(elements, elements), min_size=1, max_size=200)


@settings(max_examples=30, deadline=None)
@given(pairs)
def test_arithmetic_is_that_of_integers_modulo_p(numbers):
    one, other = (np.array(side, dtype=np.uint64) for side in zip(*numbers, strict=True))
    assert field.sums(one, other).tolist() == [(a + b) % MODULUS for a, b in numbers]
    assert field.differences(one, other).tolist() == [(a - b) % MODULUS for a, b in numbers]
    assert field.products(one, other).tolist() == [a * b % MODULUS for a, b in numbers]
    assert field.inner(one, other) == sum(a * b for a, b in numbers) % MODULUS


def test_every_pair_of_edges_is_right():
    one, other = (side.ravel().astype(np.uint64) for side in np.meshgrid(*[np.array(EDGES, dtype=np.uint64)] * 2))
    expected = [a * b % MODULUS for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert field.products(one, other).tolist() == expected


@pytest.mark.parametrize("order", [2, 32, 128])
def test_values_and_coefficients_of_polynomials_follow_from_each_other(order):
    rng = np.random.default_rng(order)
    coefficients = rng.integers(0, MODULUS, (order, 3), dtype=np.uint64)
    root = field.root_of_unity(order)
    values = field.ntt(coefficients, np.uint64(root))
    for row in (0, 1, order - 1):
        x = pow(root, row, MODULUS)
        by_hand = [sum(int(c) * pow(x, n, MODULUS) for n, c in enumerate(coefficients[:, i])) for i in range(3)]
        assert values[row].tolist() == [value % MODULUS for value in by_hand]
    np.testing.assert_array_equal(field.interpolated(values), coefficients)
    point = 123_456_789
    told = field.combined(field.weights_at(point, order), values)
    assert int(told[0]) == field.inner(coefficients[:, 0].copy(), field.powers(point, order))


def test_words_that_are_no_elements_are_left_out():
    words = np.array([MODULUS, 5, 2**64 - 1, MODULUS - 1, 7, 8, MODULUS + 1, 9], dtype="<u8")

    class Stream:
        at = 0

        def next(self, length):
            self.at += length
            return words.tobytes()[self.at - length : self.at]

    assert random_elements(Stream(), 4).tolist() == [5, MODULUS - 1, 7, 8]
