import numpy as np
import pytest

from federank.methods.fedrec.reference import item_gradient, rating_error, user_gradient

REGULARISER = np.float32(0.1)
RNG = np.random.default_rng(4)
U, V = RNG.normal(size=(2, 5)).astype(np.float32)


def loss(user, item, rating):
    return ((user @ item - rating) ** 2 + REGULARISER * (user @ user) + REGULARISER * (item @ item)) / 2


def slopes(function, at):
    """Numerical derivatives in every direction."""
    steps = np.eye(len(at)) * 1e-4
    return [(function(at + step) - function(at - step)) / 2e-4 for step in steps]


def test_the_error_is_prediction_minus_rating():
    assert rating_error(np.float32([1, 2]), np.float32([3, 0.5]), np.float32(5)) == pytest.approx(-1)


def test_gradients_are_the_derivatives_of_the_regularised_squared_error():
    error = rating_error(U, V, np.float32(3))
    with_u = slopes(lambda user: loss(user, V.astype(float), 3), U.astype(float))
    with_v = slopes(lambda item: loss(U.astype(float), item, 3), V.astype(float))
    np.testing.assert_allclose(user_gradient(error, U, V, REGULARISER), with_u, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(item_gradient(error, U, V, REGULARISER), with_v, rtol=1e-4, atol=1e-5)
