"""The server's step of pair-wise learning: adding, Adam, and a pull towards zero."""

import numpy as np
import pytest

from federank.federation.round import Adam, adam_step
from federank.methods.fpl.method import Shared, first_moments
from federank.methods.fpl.settings import FPLSettings, recipe_for
from federank.methods.fpl.wire import Update


def recipe(**settings):
    return recipe_for(FPLSettings(factors=2, learning_rate=0.1, **settings), np.array([1]), 3, np.ones(1))


def server(recipe):
    vectors = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)
    moments = (first_moments(recipe, 3), first_moments(recipe, 3))
    return Shared(vectors, np.array([1, 2, 3], dtype=np.float32), 0, *moments)


UPDATE = Update(np.array([1], np.int32), np.array([[2, -8]], np.float32), np.array([0.5], np.float32))


def test_the_first_step_of_adam_is_the_rate_in_the_direction_of_the_sum_whatever_its_size():
    adam = recipe(server="adam")
    shared = server(adam)
    shared.aggregate(adam, [UPDATE])
    np.testing.assert_allclose(shared.vectors, [[1, 2], [3.1, 3.9], [5, 6]], atol=1e-6)
    np.testing.assert_allclose(shared.biases, [1, 2.1, 3], atol=1e-6)


def test_adam_goes_on_where_it_was_heading():
    adam = recipe(server="adam")
    shared = server(adam)
    for _ in range(2):
        shared.aggregate(adam, [UPDATE])
    before = shared.vectors.copy()
    shared.aggregate(adam, [UPDATE._replace(vectors=np.zeros((1, 2), np.float32))])
    assert shared.vectors[1, 0] > before[1, 0]
    assert shared.vectors[1, 1] < before[1, 1]


def test_adam_is_the_published_formula():
    rng, adam = np.random.default_rng(0), Adam(0.1, 0.8, 0.9)
    values = rng.normal(size=(4, 3)).astype(np.float32)
    mean, square = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    x, m, v = values.astype(float), np.zeros((4, 3)), np.zeros((4, 3))
    for step in range(1, 6):
        gradient = rng.normal(size=(4, 3)).astype(np.float32)
        values = adam_step(adam, values, gradient, mean, square, step)
        m, v = 0.8 * m + 0.2 * gradient, 0.9 * v + 0.1 * gradient.astype(float) ** 2
        x = x - 0.1 * (m / (1 - 0.8**step)) / (np.sqrt(v / (1 - 0.9**step)) + 1e-8)
    np.testing.assert_allclose(values, x, atol=1e-5)


def test_a_pull_moves_every_vector_towards_zero_and_no_bias():
    pulled = recipe(item_pull=2.0)
    shared = server(pulled)
    shared.aggregate(pulled, [UPDATE._replace(vectors=np.zeros((1, 2), np.float32))])
    np.testing.assert_allclose(shared.vectors, 0.8 * np.array([[1, 2], [3, 4], [5, 6]]), rtol=1e-6)
    np.testing.assert_allclose(shared.biases, [1, 2.05, 3], rtol=1e-6)


@pytest.mark.parametrize("settings", [{"server": "adam", "item_pull": 2.0}, {"item_pull": 2.0}, {}], ids=str)
def test_a_round_without_an_update_leaves_the_model_as_it_is(settings):
    chosen = recipe(**settings)
    shared = server(chosen)
    shared.aggregate(chosen, [UPDATE])
    before = shared.vectors.copy(), shared.biases.copy()
    shared.aggregate(chosen, [])
    np.testing.assert_array_equal(shared.vectors, before[0])
    np.testing.assert_array_equal(shared.biases, before[1])
    assert shared.round_number == 2
