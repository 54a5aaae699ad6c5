"""A round of FedRec in plain form (2020, Algorithms 2, 3 and 5): what a client computes, and the server's step.

1. Sample items that the user has not rated, and give them virtual ratings.
2. Move the user's vector: by the mean gradient over all these ratings (batch), or rating by rating (stochastic);
   with SVD++ the rated items' W, of which the client has a copy, move with it.
3. Gather the gradient of every item's V, and for SVD++ of the rated items' W.
4. The server moves each item by the mean of its gradients.

V stays as it was received while a client learns. The compiled engine (kernels.py) does the same work with a short
cut for SVD++ and is tested against this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank._numerics.rows import dot, inlined
from federank.federation.method import NO_ITEMS
from federank.federation.rng import VIRTUAL, WORDS, absent_item, below, words, words_wrap_around
from federank.methods.fedrec.settings import RatingRecipe, predicts, rate_after

# The formulas. A rating is predicted as U . V_i (Mnih and Salakhutdinov, 2007; FedRec, 2020, Eq. 1), without mean and
# biases. With the error e = U . V_i - r, the gradients of (e^2 + lambda |U|^2 + lambda |V_i|^2) / 2 are
#
#     user    e V_i + lambda U
#     item    e U + lambda V_i
#
# They are subtracted, multiplied by the learning rate. SVD++ has U and the normalised sum of the rated items' W in the
# place of U.


@inlined
def rating_error(user: Any, item: Any, rating: Any) -> Any:
    """How much too high the predicted rating is."""
    return dot(user, item) - rating


@inlined
def user_gradient(error: Any, user: Any, item: Any, regulariser: Any) -> Any:
    """Away from which the user's own vector should go."""
    return error * item + regulariser * user


@inlined
def item_gradient(error: Any, user: Any, item: Any, regulariser: Any) -> Any:
    """Away from which an item's vector should go."""
    return error * user + regulariser * item


@inlined
def normaliser(count: Any) -> Any:
    """1 / sqrt(count); an empty sum needs none."""
    return np.float32(1.0 / np.sqrt(np.float64(max(count, 1))))


# What a client receives, holds and learns in a round.


class RatingBroadcast(NamedTuple):
    """The shared model as a round begins."""

    round_number: int
    vectors: FloatMatrix  # V, one row per item
    implicit_vectors: FloatMatrix  # W, one row per item; no rows for PMF
    iteration: int


@dataclass(eq=False)
class RatingPrivate:
    """What never leaves a client."""

    user: int
    vector: FloatVector
    items: IntVector  # what the user has rated, ascending
    ratings: FloatVector
    mean: np.float32  # of these ratings
    virtual: int  # how many items get a virtual rating in a round
    participations: int  # in how many rounds the client has taken part
    sampled: IntVector = field(default_factory=lambda: NO_ITEMS)  # what was ever sent with a virtual rating, if known


class RatingGradients(NamedTuple):
    """What a client has learnt about items in a round."""

    items: IntVector
    vectors: FloatMatrix
    implicit_items: IntVector  # of which W has a gradient; none for PMF
    implicit_vectors: FloatMatrix


# Virtual ratings: of items that the user has not rated, so that an upload does not say which are which.


@inlined
def round_of_sample(recipe: Any, round_number: Any) -> Any:
    """The round that names a sample's draws: always the first, where items are sampled for its lifetime."""
    return np.int64(0) if recipe.fixed else np.int64(round_number)


@inlined
def sample_unrated(
    seed: Any, user: Any, round_number: Any, profile: Any, n_items: Any, marks: Any, stamp: Any, sampled: Any
) -> None:
    """Fill `sampled` with distinct items that are missing from an ascending profile.

    Every set of that many is equally likely. `marks` has an integer for every item of the catalogue and is kept
    between calls; `stamp` must differ from those of earlier calls.
    """
    size, count = len(profile), len(sampled)
    drawn = np.empty(count, np.uint32)
    for k in range(count):  # alone in their loop, the draws run eight at a time in vector registers
        word, _, _, _ = words(seed, user, VIRTUAL, round_number, k)
        drawn[k] = word
    if 2 * (size + count) <= n_items:
        # Most items are free: draw again what is rated or sampled already.
        for k in range(size):
            marks[profile[k]] = stamp
        filled, tried = 0, 0
        while filled < count:
            if tried < count:
                word = drawn[tried]
            else:
                word, _, _, _ = words(seed, user, VIRTUAL, round_number, tried)
            tried += 1
            item = below(word, n_items)
            if marks[item] != stamp:
                marks[item] = stamp
                sampled[filled] = item
                filled += 1
    else:
        # Few are: draw ranks among the missing items, each at the first try (Floyd's method).
        for k in range(count):
            last = n_items - size - count + k
            rank = below(drawn[k], last + 1)
            if marks[rank] == stamp:
                rank = last
            marks[rank] = stamp
            sampled[k] = absent_item(profile, 0, size, rank)


def virtual_items(
    recipe: Any, user: int, round_number: int, profile: IntVector, count: int, n_items: int, sampled: IntVector
) -> IntVector:
    """The items that get a virtual rating in this round, in the order of their draws.

    A sample for a lifetime outlives changes of the history: what was `sampled` before and is not rated stays, ahead
    of new ones. (While most of the catalogue is free the draws see to that by themselves.)
    """
    drawn = _drawn(recipe.seed, user, round_of_sample(recipe, round_number), profile, n_items, count)
    if not recipe.fixed or not len(sampled):
        return drawn
    stays = np.setdiff1d(sampled, profile).astype(np.int32)
    if np.isin(stays, drawn).all() or np.isin(drawn, stays).all():
        return drawn
    if len(stays) >= count:
        return stays[:count]
    known = np.union1d(profile, stays).astype(np.int32)
    more = _drawn(recipe.seed, user, round_of_sample(recipe, round_number), known, n_items, count - len(stays))
    return np.concatenate((stays, more))


def _drawn(seed: int, user: int, named_by: int, profile: IntVector, n_items: int, count: int) -> IntVector:
    drawn = np.empty(count, np.int32)
    sample_unrated(seed, user, named_by, profile, n_items, np.zeros(n_items, np.int64), 1, drawn)
    return drawn


class Ratings(NamedTuple):
    """Ratings that a client learns from, real ones first."""

    items: IntVector
    values: FloatVector


def compute_ratings(recipe: RatingRecipe, private: RatingPrivate, broadcast: RatingBroadcast) -> RatingGradients:
    """One client's part of a round: its own vector moves, and item gradients come out; rated items first."""
    iteration = broadcast.iteration
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
    # The server will subtract W's gradients times its own rate, so that its W become the client's.
    change = broadcast.implicit_vectors[private.items] - W
    return RatingGradients(ratings.items, vectors, private.items, change / rate_after(recipe, iteration))


def _learnt(
    recipe: RatingRecipe, U: FloatVector, W: FloatMatrix, V_i: FloatVector, rating: np.float32, k: int, rate: np.float32
) -> tuple[FloatVector, FloatVector]:
    """One rating: the moved U, and the gradient of V_i; the W of the other rated items move in place."""
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
    """U and the normalised sum of the other rated items' W."""
    others = _all_but(k, W)
    bracket: FloatVector = U + normaliser(others.sum()) * W[others].sum(axis=0)
    return bracket


def _all_but(k: int, W: FloatMatrix) -> NDArray[np.bool_]:
    """Which W count for a rating: all of them where it is virtual."""
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
    # W_i' counts for all ratings but its own: the mean over them of e n V, where n is that of the rating.
    residuals = (errors * _normalisers(len(W), len(V)))[:, None] * V
    means = (residuals.sum(axis=0) - residuals[: len(W)]) * np.float32(1 / len(V))
    return RatingGradients(ratings.items, vectors, private.items, means + recipe.regulariser * W)


def _mean_gradient(
    recipe: RatingRecipe, U: FloatVector, V: FloatMatrix, others: FloatMatrix, values: FloatVector
) -> FloatVector:
    """Eq. 7: of e V_i + lambda U, with U + the other rated items' W in the place of U in e."""
    errors = _errors(U + others, V, values)
    mean: FloatVector = (errors @ V) * np.float32(1 / len(values)) + recipe.regulariser * U
    return mean


def _errors(brackets: FloatMatrix, V: FloatMatrix, values: FloatVector) -> FloatVector:
    """How much too high each predicted rating is; one bracket may stand for all."""
    errors: FloatVector = (V @ brackets[0] if len(brackets) == 1 else np.einsum("kf,kf->k", brackets, V)) - values
    return errors


def _others(W: FloatMatrix, count: int) -> FloatMatrix:
    """For each of this many ratings, real ones first: the normalised sum of the other rated items' W; zero for PMF."""
    if not len(W):
        return np.zeros((1, W.shape[1]), dtype=np.float32)
    sums = np.broadcast_to(W.sum(axis=0), (count, W.shape[1])).copy()
    sums[: len(W)] -= W[:count]
    return sums * _normalisers(len(W), count)[:, None]


def _normalisers(rated: int, count: int) -> FloatVector:
    """1 / sqrt(how many W count for a rating): all but its own where it is real."""
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
    """The user's ratings, and virtual ones of sampled items behind them."""
    count, n_items = private.virtual, len(broadcast.vectors)
    if count == 0:
        return Ratings(private.items, private.ratings)
    sampled = virtual_items(
        recipe, private.user, broadcast.round_number, private.items, count, n_items, private.sampled
    )
    values = np.full(count, private.mean)
    if recipe.hybrid and (predicts(recipe, iteration) or recipe.local_own):
        rated = Ratings(private.items, private.ratings)
        if recipe.local_all:
            rated = Ratings(np.concatenate((private.items, sampled)), np.concatenate((private.ratings, values)))
        U, local = _trained_locally(
            recipe, private.vector, broadcast.vectors[rated.items], rated.values, W.copy(), rate
        )
        if recipe.local_own:
            private.vector, W[:] = U, local
        if predicts(recipe, iteration):
            bracket = U + normaliser(len(local)) * local.sum(axis=0)
            values = broadcast.vectors[sampled] @ bracket
    return Ratings(np.concatenate((private.items, sampled)), np.concatenate((private.ratings, values)))


def _trained_locally(
    recipe: RatingRecipe, U: FloatVector, V: FloatMatrix, values: FloatVector, W: FloatMatrix, rate: np.float32
) -> tuple[FloatVector, FloatMatrix]:
    """T_local passes over ratings, real ones first; nothing of them is sent."""
    others = _others(W, len(V)) if recipe.batch else W
    for _ in range(recipe.local_passes):
        if recipe.batch:
            U = U - rate * _mean_gradient(recipe, U, V, others, values)
            continue
        for k, rating in enumerate(values):
            U, _, _ = _step(recipe, U, W, V[k], rating, k, rate)
    return U, W


# Transmission: the gradients of rated and sampled items, in one ascending list.


def share_ratings(gradients: RatingGradients) -> RatingGradients:
    """What is sent: all item gradients, by item number."""
    order = np.argsort(gradients.items)
    return RatingGradients(
        gradients.items[order].astype(np.int32),
        gradients.vectors[order].astype(np.float32),
        gradients.implicit_items.astype(np.int32),
        gradients.implicit_vectors.astype(np.float32),
    )


# Aggregation: the server moves each item against the mean of its gradients.


def stepped(
    recipe: RatingRecipe, iteration: int, vectors: FloatMatrix, sums: FloatMatrix | RealMatrix, counts: RealVector
) -> FloatMatrix:
    """Vectors after a step by sums of gradients divided by counts; a count below one is taken for one."""
    shares: Any = (1 / np.maximum(counts, 1.0)).astype(sums.dtype)
    moved: FloatMatrix = vectors - rate_after(recipe, iteration) * (sums * shares[:, None]).astype(np.float32)
    return moved


# First values of vectors where ratings are learnt: uniform numbers of mean zero, drawn like every other choice.


def uniform_rows(rows: int, columns: int, *, seed: int, purpose: int, span: float, first_row: int = 0) -> FloatMatrix:
    """Uniform numbers in a range of width `span` around zero; each is named by its row and column."""
    table = np.zeros((rows, columns), dtype=np.float32)
    numbers = np.arange(first_row, first_row + rows, dtype=np.uint32)
    for first in range(0, columns, 4):
        with words_wrap_around():
            drawn = np.column_stack(words(seed, numbers, purpose, 0, first // 4)).astype(np.float64)
        table[:, first : first + 4] = (span * (drawn / WORDS - 0.5))[:, : columns - first]
    return table


# Fold-in: a user's vector in closed form, from few ratings or from many.


FOLD_IN_REGULARIZATION = 0.5
"""As if half a rating of zero were there in every direction: from few ratings it predicts far better than lambda n, and
from many as well (docs/fedrec.md)."""


def folded_in(
    vectors: FloatMatrix,
    ratings: FloatVector,
    implicit: FloatVector,
    regularization: float = FOLD_IN_REGULARIZATION,
) -> FloatVector:
    """What predicts these ratings of items with these vectors best: the solved vector plus `implicit`."""
    V = vectors.astype(np.float64)
    gram = V.T @ V + regularization * np.eye(V.shape[1])
    own = np.linalg.solve(gram, V.T @ (ratings.astype(np.float64) - V @ implicit))
    vector: FloatVector = (own + implicit).astype(np.float32)
    return vector


def implicit_part(implicit_vectors: FloatMatrix, factors: int) -> FloatVector:
    """The normalised sum of the rated items' W; zero without rows."""
    if not len(implicit_vectors):
        return np.zeros(factors, dtype=np.float32)
    total: FloatVector = normaliser(len(implicit_vectors)) * implicit_vectors.sum(axis=0)
    return total
