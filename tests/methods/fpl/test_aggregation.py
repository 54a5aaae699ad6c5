"""Aggregation of pair-wise Updates: a sum, a step, and nothing in between."""

import numpy as np
import pytest
from tests.worlds import federation, random_world

from federank.errors import BadMessage
from federank.methods.fpl.method import Shared
from federank.methods.fpl.wire import Update

RECIPE = federation(random_world(), factors=2, learning_rate=0.5).recipe


def shared():
    return Shared(np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([0.1, 0.2, 0.3]), round_number=7)


def update(items, value):
    return Update(np.int32(items), np.full((len(items), 2), value, "f4"), np.full(len(items), value, "f4"))


def test_the_model_moves_by_the_learning_rate_times_the_sum():
    model = shared()
    model.aggregate(RECIPE, [update([0, 1], 2), update([1], 4)])
    np.testing.assert_allclose(model.vectors, [[2, 3], [6, 7], [5, 6]])
    np.testing.assert_allclose(model.biases, [1.1, 3.2, 0.3], rtol=1e-6)
    assert model.round_number == 8


def test_a_round_without_an_answer_passes_and_changes_nothing():
    model = shared()
    model.aggregate(RECIPE, [])
    np.testing.assert_array_equal(model.vectors, shared().vectors)
    np.testing.assert_array_equal(model.biases, shared().biases)
    assert model.round_number == 8


def test_one_bad_update_leaves_the_round_to_be_played_again():
    model = shared()
    with pytest.raises(BadMessage, match="within 0 to 2"):
        model.aggregate(RECIPE, iter([update([0], 2), update([3], 1)]))
    np.testing.assert_array_equal(model.vectors, shared().vectors)
    np.testing.assert_array_equal(model.biases, shared().biases)
    assert model.round_number == 7


def test_a_broadcast_is_a_copy_that_later_rounds_do_not_change():
    model = shared()
    broadcast = model.distribute(RECIPE)
    model.aggregate(RECIPE, [update([0, 1, 2], 9)])
    model.vectors[:], model.biases[:] = 0, 0
    assert broadcast.round_number == 7
    assert broadcast.items.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(broadcast.vectors, shared().vectors)
    np.testing.assert_array_equal(broadcast.biases, shared().biases)
