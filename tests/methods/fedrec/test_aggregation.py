"""Aggregation of what was learnt from ratings: the mean of what was sent, V and W alike, at the iteration's rate."""

from dataclasses import replace

import numpy as np
import pytest

from federank.errors import BadMessage
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.methods.fedrec.method import PMF, STANDS_OUT, ImplicitGradients, SVDPlusPlus


def method(kind=PMF, n_items=3, **settings):
    chosen = {"learning_rate": 0.5, "prior_count": 0.0, "first_prediction": "zero"} | settings
    return kind(n_items=n_items, factors=1, **chosen)


def zeros(method):
    return wire.zeros(method.records.state, method)


def aggregate(method, updates, clients=None, noise=0.0):
    sums = method.empty()
    for update in updates:
        method.add(sums, update)
    sums.count, sums.enrolled, sums.noise = len(updates), clients or len(updates), noise
    return sums


def gradients(items, values):
    return ItemGradients(np.int32(items), np.float32(values)[:, None])


def test_the_server_steps_by_the_mean_of_what_it_was_sent():
    fedrec, sent = method(), [gradients([0, 1], [2, 4]), gradients([1], [8])]
    after = fedrec.server_update(zeros(fedrec), aggregate(fedrec, sent))
    assert after.vectors[:, 0].tolist() == [-1, -3, 0]
    assert (after.reported.tolist(), after.progress.tolist()) == ([1, 1, 0], [1])


def test_the_second_vectors_of_svdpp_step_in_the_same_way():
    fedrec = method(SVDPlusPlus)
    rows = np.int32([0, 2]), np.float32([[2], [4]]), np.int32([2]), np.float32([[6]])
    after = fedrec.server_update(zeros(fedrec), aggregate(fedrec, [ImplicitGradients(*rows)]))
    assert after.vectors[:, 0].tolist() == [-1, 0, -2]
    assert after.implicit_vectors[:, 0].tolist() == [0, 0, -3]


def test_the_servers_rate_falls_with_every_iteration_and_not_with_every_round():
    fedrec = method(learning_rate=1.0, decay=0.5)
    steps = []
    for progress in (0, 0.75, 1, 2):
        state = replace(zeros(fedrec), progress=np.array([float(progress)]))
        after = fedrec.server_update(state, aggregate(fedrec, [gradients([0], [1])]))
        steps.append(float(after.vectors[0, 0]))
    assert steps == [-1, -1, -0.5, -0.25]


def test_a_small_round_moves_an_item_by_its_share_of_an_iteration():
    fedrec, sent = method(), [gradients([0], [8])]
    state = zeros(fedrec)
    for _ in range(4):
        state = fedrec.server_update(state, aggregate(fedrec, sent, clients=4))
    assert state.vectors[0, 0] == pytest.approx(-4.0)
    assert (state.progress[0], state.reports[0]) == (1.0, pytest.approx(sum(0.75**n for n in range(4))))


def test_items_whose_count_does_not_stand_out_of_the_noise_stay():
    fedrec, noise = method(n_items=4), 0.5
    sums = aggregate(fedrec, [gradients([0], [1])], noise=noise)
    sums.vectors[:] = 10
    sums.counts[:] = [STANDS_OUT * noise * 0.9, STANDS_OUT * noise * 1.1, -STANDS_OUT, 0]
    after = fedrec.server_update(zeros(fedrec), sums)
    assert np.flatnonzero(after.vectors[:, 0]).tolist() == np.flatnonzero(after.reported).tolist() == [1]


def test_a_count_below_one_is_taken_for_one():
    """A client alone, scaled down to a tenth, must not make an item jump by what rounding has left of it."""
    fedrec = method()
    sums = aggregate(fedrec, [gradients([0], [0])])
    sums.vectors[0], sums.counts[0] = 0.1, 0.1
    assert fedrec.server_update(zeros(fedrec), sums).vectors[0, 0] == pytest.approx(-0.05)


@pytest.mark.parametrize(
    "update",
    [
        ItemGradients(np.int32([1, 0]), np.ones((2, 1), "f4")),
        ItemGradients(np.int32([9]), np.ones((1, 1), "f4")),
        ItemGradients(np.int32([1]), np.ones((1, 2), "f4")),
        ItemGradients(np.int32([1]), np.full((1, 1), np.nan, "f4")),
        ImplicitGradients(np.int32([1]), np.ones((1, 1), "f4"), np.int32([1]), np.ones((1, 1), "f4")),
    ],
    ids=["items do not ascend", "no such item", "wrong shape", "no number", "rows of W for PMF"],
)
def test_an_update_of_another_form_is_refused(update):
    with pytest.raises(BadMessage):
        wire.decode(ItemGradients, method(), wire.encode(update))
