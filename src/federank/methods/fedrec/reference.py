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

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank._numerics.rows import dot, inlined
from federank.federation.method import Client, ItemGradients, ItemSums
from federank.federation.rng import VIRTUAL, absent_item, below, words, words_wrap_around
from federank.federation.wire import Array, array

# What crosses the wire, and what the server keeps.


@dataclass(frozen=True, eq=False)
class RatingModel:
    """Broadcast."""

    vectors: Array = array("items", "factors")  # V
    reported: Array = array("items", dtype="i1", minimum=0, maximum=1)  # whether any upload has had the item
    iteration: Array = array(1, dtype="i4", minimum=0)  # iterations that are over

    @property
    def implicit(self) -> FloatMatrix:
        """W, one row per item; no rows for PMF."""
        rows: FloatMatrix = np.asarray(getattr(self, "implicit_vectors", self.vectors[:0]))
        return rows


@dataclass(frozen=True, eq=False)
class RatingState:
    """State: what clients download, and what the next step needs."""

    vectors: Array = array("items", "factors")
    reported: Array = array("items", dtype="i1", minimum=0, maximum=1)
    progress: Array = array(1, dtype="f8", minimum=0)  # iterations, with the part of the one that is not over
    uploads: Array = array(1, dtype="f8", minimum=0)  # of about one iteration
    reports: Array = array("items", dtype="f8")  # how many of these uploads had the item


@dataclass(frozen=True, eq=False)
class ImplicitModel(RatingModel):
    """Broadcast of SVD++."""

    implicit_vectors: Array = array("items", "factors")  # W


@dataclass(frozen=True, eq=False)
class ImplicitState(RatingState):
    """State of SVD++."""

    implicit_vectors: Array = array("items", "factors")
    implicit_reports: Array = array("items", dtype="f8")


@dataclass(frozen=True, eq=False)
class ImplicitGradients(ItemGradients):
    """Update of SVD++: rows of W too, of the rated items alone."""

    implicit_items: Array = array("implicit_rows", dtype="index")
    implicit_vectors: Array = array("implicit_rows", "factors")


@dataclass(eq=False, kw_only=True)
class ImplicitSums(ItemSums):
    """Their sums."""

    implicit_vectors: Array = array("items", "factors", dtype="f8")
    implicit_counts: Array = array("items", dtype="f8")


class RatingRecipe(NamedTuple):
    """Settings resolved for a population: numbers and arrays that every engine can use."""

    seed: int
    factors: int
    federated: bool
    batch: bool
    implicit: bool  # SVD++: items have a second vector
    learning_rate: float
    decay: float
    regulariser: np.float32
    hybrid: bool
    predict_from: int  # the iteration, from 0, whose virtual ratings are the first to be predicted
    local_passes: int
    local_own: bool  # local passes move the user's own vectors, not a copy
    local_all: bool  # they go over virtual ratings too
    after: bool  # item gradients are taken after the user's step
    rate_by_participation: bool
    participants: IntVector  # the users who have rated anything
    virtual: IntVector  # per user: number of items with a virtual rating in a round
    fixed: bool  # these are the same items in every round
    clients_per_round: int
    rounds_per_epoch: int  # an epoch is what the paper calls an iteration


@inlined
def rate_after(recipe: Any, times: Any) -> Any:
    """The learning rate once it has fallen this many times."""
    return np.float32(recipe.learning_rate * recipe.decay ** np.float64(times))


@inlined
def predicts(recipe: Any, iteration: Any) -> Any:
    """Whether this iteration's virtual ratings are predictions."""
    return recipe.hybrid and iteration >= recipe.predict_from


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


class Computed(NamedTuple):
    """A client's part of a round."""

    update: ItemGradients
    vector: FloatVector
    sampled: IntVector  # items with a virtual rating


def compute_ratings(
    recipe: RatingRecipe, client: Client, model: RatingModel, virtual: int, times: int | None = None
) -> Computed:
    """One client's part of a round: its vector moves, and the gradients of rated and sampled items come out.

    `virtual` items get a virtual rating. The client's rate has fallen with each iteration, or `times` times.
    """
    iteration = int(model.iteration[0])
    with words_wrap_around():
        rate = rate_after(recipe, iteration if times is None else times)
        U, W = client.state.vector, model.implicit[client.items if recipe.implicit else []]  # W: a copy of these rows
        U, ratings = _with_virtual(recipe, client, model, U, W, rate, virtual)
        V = model.vectors[ratings.items]
        if recipe.batch:
            U, vectors, implicit = _compute_batch(recipe, U, ratings, V, W, rate)
        else:
            vectors = np.empty_like(V)
            for k, rating in enumerate(ratings.values):
                U, vectors[k] = _learnt(recipe, U, W, V[k], rating, k, rate)
            # The server will subtract W's gradients times its own rate, so that its W become the client's.
            implicit = (model.implicit[client.items[: len(W)]] - W) / rate_after(recipe, iteration)
    order = np.argsort(ratings.items)  # one ascending list, which does not say which items were sampled
    sent = ratings.items[order].astype(np.int32), vectors[order].astype(np.float32)
    own = (client.items.astype(np.int32), implicit.astype(np.float32)) if recipe.implicit else ()
    update = ImplicitGradients(*sent, *own) if recipe.implicit else ItemGradients(*sent)
    return Computed(update, U, ratings.items[len(client.items) :])


def _learnt(
    recipe: RatingRecipe, U: FloatVector, W: FloatMatrix, V_i: FloatVector, rating: np.float32, k: int, rate: np.float32
) -> tuple[FloatVector, FloatVector]:
    """One rating: the moved U, and the gradient of V_i; the W of the other rated items move in place."""
    moved, bracket, error = _step(recipe, U, W, V_i, rating, k, rate)
    if recipe.after:
        bracket = moved + _normalised_sum(W[np.arange(len(W)) != k])
        error = rating_error(bracket, V_i, rating)
    return moved, item_gradient(error, bracket, V_i, recipe.regulariser)


def _step(
    recipe: RatingRecipe, U: FloatVector, W: FloatMatrix, V_i: FloatVector, rating: np.float32, k: int, rate: np.float32
) -> tuple[FloatVector, FloatVector, np.float32]:
    """One rating's own part: the moved U, and the bracket and the error that moved it; the W move in place."""
    others = np.arange(len(W)) != k  # all W count for a virtual rating
    bracket = U + _normalised_sum(W[others])
    error = rating_error(bracket, V_i, rating)
    moved = U - rate * user_gradient(error, U, V_i, recipe.regulariser)
    if len(W):
        W[others] -= rate * (error * normaliser(others.sum()) * V_i + recipe.regulariser * W[others])
    return moved, bracket, error


def _normalised_sum(W: FloatMatrix) -> FloatVector:
    total: FloatVector = normaliser(len(W)) * W.sum(axis=0)
    return total


def _compute_batch(
    recipe: RatingRecipe, before: FloatVector, ratings: Ratings, V: FloatMatrix, W: FloatMatrix, rate: np.float32
) -> tuple[FloatVector, FloatMatrix, FloatMatrix]:
    """The moved U, and the gradients of V and W."""
    others = _others(W, len(V))
    after = before - rate * _mean_gradient(recipe, before, V, others, ratings.values)
    brackets = (after if recipe.after else before) + others
    errors = _errors(brackets, V, ratings.values)
    vectors = errors[:, None] * brackets + recipe.regulariser * V
    if not recipe.implicit:
        return after, vectors, W
    # W_i' counts for all ratings but its own: the mean over them of e n V, where n is that of the rating.
    residuals = (errors * _normalisers(len(W), len(V)))[:, None] * V
    means = (residuals.sum(axis=0) - residuals[: len(W)]) * np.float32(1 / len(V))
    return after, vectors, means + recipe.regulariser * W


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
    client: Client,
    model: RatingModel,
    U: FloatVector,
    W: FloatMatrix,
    rate: np.float32,
    count: int,
) -> tuple[FloatVector, Ratings]:
    """The client's vector, its ratings, and virtual ones of sampled items behind them."""
    own = Ratings(client.items, client.ratings)
    if count == 0:
        return U, own
    n_items, iteration = len(model.vectors), int(model.iteration[0])
    key = client.user, client.round
    sampled = virtual_items(recipe, *key, client.items, count, n_items, client.sent_negatives)
    values = np.full(count, np.float32(client.ratings.mean()))
    if recipe.hybrid and (predicts(recipe, iteration) or recipe.local_own):
        met = Ratings(np.append(own.items, sampled), np.append(own.values, values)) if recipe.local_all else own
        local_U, local_W = _trained_locally(recipe, U, model.vectors[met.items], met.values, W.copy(), rate)
        if recipe.local_own:
            U, W[:] = local_U, local_W
        if predicts(recipe, iteration):
            values = model.vectors[sampled] @ (local_U + _normalised_sum(local_W))
    return U, Ratings(np.append(own.items, sampled), np.append(own.values, values))


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


# Aggregation: the server moves each item against the mean of its gradients.


def stepped(
    recipe: RatingRecipe, iteration: int, vectors: FloatMatrix, sums: FloatMatrix | RealMatrix, counts: RealVector
) -> FloatMatrix:
    """Vectors after a step by sums of gradients divided by counts; a count below one is taken for one."""
    shares: Any = (1 / np.maximum(counts, 1.0)).astype(sums.dtype)
    moved: FloatMatrix = vectors - rate_after(recipe, iteration) * (sums * shares[:, None]).astype(np.float32)
    return moved


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
    return _normalised_sum(implicit_vectors) if len(implicit_vectors) else np.zeros(factors, dtype=np.float32)
