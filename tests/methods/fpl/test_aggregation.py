"""The server's step of pair-wise learning: a sum, then adding, Adam, and weight decay."""

import numpy as np
import pytest
from tests.worlds import federation, model_of, random_world

from federank.errors import BadMessage
from federank.federation.adam import Adam, adam_step
from federank.methods.fpl.method import FPL, FPLState, FPLUpdate

VECTORS, BIASES = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([0.1, 0.2, 0.3])


def method(**settings):
    return FPL(n_items=3, factors=2, triples=1, **{"learning_rate": 0.5} | settings)


def server(method):
    none = np.zeros((3, method.moments), np.float32)
    return FPLState(VECTORS.copy(), BIASES.copy(), none, none, np.zeros(method.clocks, np.int64))


def update(items, value):
    return FPLUpdate(np.int32(items), np.full((len(items), 2), value, "f4"), np.full(len(items), value, "f4"))


def after(method, state, *updates):
    """The state after a round with these updates."""
    sums = method.empty()
    for one in updates:
        method.add(sums, one)
        sums.count += 1
    return method.server_update(state, sums)


UPDATE = FPLUpdate(np.array([1], np.int32), np.array([[2, -8]], np.float32), np.array([0.5], np.float32))
STILL = FPLUpdate(np.array([1], np.int32), np.zeros((1, 2), np.float32), np.array([0.5], np.float32))


def test_the_model_moves_by_the_learning_rate_times_the_sum():
    state = after(method(), server(method()), update([0, 1], 2), update([1], 4))
    np.testing.assert_allclose(state.vectors, [[2, 3], [6, 7], [5, 6]])
    np.testing.assert_allclose(state.biases, [1.1, 3.2, 0.3], rtol=1e-6)


def test_one_bad_update_leaves_the_round_to_be_played_again():
    established = federation(random_world())
    before = model_of(established)
    good = FPLUpdate(np.array([1], np.int32), np.ones((1, 4), np.float32), np.ones(1, np.float32))
    bad = FPLUpdate(np.array([99], np.int32), good.vectors, good.biases)
    with pytest.raises(BadMessage, match="within 0 to"):
        established.aggregate(iter([good, bad]))
    np.testing.assert_array_equal(model_of(established).vectors, before.vectors)
    np.testing.assert_array_equal(model_of(established).biases, before.biases)
    assert established.round_number == 0


def test_a_broadcast_is_a_copy_that_later_rounds_do_not_change():
    established = federation(random_world())
    sent, before = model_of(established), established.item_vectors.copy()
    good = FPLUpdate(np.array([1], np.int32), np.ones((1, 4), np.float32), np.ones(1, np.float32))
    established.aggregate([good])
    np.testing.assert_array_equal(sent.vectors, before[:, :4])
    assert not np.array_equal(established.item_vectors, before)


def test_the_first_step_of_adam_is_the_rate_in_the_direction_of_the_sum():
    adam = method(server="adam", learning_rate=0.1)
    state = after(adam, server(adam), UPDATE)
    np.testing.assert_allclose(state.vectors, [[1, 2], [3.1, 3.9], [5, 6]], atol=1e-6)
    np.testing.assert_allclose(state.biases, [0.1, 0.3, 0.3], atol=1e-6)
    assert state.steps.tolist() == [1]


def test_adam_goes_on_where_it_was_heading():
    adam = method(server="adam", learning_rate=0.1)
    before = after(adam, after(adam, server(adam), UPDATE), UPDATE)
    state = after(adam, before, STILL)
    assert state.vectors[1, 0] > before.vectors[1, 0]
    assert state.vectors[1, 1] < before.vectors[1, 1]


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


def test_weight_decay_moves_every_vector_towards_zero_and_no_bias():
    decayed = method(item_pull=2.0, learning_rate=0.1)
    state = after(decayed, server(decayed), STILL)
    np.testing.assert_allclose(state.vectors, 0.8 * VECTORS, rtol=1e-6)
    np.testing.assert_allclose(state.biases, [0.1, 0.25, 0.3], rtol=1e-6)


@pytest.mark.parametrize("settings", [{"server": "adam", "item_pull": 2.0}, {"item_pull": 2.0}, {}], ids=str)
def test_a_round_without_an_update_leaves_the_model_as_it_is(settings):
    chosen = method(**settings)
    before = after(chosen, server(chosen), UPDATE)
    state = after(chosen, before)
    np.testing.assert_array_equal(state.vectors, before.vectors)
    np.testing.assert_array_equal(state.biases, before.biases)
