"""Computation on the device, when ratings are learnt (FedRec, 2020, Algorithms 2, 3 and 5).

1. Sample items the person has not rated, and give them virtual ratings (virtual.py).
2. Move the person's vector: by the mean gradient over all these ratings (batch), or rating by rating (stochastic);
   with SVD++ the rated items' W, of which the device has a copy, move with it.
3. Gather the gradient of every item's V, and for SVD++ of the rated items' W.

V stays as it was received. This file is the plain form, to be read; the compiled engine does the same work with
SVD++'s short cut (models/svdpp.py) and is tested against this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.models.pmf import item_gradient, rating_error, user_gradient
from federank.models.svdpp import normaliser
from federank.protocol.ratings.messages import RatingBroadcast, RatingPrivate
from federank.protocol.ratings.recipes import RatingRecipe, predicts, rate_after
from federank.protocol.ratings.virtual import virtual_items


class RatingGradients(NamedTuple):
    """What a device has learnt about items in a round; rated items first, then sampled ones."""

    items: IntVector
    vectors: FloatMatrix
    implicit_items: IntVector
    implicit_vectors: FloatMatrix


class Ratings(NamedTuple):
    """Ratings that a device learns from, real ones first."""

    items: IntVector
    values: FloatVector


def compute_ratings(recipe: RatingRecipe, private: RatingPrivate, broadcast: RatingBroadcast) -> RatingGradients:
    """One device's part of a round: its own vector moves, and item gradients come out."""
    told = broadcast.iteration
    iteration = broadcast.round_number // recipe.rounds_per_epoch if told is None else told
    rate = rate_after(recipe, private.participations if recipe.rate_by_participation else iteration)
    private.participations += 1
    W = broadcast.implicit_vectors[private.items if recipe.implicit else []]  # a copy of the rated items' rows
    ratings = _with_virtual(recipe, private, broadcast, W, rate, iteration)
    V = broadcast.vectors[ratings.items]
    if recipe.batch:
        return _compute_batch(recipe, private, ratings, V, W, rate)
    vectors = np.empty_like(V)
    U = private.vector
    for k, rating in enumerate(ratings.values):
        U, vectors[k] = _learnt(recipe, U, W, V[k], rating, k, rate)
    private.vector = U
    if not recipe.implicit:
        return RatingGradients(ratings.items, vectors, np.empty(0, np.int32), np.empty((0, recipe.factors), np.float32))
    # The server will subtract W's gradients times its own rate, so that its W become the device's.
    change = broadcast.implicit_vectors[private.items] - W
    return RatingGradients(ratings.items, vectors, private.items, change / rate_after(recipe, iteration))


def _learnt(
    recipe: RatingRecipe, U: FloatVector, W: FloatMatrix, V_i: FloatVector, rating: np.float32, k: int, rate: np.float32
) -> tuple[FloatVector, FloatVector]:
    """One rating: the moved U, and the gradient of V_i; the W that speak for it move in place."""
    moved, bracket, error = _step(recipe, U, W, V_i, rating, k, rate)
    if recipe.after:
        bracket = _bracket(moved, W, k)
        error = rating_error(bracket, V_i, rating)
    return moved, item_gradient(error, bracket, V_i, recipe.regulariser)


def _step(
    recipe: RatingRecipe, U: FloatVector, W: FloatMatrix, V_i: FloatVector, rating: np.float32, k: int, rate: np.float32
) -> tuple[FloatVector, FloatVector, np.float32]:
    """One rating's own part: the moved U, and the bracket and the error that moved it; the W move in place."""
    bracket = _bracket(U, W, k)
    error = rating_error(bracket, V_i, rating)
    moved = U - rate * user_gradient(error, U, V_i, recipe.regulariser)
    if len(W):
        others = _all_but(k, W)
        norm = normaliser(others.sum())
        W[others] -= rate * (error * norm * V_i + recipe.regulariser * W[others])
    return moved, bracket, error


def _bracket(U: FloatVector, W: FloatMatrix, k: int) -> FloatVector:
    """U and what the other rated items' W say."""
    others = _all_but(k, W)
    bracket: FloatVector = U + normaliser(others.sum()) * W[others].sum(axis=0)
    return bracket


def _all_but(k: int, W: FloatMatrix) -> NDArray[np.bool_]:
    """Which W speak for a rating: all of them where it is virtual."""
    others: NDArray[np.bool_] = np.arange(len(W)) != k
    return others


def _compute_batch(
    recipe: RatingRecipe, private: RatingPrivate, ratings: Ratings, V: FloatMatrix, W: FloatMatrix, rate: np.float32
) -> RatingGradients:
    before = private.vector
    others = _others(W, len(V))
    private.vector = before - rate * _mean_gradient(recipe, before, V, others, ratings.values)
    brackets = (private.vector if recipe.after else before) + others
    errors = _errors(brackets, V, ratings.values)
    vectors = errors[:, None] * brackets + recipe.regulariser * V
    if not recipe.implicit:
        return RatingGradients(ratings.items, vectors, np.empty(0, np.int32), np.empty((0, recipe.factors), np.float32))
    # W_i' speaks for all ratings but its own: the mean over them of e n V, where n is that of the rating.
    pulls = (errors * _normalisers(len(W), len(V)))[:, None] * V
    means = (pulls.sum(axis=0) - pulls[: len(W)]) * np.float32(1 / len(V))
    return RatingGradients(ratings.items, vectors, private.items, means + recipe.regulariser * W)


def _mean_gradient(
    recipe: RatingRecipe, U: FloatVector, V: FloatMatrix, others: FloatMatrix, values: FloatVector
) -> FloatVector:
    """Eq. 7: of e V_i + lambda U, with U and what the other rated items say in the place of U in e."""
    errors = _errors(U + others, V, values)
    mean: FloatVector = (errors @ V) * np.float32(1 / len(values)) + recipe.regulariser * U
    return mean


def _errors(brackets: FloatMatrix, V: FloatMatrix, values: FloatVector) -> FloatVector:
    """How much too high each predicted rating is; one bracket may stand for all."""
    errors: FloatVector = (V @ brackets[0] if len(brackets) == 1 else np.einsum("kf,kf->k", brackets, V)) - values
    return errors


def _others(W: FloatMatrix, count: int) -> FloatMatrix:
    """For each of so many ratings, real ones first: what the W of the other rated items say; nothing for PMF."""
    if not len(W):
        return np.zeros((1, W.shape[1]), dtype=np.float32)
    sums = np.broadcast_to(W.sum(axis=0), (count, W.shape[1])).copy()
    sums[: len(W)] -= W[:count]
    return sums * _normalisers(len(W), count)[:, None]


def _normalisers(rated: int, count: int) -> FloatVector:
    """1 / sqrt(how many W speak for a rating): all but its own where it is real."""
    norms = np.full(count, normaliser(rated))
    norms[:rated] = normaliser(rated - 1)
    return norms


def _with_virtual(
    recipe: RatingRecipe,
    private: RatingPrivate,
    broadcast: RatingBroadcast,
    W: FloatMatrix,
    rate: np.float32,
    iteration: int,
) -> Ratings:
    """The person's ratings, and virtual ones of sampled items behind them."""
    count, n_items = private.virtual, len(broadcast.vectors)
    if count == 0:
        return Ratings(private.items, private.ratings)
    sampled = virtual_items(
        recipe, private.user, broadcast.round_number, private.items, count, n_items, private.sampled
    )
    values = np.full(count, private.mean)
    if recipe.hybrid and (predicts(recipe, iteration) or recipe.local_own):
        U, local = _trained_locally(recipe, private, broadcast.vectors[private.items], W.copy(), rate)
        if recipe.local_own:
            private.vector, W[:] = U, local
        if predicts(recipe, iteration):
            bracket = U + normaliser(len(local)) * local.sum(axis=0)
            values = broadcast.vectors[sampled] @ bracket
    return Ratings(np.concatenate((private.items, sampled)), np.concatenate((private.ratings, values)))


def _trained_locally(
    recipe: RatingRecipe, private: RatingPrivate, V: FloatMatrix, W: FloatMatrix, rate: np.float32
) -> tuple[FloatVector, FloatMatrix]:
    """T_local passes over the person's own ratings, which nobody hears of."""
    U, others = private.vector, _others(W, len(V)) if recipe.batch else W
    for _ in range(recipe.local_passes):
        if recipe.batch:
            U = U - rate * _mean_gradient(recipe, U, V, others, private.ratings)
            continue
        for k, rating in enumerate(private.ratings):
            U, _, _ = _step(recipe, U, W, V[k], rating, k, rate)
    return U, W
