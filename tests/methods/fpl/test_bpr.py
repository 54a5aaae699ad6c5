"""The maths of a pair: a safe sigmoid, and gradients that are the derivative of what they claim to climb."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank._numerics.compiling import compiled
from federank._numerics.rows import dot, load_row, padded_width, store_row
from federank.methods.fpl.method import item_gradient, pair_slope, slope, user_gradient


@compiled
def compiled_slope(x):
    return slope(x)


@given(x=st.floats(allow_nan=False, width=32))
def test_the_slope_is_accurate_and_never_overflows(x):
    x = np.float32(x)
    exact = 1 / (1 + np.exp(np.clip(np.float64(x), -700, 700)))
    assert float(slope(x)) == pytest.approx(exact, rel=1e-5, abs=1e-30)
    assert float(compiled_slope(x)) == pytest.approx(exact, rel=1e-5, abs=1e-30)


def test_gradients_are_the_derivative_of_the_pairs_likelihood():
    rng = np.random.default_rng(3)
    p, q_i, q_j = rng.normal(size=(3, 5))
    b_i, b_j = rng.normal(size=2)

    def likelihood(p, q_i, q_j, b_i, b_j):
        return -np.log1p(np.exp(-(p @ (q_i - q_j) + b_i - b_j)))

    def derivative(position):
        values = [p, q_i, q_j, b_i, b_j]
        steps = np.eye(5) * 1e-6 if position < 3 else [1e-6]
        slopes = []
        for step in steps:
            up, down = list(values), list(values)
            up[position], down[position] = values[position] + step, values[position] - step
            slopes.append((likelihood(*up) - likelihood(*down)) / 2e-6)
        return np.array(slopes)

    g = float(pair_slope(*(np.asarray(v, dtype=np.float32) for v in (p, q_i, q_j, b_i, b_j))))
    np.testing.assert_allclose(user_gradient(g, p, q_i, q_j, 0.0), derivative(0), rtol=1e-4)
    np.testing.assert_allclose(item_gradient(g, p, q_i, 0.0), derivative(1), rtol=1e-4)
    np.testing.assert_allclose(item_gradient(-g, p, q_j, 0.0), derivative(2), rtol=1e-4)
    np.testing.assert_allclose(g, derivative(3)[0], rtol=1e-4)
    np.testing.assert_allclose(-g, derivative(4)[0], rtol=1e-4)


def test_regularisers_pull_towards_zero():
    p, q = np.array([1.0, -2.0]), np.array([3.0, 0.0])
    np.testing.assert_allclose(item_gradient(0.0, p, q, 0.5), [-1.5, 0.0])
    np.testing.assert_allclose(user_gradient(0.0, p, q, q, 0.5), [-0.5, 1.0])


@compiled
def combine_rows(table, a, b, width):
    one, other = load_row(table, a, width), load_row(table, b, width)
    store_row(table, 0, np.float32(2.0) * one - other * np.float32(0.5) + one * other)
    return dot(one, other)


@pytest.mark.parametrize("factors", [1, 8, 20, 64])
def test_rows_mean_the_same_interpreted_and_compiled(factors):
    width = padded_width(factors)
    assert width % 8 == 0
    assert width - 8 < factors <= width
    table = np.random.default_rng(factors).normal(size=(3, width)).astype(np.float32)
    compiled_table, interpreted_table = table.copy(), table.copy()
    fast = combine_rows(compiled_table, 1, 2, (0,) * width)
    plain = combine_rows.py_func(interpreted_table, 1, 2, (0,) * width)
    assert fast == pytest.approx(float(plain), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(compiled_table, interpreted_table, rtol=1e-5, atol=1e-6)
