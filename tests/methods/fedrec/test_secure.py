"""Ratings as sums: what a message says, and what a fold makes of sums with noise on them."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.simulation import RatersInMemory
from federank.methods.fedrec.wire import (
    STANDS_OUT,
    RatingUpdate,
    SharedFactors,
    columns_of_gradients,
    dense_gradients,
    summed_gradients,
)
from federank.secagg.ring import C_INT, round_message

CLIP = 64.0
ITEMS, FACTORS = 30, 4


def federation(method="pmf"):
    style = {"style": "batch"} if method == "pmf" else {}
    established = rating_federation(rated_world(), method, rho=0, **style)
    return established, SharedFactors(
        established.item_vectors[:, :FACTORS].copy(), established.implicit_vectors[:, :FACTORS].copy()
    )


def updates_of(established, shared):
    with words_wrap_around():
        all_users = established.recipe.participants.tolist()
        return list(RatersInMemory(established).train(all_users, shared.distribute(established.recipe)))


def step(established, shared, total, clip=CLIP, noise=0, method="pmf"):
    """Step by the means of a sum; the items that stand out."""
    sums = summed_gradients(total.ravel(), clip, noise, ITEMS, implicit=method == "svdpp")
    shared.step_by_means(established.recipe, sums)
    return np.flatnonzero(sums.counts).tolist()


def whole(values, clip=CLIP, seed=0):
    chances = np.random.default_rng(seed).integers(0, 2**16, len(values)).astype(np.uint16)
    return round_message(values, clip, chances).astype(np.int64)


@pytest.mark.parametrize("method", ["pmf", "svdpp"])
def test_a_message_names_every_item_and_says_which_were_rated_by_a_count(method):
    established, shared = federation(method)
    implicit = method == "svdpp"
    update = updates_of(established, shared)[0]
    rows = dense_gradients(update, ITEMS, implicit=implicit).reshape(ITEMS, -1)
    assert rows.shape[1] == columns_of_gradients(FACTORS, implicit=implicit) == (9 if implicit else 5)
    assert np.flatnonzero(rows[:, -1]).tolist() == update.items.tolist()
    np.testing.assert_array_equal(rows[update.items, :FACTORS], update.vectors)
    if implicit:
        np.testing.assert_array_equal(rows[update.implicit_items, FACTORS:-1], update.implicit_vectors)
    others = np.setdiff1d(np.arange(ITEMS), update.items)
    assert not rows[others].any()


@pytest.mark.parametrize("method", ["pmf", "svdpp"])
def test_without_noise_the_fold_is_the_plain_one_but_for_rounding(method):
    established, shared = federation(method)
    plain = SharedFactors(shared.vectors.copy(), shared.implicit_vectors.copy())
    sent, implicit = updates_of(established, shared), method == "svdpp"
    total = sum(whole(dense_gradients(update, ITEMS, implicit=implicit), seed=n) for n, update in enumerate(sent))
    stepped = step(established, shared, total, method=method)
    plain.aggregate(established.recipe, sent)
    np.testing.assert_allclose(shared.vectors, plain.vectors, atol=2 * CLIP / C_INT)
    np.testing.assert_allclose(shared.implicit_vectors, plain.implicit_vectors, atol=2 * CLIP / C_INT)
    assert stepped == sorted({int(item) for update in sent for item in update.items})


def test_whoever_is_clipped_weighs_less_and_the_quotient_stays_a_mean():
    established, shared = federation()
    before = shared.vectors.copy()
    gradient = np.full((ITEMS, FACTORS), 0.5, dtype=np.float32)
    none = np.zeros(0, np.int32), np.zeros((0, FACTORS), np.float32)
    everything = RatingUpdate(np.arange(ITEMS, dtype=np.int32), gradient, *none)
    values = dense_gradients(everything, ITEMS, implicit=False)
    clip = float(np.linalg.norm(values)) / 2  # so this person counts half
    total = sum(whole(values, clip, seed) for seed in range(8))
    step(established, shared, total, clip)
    rate = established.recipe.learning_rate
    np.testing.assert_allclose(before - shared.vectors, rate * 0.5, atol=0.01)


def test_an_item_whose_count_does_not_stand_out_of_the_noise_stays_where_it_is():
    established, shared = federation()
    before, noise = shared.vectors.copy(), 256
    threshold = STANDS_OUT * np.sqrt(2) * noise
    total = np.zeros((ITEMS, FACTORS + 1), dtype=np.int64)
    total[:, :FACTORS] = 1000
    total[:, -1] = int(threshold * 0.9)
    total[3, -1] = int(threshold * 1.1)
    total[4, -1] = -int(threshold * 2)
    stepped = step(established, shared, total, noise=noise)
    assert stepped == [3]
    assert np.flatnonzero((shared.vectors != before).any(axis=1)).tolist() == [3]


def test_a_count_below_one_is_taken_for_one():
    """One person alone, scaled down to a tenth, must not make an item jump by what rounding has left of it."""
    established, shared = federation()
    before = shared.vectors.copy()
    total = np.zeros((ITEMS, FACTORS + 1), dtype=np.int64)
    total[5] = [int(0.1 * C_INT / CLIP)] * (FACTORS + 1)
    step(established, shared, total)
    rate = established.recipe.learning_rate
    np.testing.assert_allclose((before - shared.vectors)[5], rate * 6 * CLIP / C_INT, rtol=1e-4)
