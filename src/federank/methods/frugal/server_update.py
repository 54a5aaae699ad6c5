"""Aggregation: what the server does with the two sums of a round, in one of three ways. Only sums enter.

The sums are S = sum of a_u w_u x_u' (items x factors) and H = sum of a_u x_u x_u' (factors x factors); a constant 1 at
the end of every x_u adds a column to S from which the number of users n_i of each item follows.

**spectral** (where alpha = 0, the default). With Y as it was sent, A = S + Y H = P'X: what everyone's items have in
common, seen through Y. A round is so a step of subspace iteration on C = P'P, and C itself is known inside the span by
Nystrom's formula, C ~ A H^-1 A'. Items weigh d_i = n_i^-popularity (1 - 1/n_i): what one user alone has says nothing
about anyone else, and what everyone has says little. With C = V diag(sigma^2) V' and V'DV = I, the solution of the
whole problem in that span follows at once:

    lambda = shrinkage x sigma_F        Y = V diag(sqrt(sigma - lambda))

so a user's scores become V (1 - lambda / sigma) V'D p. Alternating solves reach the same, but creep there. A cohort's
C is added to what is known of the others'; once everyone has spoken, what is known fades as much as is added.

**solve**: Y + damping (S - lambda Y)(H + lambda I)^-1, the step of alternating least squares; also for alpha > 0, where
damping below 1 makes up for H not knowing of confidences. A cohort's sums are scaled up to everyone, and averaged in:
H <- (1 - b) H + b h, and damping x b of the way, with b = max(1 / t, 1.5 / cohorts) at the t-th cohort.

**adam** (federation/adam.py): a step against the gradient -2 S + 2 lambda Y, as FCF published it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank._numerics.topn import gram_matrix, tall_product, weighted_gram
from federank.errors import DataError, Diverged
from federank.federation import wire
from federank.federation.adam import Adam, adam_step
from federank.federation.rng import ITEM_FACTORS, normal_rows
from federank.methods.frugal.bounds import (
    CALM_ROUNDS,
    FEWEST_UPLOADS,
    bound_rows,
    capped_items,
    hold_back,
    spectral_tastes,
    tastes_of_uploads,
    usual_length,
    without_jumps,
)
from federank.methods.frugal.item_weights import ItemWeights
from federank.methods.frugal.objective import Objective
from federank.methods.frugal.protocol import covered_items, published
from federank.methods.frugal.records import ServerState, SummedMessages, placed
from federank.methods.frugal.ridge import Exposure, from_sums, low_rank_norm, through_model
from federank.methods.frugal.settings import COHORTS

if TYPE_CHECKING:
    from federank.methods.frugal.method import Frugal

_LITTLE = 1e-5
HALF = 0.5
"""Counts are integers, up to the rounding of sums."""
LEAST_WEIGHT = np.float32(1e-6)
FEWEST_ITEMS = 50
"""Fewer supported items make no model."""
_NOTHING = 1e-9
LEAST = 0.01
"""Where lambda follows the data, no direction falls below this part of the smallest singular value: one that is lost
would be in no later message."""


class Spectrum(NamedTuple):
    """C = P'P as far as it is known: V diag(sigma^2) V'."""

    vectors: RealMatrix  # V, items x factors; columns of zeros where less is known
    singular_values: RealVector  # sigma, descending


def spectrum_of(products: RealMatrix, squares: RealMatrix, threads: int = 1) -> RealMatrix:
    """W with W W' = A H^-1 A', Nystrom's formula; directions in which no one has anything are left out."""
    values, directions = np.linalg.eigh(squares)
    kept = values > _NOTHING * max(values[-1], 0.0)
    if not kept.any():
        return np.zeros_like(products)
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return tall_product(products, directions * scale, threads)


def item_weights(counts: RealVector, popularity: float, received: float = 1.0) -> FloatVector:
    """How much items count that this many users have: d, 1 for items of mean popularity that many share.

    What one user alone has weighs nothing, or a little less than the rest where only a share of users was `received`.
    """
    if popularity == 0:
        return np.ones(len(counts), dtype=np.float32)
    known = np.maximum(counts, 1.0)
    weights: FloatVector = ((known / known.mean()) ** -popularity * (1 - received / known)).astype(np.float32)
    return weights


def strongest(sketch: RealMatrix, weights: FloatVector, factors: int, threads: int = 1) -> Spectrum:
    """The largest singular values of a sketch whose items have weights, and their left vectors: V'DV = I."""
    values, directions = np.linalg.eigh(weighted_gram(sketch, weights, threads))
    values, directions = values[::-1][:factors], directions[:, ::-1][:, :factors]
    kept = values > _NOTHING * max(values[0], 0.0)
    singular = np.sqrt(np.where(kept, values, 0.0))
    scale = np.where(kept, 1.0 / np.where(kept, singular, 1.0), 0.0)
    return Spectrum(tall_product(sketch, directions * scale, threads), singular)


def faded(received: float, now: int, all_users: int) -> float:
    """How much is kept of what is known: all until everyone has spoken; then those who speak again replace it."""
    return 1.0 if not received or received + now <= all_users else max(0.0, all_users - now) / received


def balanced(spectrum: Spectrum, shrinkage: float, regulariser: float | None) -> tuple[FloatMatrix, float]:
    """The item vectors that solve the whole problem in this span, and the lambda that they belong to."""
    sigma = spectrum.singular_values
    if regulariser is None:
        smallest = sigma[sigma > 0][-1]
        regularisation = shrinkage * smallest
        left = np.where(sigma > 0, np.maximum(sigma - regularisation, LEAST * smallest), 0.0)
    else:
        regularisation, left = regulariser, np.maximum(sigma - regulariser, 0.0)
        if not left.any():
            raise Diverged(
                f"regulariser is {regulariser:g}, and no singular value of the sums is above {sigma[0]:.4g}: every "
                "item vector would be zero. A smaller regulariser is needed; left out, it follows the data."
            )
    vectors = spectrum.vectors * np.sqrt(left)
    return vectors.astype(np.float32), float(regularisation)


def smallest_singular_value(objective: Objective, gram: RealMatrix, squares: RealMatrix, regulariser: float) -> float:
    """sigma_F of everyone's items inside the span of Y, from H and Y'Y alone (Rayleigh and Ritz).

    x = (Y'Y + lambda I)^-1 (1 + alpha) Y'p where own items weigh little, so H gives Y'P'PY back.
    """
    back = (float(objective.unobserved) * gram + regulariser * np.eye(len(gram))) / float(objective.liked)
    values, directions = np.linalg.eigh(gram)
    kept = values > _NOTHING * max(values[-1], 0.0)
    half = directions[:, kept] / np.sqrt(values[kept])
    inside = np.linalg.eigvalsh(half.T @ back @ squares @ back @ half)
    # A few users span few directions: what is zero in the others is not small, but unknown.
    known = inside[inside > _NOTHING * max(inside[-1], 0.0)] if len(inside) else inside
    return float(np.sqrt(known[0])) if len(known) else 0.0


def solved(
    vectors: FloatMatrix, residuals: RealMatrix, curvature: RealMatrix, regulariser: float, part: float
) -> FloatMatrix:
    """One step of alternating least squares for these items, this part of the way."""
    sides = curvature + regulariser * np.eye(len(curvature))
    try:
        steps = np.linalg.solve(sides, (residuals - regulariser * vectors).T).T
    except np.linalg.LinAlgError as reason:
        raise Diverged(
            "The sum of the clients' vectors cannot be solved from: it is singular. A regulariser above 0 is needed."
        ) from reason
    moved: FloatMatrix = (vectors + part * steps).astype(np.float32)
    return moved


# The step, on the state of a server, real or simulated.


def stepped(
    method: Frugal,
    state: ServerState,
    sums: SummedMessages,
    users: int,
    *,
    cohorts: int = COHORTS,
    threads: int = 1,
    is_strict: bool = False,
) -> ServerState:
    """The state after a step for this many users; the number of threads changes no bit of it.

    There is nothing to learn without an upload, from users who weigh nothing, or whose vectors are all zero. Where no
    model follows from the sums, they are kept and the model stays; `is_strict` raises Diverged instead.
    """
    items = covered_items(method.min_support, state.weights)
    is_part = len(items) < len(state.weights)
    known = replace(wire.rows_of(state, items) if is_part else state, capped=np.zeros(1, dtype=np.int64))
    if sums.messages and sums.squares[-1, -1] > 0 and np.any(sums.squares[:-1, :-1]):
        sent_vectors = published(method, known.vectors)
        if method.step == "spectral":
            known = _spectral(method, known, sent_vectors, sums, users, threads, is_strict)
        elif method.step == "solve":
            known = _solve(method, known, sent_vectors, sums, users, cohorts, is_strict)
        else:
            known = _adam(method, known, sums)
    if is_part:  # only the supported items are in the sums: the rest of the model is zeros, and stays so
        rows = {name: placed(getattr(known, name), items, len(state.weights)) for name in wire.tables(state)}
        known = replace(known, **rows | {"counted": state.counted})
    return replace(known, folds=state.folds + 1)


def _spectral(
    method: Frugal,
    state: ServerState,
    sent_vectors: FloatMatrix,
    sums: SummedMessages,
    users: int,
    threads: int,
    is_strict: bool,
) -> ServerState:
    if method.exposure_cap < 1:
        sums = bound_rows(sums, sent_vectors, threads)
    # S + Y H = P'X, with the column of the constant 1: how many users have each item, each user with their weight.
    products = sums.residuals + tall_product(sent_vectors, sums.squares[:-1], threads)
    mean_weight = sums.squares[-1, -1] / sums.messages
    if method.kept:
        state = _with_sums(method, state, sent_vectors, products * (users / sums.messages))
    # Nystrom's sketch of what these users' items have in common joins what is known.
    now = spectrum_of(products[:, :-1], sums.squares[:-1, :-1], threads)
    received = float(state.received[0])
    kept = faded(received, sums.messages, users)
    is_calm = int(state.folds[0]) >= int(state.began[0]) + CALM_ROUNDS and 2 * received >= users
    together = np.hstack((np.sqrt(kept) * state.sketch, now)) if kept > 0 else now
    counts, received = kept * state.counts + products[:, -1] / mean_weight, kept * received + sums.messages
    share = received / users
    few = received < min(method.factors, users)  # too few to tell what no one else will have
    weights = item_weights(counts / share, method.item_weight_exponent, share if few else 1.0)
    if method.min_support > 1:  # what weighs nothing is in no upload
        weights = np.maximum(weights, LEAST_WEIGHT)
    reported = np.einsum("ij,ij->i", together, together)
    # Where no two users share an item yet, what they sent is kept: a model of it would be nothing, and lead nowhere.
    informative = float(weights @ reported) > _LITTLE * float(reported.sum())
    spectrum = strongest(together, weights if informative else np.ones_like(weights), method.factors, threads)
    sketch = np.ascontiguousarray(spectrum.vectors * spectrum.singular_values)
    state = replace(state, sketch=sketch, counts=counts, received=np.array([received]))
    if not informative:
        return state
    try:
        vectors, regulariser = balanced(spectrum, method.shrinkage_used, method.regulariser)
    except Diverged:
        if is_strict:
            raise
        return state
    unknown = spectrum.singular_values == 0
    if unknown.any():
        # A few users fill few directions. Anyone who shares nothing with them must be seen through the others.
        scale = float(np.sqrt(LEAST * spectrum.singular_values[~unknown][-1] / len(vectors)))
        vectors[:, unknown] = first_vectors(method, len(vectors), scale)[:, unknown]
    capped = 0
    if method.exposure_cap < 1:
        tastes = spectral_tastes(vectors, weights, regulariser, counts / received, mean_weight * received, threads)
        free = vectors
        vectors = hold_back(free, tastes, method.exposure_cap, threads, least=usual_length(free))
        capped = capped_items(free, vectors)
        if is_calm and sums.messages >= FEWEST_UPLOADS:
            vectors = without_jumps(sent_vectors, tastes_of_uploads(sums.squares), vectors, tastes)
    model = {"vectors": vectors, "weights": weights, "regulariser": np.array([regulariser])}
    return replace(state, **model, capped=np.array([capped]))


def _with_sums(method: Frugal, state: ServerState, sent_vectors: FloatMatrix, seen: RealMatrix) -> ServerState:
    """The state with the sums of this round, from which item-item weights follow; the newest rounds are kept."""
    kept_seen, kept_through, columns = state.seen.copy(), state.through.copy(), method.columns
    first = columns * (int(state.folds[0]) % method.messages)
    kept_seen[:, first : first + columns] = seen
    through = through_model(sent_vectors, state.weights, float(state.regulariser[0]))
    kept_through[:, first : first + method.factors] = through
    return replace(state, seen=kept_seen, through=kept_through)


def ridge_of(method: Frugal, state: ServerState) -> ItemWeights:
    """Item-item weights from the sums of all rounds and the model that they have led to."""
    items = covered_items(method.min_support, state.weights)
    model = published(method, state.vectors)[items], state.weights[items]
    regulariser, received = float(state.regulariser[0]), float(state.received[0])
    exposure = None
    if method.exposure_cap < 1:
        seen_through = through_model(*model, regulariser)
        exposure = Exposure(model[0].astype(np.float64), seen_through, method.exposure_cap)
    seen, through, interactions = state.seen[items], state.through[items], float(state.counts.sum())
    low_rank = low_rank_norm(*model, regulariser)
    weights = from_sums(seen, through, method.factors, interactions, received, low_rank, exposure)
    return weights.placed(items, len(state.weights))


def _solve(
    method: Frugal,
    state: ServerState,
    sent_vectors: FloatMatrix,
    sums: SummedMessages,
    users: int,
    cohorts: int,
    is_strict: bool,
) -> ServerState:
    scale, regulariser = users / sums.messages, float(state.regulariser[0])
    part = min(1.0, max(1 / (int(state.folds[0]) + 1), 1.5 / cohorts)) if cohorts > 1 else 1.0
    curvature = (1 - part) * state.curvature + part * (scale * sums.squares[:-1, :-1])
    state = replace(state, curvature=np.ascontiguousarray(curvature))
    if method.regulariser is None:
        gram = gram_matrix(sent_vectors, state.weights)
        smallest = smallest_singular_value(method.objective, gram, curvature, regulariser)
        regulariser = method.shrinkage_used * smallest or regulariser
    try:
        residuals = scale * sums.residuals[:, :-1]
        moved = solved(sent_vectors, residuals, curvature, regulariser, method.damping * part)
    except Diverged:
        if is_strict:
            raise
        return state
    return replace(state, vectors=np.ascontiguousarray(moved), regulariser=np.array([regulariser]))


def _adam(method: Any, state: ServerState, sums: SummedMessages) -> ServerState:
    gradient = (2 * (state.regulariser[0] * state.vectors - sums.residuals[:, :-1])).astype(np.float32)
    adam = Adam(method.learning_rate, method.beta1, method.beta2)
    mean, square = state.mean.copy(), state.square.copy()
    vectors = adam_step(adam, state.vectors, gradient, mean, square, int(state.folds[0]) + 1)
    return replace(state, vectors=vectors, mean=mean, square=square)


# The first model, and which items it has.


def first_vectors(method: Frugal, n_items: int, scale: float) -> FloatMatrix:
    """Vectors drawn from the seed. Compiles nothing."""
    return normal_rows(n_items, method.factors, seed=method.seed, purpose=ITEM_FACTORS, scale=scale)


def first_regulariser(method: Frugal) -> float:
    """Lambda before anything is learnt: as large as a column of the vectors, where it follows from the sums."""
    return method.initial_scale**2 * method.n_items if method.regulariser is None else method.regulariser


def with_support(method: Frugal, state: ServerState) -> ServerState:
    """The state after more counts: items that have enough users now are supported."""
    supported = (state.weights > 0) | (state.counted > method.min_support - HALF)
    if supported.sum() < FEWEST_ITEMS or np.array_equal(supported, state.weights > 0):
        return state
    if float(state.received[0]):  # what is not known of a new item comes with the next uploads
        return replace(state, weights=np.where((state.weights == 0) & supported, LEAST_WEIGHT, state.weights))
    weights, regulariser = supported.astype(np.float32), first_regulariser(method)
    if method.regulariser is None:
        regulariser *= float(supported.mean())
    vectors = first_vectors(method, method.n_items, method.initial_scale) * weights[:, None]
    return replace(state, vectors=vectors, weights=weights, regulariser=np.array([regulariser]))


def refuse_few_items(method: Frugal, found: int) -> None:
    """Refuse to learn from fewer items than a model can be made of."""
    if found < FEWEST_ITEMS:
        raise DataError(
            f"{found:,} of {method.n_items:,} items have {method.min_support} users or more (min_support), and at "
            f"least {FEWEST_ITEMS} are needed to learn from. More users, or a smaller min_support, are needed."
        )
