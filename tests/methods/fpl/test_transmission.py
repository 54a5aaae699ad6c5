"""Transmission from one device: what is summed, what is held back, and what the Update does not tell."""

import numpy as np
import pytest
from tests.worlds import federation, random_world

from federank.federation.rng import words_wrap_around
from federank.methods.fpl.method import Gradients, share
from federank.methods.fpl.wire import Private

PROFILE = np.int32([2, 5, 7])
HEADS, TAILS = np.uint32(0), np.uint32(2**32 - 1)  # a coin's word below pi sends


def gradients(pairs):
    """Gradients of (place in the profile, negative, coin), each pair's rows filled with its number."""
    places, negatives, coins = (list(column) for column in zip(*pairs, strict=True))
    values = np.float32(np.arange(1, len(pairs) + 1))
    return Gradients(
        np.int32(places),
        PROFILE[places],
        np.int32(negatives),
        np.array(coins, dtype=np.uint32),
        values,
        np.column_stack((values, values)),
        -np.column_stack((values, values)) / 2,
    )


def shared(pairs, pi=0.5, allowed=(True, True, True), lifelong=False, round_number=0, **settings):
    recipe = federation(random_world(), **settings).recipe
    device = Private(0, np.zeros(2, "f4"), PROFILE, pi, np.array(allowed), len(pairs), lifelong)
    with words_wrap_around():
        return share(recipe, device, round_number, gradients(pairs))


def test_an_update_lists_each_item_once_ascending_with_its_gradients_summed():
    update = shared([(2, 3, HEADS), (0, 3, HEADS), (2, 0, HEADS)])
    assert update.items.tolist() == [0, 2, 3, 7]
    assert update.biases.tolist() == [-3, 2, -3, 4]  # item 3: -1 - 2; item 7: 1 + 3
    assert update.vectors[:, 0].tolist() == [-1.5, 2, -1.5, 4]
    assert [part.dtype for part in update] == [np.int32, np.float32, np.float32]


def test_a_positive_whose_coin_falls_the_wrong_way_is_held_back_and_its_negative_is_not():
    update = shared([(0, 3, TAILS), (1, 4, HEADS)])
    assert update.items.tolist() == [3, 4, 5]
    assert update.biases.tolist() == [-1, -2, 2]


def test_of_an_item_drawn_twice_only_the_gradients_that_may_go_are_summed():
    update = shared([(0, 3, TAILS), (0, 4, HEADS)])
    assert update.items.tolist() == [2, 3, 4]
    assert update.biases.tolist() == [2, -1, -2]


@pytest.mark.parametrize("lifelong", [False, True])
def test_what_may_never_leave_does_not_whatever_the_coin_says(lifelong):
    update = shared([(0, 3, HEADS), (1, 4, HEADS)], pi=1.0, allowed=(False, True, True), lifelong=lifelong)
    assert update.items.tolist() == [3, 4, 5]


def test_what_was_decided_for_life_is_sent_without_a_coin():
    update = shared([(0, 3, TAILS), (1, 4, TAILS)], pi=0.0, lifelong=True)
    assert update.items.tolist() == [2, 3, 4, 5]


def test_per_row_an_item_goes_with_all_its_gradients_or_with_none_and_not_in_every_round():
    pairs = [(0, 3, HEADS), (0, 4, TAILS)]
    biases = [
        dict(zip(update.items.tolist(), update.biases.tolist(), strict=True)).get(2)
        for update in (shared(pairs, mask="as-printed", round_number=r) for r in range(40))
    ]
    assert set(biases) == {None, 3.0}
