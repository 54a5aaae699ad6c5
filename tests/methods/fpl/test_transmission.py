"""Transmission from one client: what is summed, what is held back, and what the update does not tell."""

import numpy as np
import pytest

from federank.federation.method import Client
from federank.federation.rng import TRIPLE, happens, words, words_wrap_around
from federank.methods.fpl.method import FPL, FPLModel, summed

PROFILE = np.int32([2, 5, 7])
MODEL = FPLModel(np.zeros((9, 2), np.float32), np.zeros(9, np.float32))  # every pair has a slope of one half


def updated(triples, round_number=0, profile=PROFILE, withheld=(), **settings):
    method = FPL(n_items=9, factors=2, triples=triples, **settings)
    client = Client(1, 0, round_number, profile, withheld=np.array(withheld, np.int32))
    return method.client_update(client, MODEL).update


def test_each_item_is_listed_once_with_its_gradients_summed():
    values = np.float32([[1, 1], [-0.5, 0], [2, 2], [-1, 0], [3, 3]])
    update = summed([7, 3, 2, 3, 7], list(values), [1, -1, 2, -2, 3])
    assert update.items.tolist() == [2, 3, 7]
    assert update.biases.tolist() == [2, -3, 4]
    assert update.vectors.tolist() == [[2, 2], [-1.5, 0], [4, 4]]
    assert [part.dtype for part in (update.items, update.vectors, update.biases)] == [np.int32, np.float32, np.float32]


def test_a_positive_is_held_back_by_its_coin_and_its_negative_is_not():
    sent = []
    for number in range(40):
        update = updated(1, number, pi=0.5)
        with words_wrap_around():
            coin = words(1, 0, TRIPLE, number, 0)[3]
        assert (update.biases < 0).sum() == 1
        assert (update.biases > 0).sum() == happens(coin, 0.5)
        sent.append(bool(happens(coin, 0.5)))
    assert set(sent) == {True, False}


def test_of_an_item_drawn_often_the_gradients_that_may_go_are_summed():
    update = updated(30, profile=np.int32([2]), pi=0.5)
    with words_wrap_around():
        heads = sum(bool(happens(words(1, 0, TRIPLE, 0, counter)[3], 0.5)) for counter in range(30))
    assert 0 < heads < 30
    assert update.biases[update.items == 2][0] == pytest.approx(0.5 * heads, abs=0.5)


@pytest.mark.parametrize("mask", ["as-in-code", "as-printed"])
def test_what_is_withheld_never_leaves(mask):
    update = updated(40, pi=1.0, withheld=(2, 7), mask=mask)
    assert update.items[update.biases > 0].tolist() == [5]


def test_per_row_an_item_goes_with_all_its_gradients_or_with_none():
    biases = set()
    for number in range(40):
        update = updated(4, number, profile=np.int32([2]), pi=0.5, mask="as-printed")
        complete = updated(4, number, profile=np.int32([2]), pi=1.0)
        bias = update.biases[update.items == 2].tolist()
        assert bias in ([], complete.biases[complete.items == 2].tolist())
        biases.add(len(bias))
    assert biases == {0, 1}
