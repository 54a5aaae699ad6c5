"""Aggregation of what was learnt from ratings: the mean of what was sent, V and W alike, at the iteration's rate."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.errors import BadMessage
from federank.methods.fedrec.wire import RatingUpdate, SharedFactors

NOTHING = np.empty(0, np.int32), np.empty((0, 1), np.float32)


def zeros(rows):
    return np.zeros((rows, 1), np.float32)


def test_the_server_steps_by_the_mean_of_what_it_was_sent():
    recipe = rating_federation(rated_world(), factors=1, style="batch", learning_rate=0.5).recipe
    shared = SharedFactors(zeros(3), zeros(0))
    sent = [
        RatingUpdate(np.int32([0, 1]), np.float32([[2], [4]]), *NOTHING),
        RatingUpdate(np.int32([1]), np.float32([[8]]), *NOTHING),
    ]
    shared.aggregate(recipe, sent)
    assert shared.vectors[:, 0].tolist() == [-1, -3, 0]
    assert shared.round_number == 1


def test_the_second_vectors_of_svdpp_step_in_the_same_way():
    recipe = rating_federation(rated_world(), "svdpp", factors=1, learning_rate=0.5).recipe
    shared = SharedFactors(zeros(3), zeros(3))
    sent = [RatingUpdate(np.int32([0, 2]), np.float32([[2], [4]]), np.int32([2]), np.float32([[6]]))]
    shared.aggregate(recipe, sent)
    assert shared.vectors[:, 0].tolist() == [-1, 0, -2]
    assert shared.implicit_vectors[:, 0].tolist() == [0, 0, -3]


def test_the_servers_rate_falls_with_every_iteration_and_not_with_every_round():
    recipe = rating_federation(rated_world(), factors=1, learning_rate=1.0, decay=0.5).recipe
    steps = []
    for number in (0, recipe.rounds_per_epoch - 1, recipe.rounds_per_epoch, 2 * recipe.rounds_per_epoch):
        shared = SharedFactors(zeros(1), zeros(0), number)
        shared.aggregate(recipe, [RatingUpdate(np.int32([0]), np.float32([[1]]), *NOTHING)])
        steps.append(float(shared.vectors[0, 0]))
    assert steps == [-1, -1, -0.5, -0.25]


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (RatingUpdate(np.int32([1, 0]), np.ones((2, 1), "f4"), *NOTHING), "must ascend"),
        (RatingUpdate(np.int32([9]), np.ones((1, 1), "f4"), *NOTHING), "within 0 to 2"),
        (RatingUpdate(np.int32([1]), np.ones((1, 2), "f4"), *NOTHING), r"of shape \(1, 1\)"),
        (RatingUpdate(np.int64([1]), np.ones((1, 1), "f4"), *NOTHING), "32-bit"),
        (RatingUpdate(np.int32([1]), np.full((1, 1), np.nan, "f4"), *NOTHING), "not finite"),
        (RatingUpdate(np.int32([1]), np.ones((1, 1), "f4"), np.int32([1]), np.ones((1, 1), "f4")), "rows of W too"),
    ],
)
def test_an_update_that_breaks_the_protocol_changes_nothing(update, sentence):
    recipe = rating_federation(rated_world(), factors=1).recipe
    shared = SharedFactors(zeros(3), zeros(0))
    good = RatingUpdate(np.int32([0]), np.ones((1, 1), "f4"), *NOTHING)
    with pytest.raises(BadMessage, match=sentence):
        shared.aggregate(recipe, [good, update])
    assert not shared.vectors.any()
    assert shared.round_number == 0


def test_a_broadcast_is_a_copy_that_later_rounds_do_not_change():
    recipe = rating_federation(rated_world(), "svdpp", factors=1).recipe
    shared = SharedFactors(zeros(2) + 1, zeros(2) + 2, 5)
    broadcast = shared.distribute(recipe)
    shared.vectors[:], shared.implicit_vectors[:] = 9, 9
    assert broadcast.round_number == 5
    assert broadcast.vectors.tolist() == [[1], [1]]
    assert broadcast.implicit_vectors.tolist() == [[2], [2]]
