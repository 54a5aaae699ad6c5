"""Aggregation: the server adds the messages of a round up, and solves for the item vectors from the two sums alone.

What the server holds is the model (item vectors and the lambda they belong to) and the memory of its step
(server_steps.py). Because only sums enter, sums that no one could read the parts of would do as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank._numerics.topn import gram_matrix, tall_product
from federank.errors import DataError, Diverged
from federank.federation.adam import Adam, adam_step
from federank.federation.rng import ITEM_FACTORS, normal_rows
from federank.methods.frugal.item_weights import ItemWeights
from federank.methods.frugal.private_plan import PrivatePlan
from federank.methods.frugal.private_server import (
    REGULARISATION,
    fold_histories,
    fold_popularity,
    noisy_counts,
    received_from,
    values_of,
    with_both_noises,
)
from federank.methods.frugal.protocol import (
    FrugalBroadcast,
    check_frugal_update,
    check_private_update,
    dense,
    is_counting,
    make_frugal_broadcast,
    published,
    supported_items,
)
from federank.methods.frugal.records import ServerState, with_item_weights
from federank.methods.frugal.ridge import Exposure, from_sums, low_rank_norm, through_model
from federank.methods.frugal.server_steps import (
    CALM_ROUNDS,
    FEWEST_UPLOADS,
    LEAST,
    SummedMessages,
    balanced,
    bound_rows,
    capped_items,
    faded,
    hold_back,
    item_weights,
    private_tastes,
    smallest_singular_value,
    solved,
    spectral_tastes,
    spectrum_of,
    strongest,
    tastes_of_uploads,
    usual_length,
    without_jumps,
)
from federank.methods.frugal.settings import FrugalRecipe
from federank.secagg.ring import in_ring

_LITTLE = 1e-5
HALF = 0.5
"""Counts are integers, up to the rounding of sums."""
LEAST_WEIGHT = np.float32(1e-6)
FEWEST_ITEMS = 50
"""Fewer supported items make no model."""


@dataclass(eq=False)
class FrugalState:
    """What the server holds between two rounds."""

    vectors: FloatMatrix  # items x factors
    regulariser: float  # lambda: sent to clients with the vectors
    sketch: RealMatrix  # spectral: what is known of everyone's items, V diag(sigma); solve: the average of H;
    # private: the rounds, where they are read together (private_server.py)
    mean: FloatMatrix  # adam: past gradients; no rows for the other steps
    square: FloatMatrix
    weights: FloatVector  # d: how much each item counts when a client solves for its own vector
    counts: RealVector  # spectral: users of each item, by the uploads received; private: popularity, of at most 1
    received: float = 0.0  # spectral: how many messages sketch and counts stand for
    round_number: int = 0
    seen: FloatMatrix = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    # ridge: A of each round and the users of each item (with their weights), beside those of the other rounds
    through: FloatMatrix = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))  # ridge: B of each round
    capped: int = 0  # items that the last step's exposure cap has shortened
    began: int = 0  # the round that the season began with

    def distribute(self, recipe: FrugalRecipe) -> FrugalBroadcast:
        """All item vectors, for anyone who takes part."""
        return make_frugal_broadcast(recipe, self.round_number, self.regulariser, self.vectors, self.weights)

    def aggregate(self, recipe: FrugalRecipe, updates: Iterable[Any]) -> None:
        """Fold a round's uploads into the shared model: all of them, or none if one breaks the protocol."""
        if recipe.private is not None:
            fold(recipe, self, _sum_of_integers(recipe, self.round_number, self.weights, updates))
            return
        rows, factors = len(supported_items(recipe, self.weights)), recipe.factors
        if is_counting(recipe, self.weights):
            rows, factors = recipe.n_items, 0
        residuals, squares, count = np.zeros((rows, factors + 1)), np.zeros((factors + 1, factors + 1)), 0
        for update in updates:
            check_frugal_update(update, factors, rows)
            message = dense(update)
            residuals += message.residuals
            squares += message.squares
            count += 1
        fold(recipe, self, SummedMessages(residuals, squares, count))


def first_shared(recipe: FrugalRecipe, initial_scale: float) -> FrugalState:
    """What the server begins with: vectors drawn from the seed, and no memory."""
    vectors = normal_rows(recipe.n_items, recipe.factors, seed=recipe.seed, purpose=ITEM_FACTORS, scale=initial_scale)
    # Before the first upload nothing is known of the data: clients weigh the catalogue and the regularisation alike.
    own = first_regulariser(recipe._replace(initial_scale=initial_scale))
    moments = vectors.shape if recipe.step == "adam" else (0, recipe.factors)
    kept = (recipe.n_items, recipe.rounds * (recipe.factors + 1)) if recipe.ridge else (0, 0)
    return FrugalState(
        vectors,
        own if recipe.regulariser < 0 else recipe.regulariser,
        _empty_sketch(recipe),
        np.zeros(moments, dtype=np.float32),
        np.zeros(moments, dtype=np.float32),
        np.full(recipe.n_items, recipe.min_support == 1 or recipe.private is not None, dtype=np.float32),
        np.zeros(recipe.n_items),
        seen=np.zeros(kept, dtype=np.float32),
        through=np.zeros(kept, dtype=np.float32),
    )


def ridge_of(recipe: FrugalRecipe, shared: FrugalState) -> ItemWeights:
    """Item-item weights from the sums of all rounds and the model that they have led to."""
    items = supported_items(recipe, shared.weights)
    model = published(recipe, shared.vectors)[items], shared.weights[items]
    low_rank = low_rank_norm(*model, shared.regulariser)
    seen, through = shared.seen[items], shared.through[items]
    interactions = float(shared.counts.sum())
    exposure = None
    if recipe.most_shown < 1:
        seen_through = through_model(*model, shared.regulariser)
        exposure = Exposure(model[0].astype(np.float64), seen_through, recipe.most_shown)
    weights = from_sums(seen, through, recipe.factors, interactions, shared.received, low_rank, exposure)
    return weights.placed(items, recipe.n_items)


def first_regulariser(recipe: FrugalRecipe) -> float:
    """Lambda before anything is learnt, where it follows from the sums: as large as a column of the vectors."""
    return recipe.initial_scale**2 * recipe.n_items


def _empty_sketch(recipe: FrugalRecipe) -> RealMatrix:
    if recipe.private is not None and recipe.private.joined:
        return np.zeros((recipe.n_items, 2 * (recipe.factors - 1)))
    return np.zeros((recipe.n_items if recipe.step == "spectral" else recipe.factors, recipe.factors))


def fold(recipe: FrugalRecipe, shared: FrugalState, sums: SummedMessages, threads: int = 1) -> None:
    """The next version of the model, from the sums of a round; the number of threads changes no bit of it.

    There is nothing to learn without a message, from users who weigh nothing, or whose vectors are all zero.
    """
    if is_counting(recipe, shared.weights):
        _fold_counts(recipe, shared, sums)
        shared.round_number += 1
        return
    supported = supported_items(recipe, shared.weights)
    if len(supported) == recipe.n_items:
        _fold_supported(recipe, shared, sums, threads)
        return
    # Only the supported items are in the sums: the rest of the model is zeros, and stays so.
    names = _by_item(recipe)
    part = replace(shared, **{name: getattr(shared, name)[supported] for name in names})
    _fold_supported(recipe._replace(n_items=len(supported)), part, sums, threads)
    for name in (one.name for one in fields(shared)):
        value = getattr(part, name)
        setattr(shared, name, placed(value, supported, recipe.n_items) if name in names else value)


def _by_item(recipe: FrugalRecipe) -> list[str]:
    """What of the server's memory has a row for each item."""
    joined = recipe.private is not None and recipe.private.joined
    names = ["vectors", "weights", "counts"] + ["sketch"] * (joined or recipe.step == "spectral")
    return names + ["mean", "square"] * (recipe.step == "adam") + ["seen", "through"] * recipe.ridge


def placed(rows: NDArray[Any], items: IntVector, n_items: int) -> NDArray[Any]:
    """Rows of these items among those of the full catalogue, which are zeros."""
    table = np.zeros((n_items, *rows.shape[1:]), dtype=rows.dtype)
    table[items] = rows
    return table


def _fold_supported(recipe: FrugalRecipe, shared: FrugalState, sums: SummedMessages, threads: int) -> None:
    if recipe.private is not None:
        if sums.messages:
            _fold_private(recipe, recipe.private, shared, published(recipe, shared.vectors), sums)
    elif sums.messages and sums.squares[-1, -1] > 0 and np.any(sums.squares[:-1, :-1]):
        sent_vectors = published(recipe, shared.vectors)
        if recipe.step == "spectral":
            bounded = bound_rows(sums, sent_vectors, threads) if recipe.most_shown < 1 else sums
            _fold_spectral(recipe, shared, sent_vectors, bounded, threads)
        elif recipe.step == "solve":
            _fold_solved(recipe, shared, sent_vectors, sums)
        else:
            _fold_adam(recipe, shared, sums)
    shared.round_number += 1


def _fold_counts(recipe: FrugalRecipe, shared: FrugalState, sums: SummedMessages) -> None:
    """Add the counts up; once everyone or every cohort has been asked, the items with enough users are supported."""
    shared.counts = shared.counts + sums.residuals[:, 0]
    shared.received += sums.messages
    if shared.received < len(recipe.participants) and shared.round_number + 1 < recipe.cohorts:
        return
    supported = shared.counts > recipe.min_support - HALF
    refuse_few_items(recipe, supported)
    shared.weights = supported.astype(np.float32)
    shared.vectors = shared.vectors * shared.weights[:, None]
    if recipe.regulariser < 0:
        shared.regulariser *= float(supported.mean())
    # The counts that weigh items come with each later message, and each user's with their weight.
    shared.counts, shared.received = np.zeros(recipe.n_items), 0.0


def refuse_few_items(recipe: FrugalRecipe, supported: NDArray[np.bool_]) -> None:
    """Refuse to learn from fewer items than a model can be made of."""
    found = int(supported.sum())
    if found < FEWEST_ITEMS:
        raise DataError(
            f"{found:,} of {recipe.n_items:,} items have {recipe.min_support} users or more (min_support), and at "
            f"least {FEWEST_ITEMS} are needed to learn from. More users, or a smaller min_support, are needed."
        )


def _sum_of_integers(
    recipe: FrugalRecipe, round_number: int, weights: FloatVector, updates: Iterable[IntVector]
) -> SummedMessages:
    """What two servers publish of these uploads: their sum in the ring, with noise of both."""
    columns = private_columns(recipe, round_number)
    total, count = np.zeros(len(supported_items(recipe, weights)) * columns, dtype=np.uint32), 0
    for update in updates:
        check_private_update(update, len(total))
        total += in_ring(update)
        count += 1
    return published_sum(recipe, round_number, total, count)


def published_sum(recipe: FrugalRecipe, round_number: int, total: NDArray[np.uint32], count: int) -> SummedMessages:
    """A round's sum of integers with the noise of both servers, in units of a message's length."""
    assert recipe.private is not None, "only sums with a plan are published so"
    noisy = with_both_noises(recipe.private, recipe.seed, round_number, total) if count else total
    values = values_of(noisy, private_columns(recipe, round_number))
    return SummedMessages(values, np.zeros((0, 0)), count)


def private_columns(recipe: FrugalRecipe, round_number: int) -> int:
    """Numbers a row of a message: one in the first round, then one for each direction that is looked for."""
    return 1 if round_number == 0 else recipe.factors - 1


def _fold_private(
    recipe: FrugalRecipe, plan: PrivatePlan, shared: FrugalState, sent_vectors: FloatMatrix, sums: SummedMessages
) -> None:
    shared.received = float(sums.messages)
    if shared.round_number == 0:
        summed = sums.residuals[:, 0]
        items = np.arange(len(summed), dtype=np.int32)
        if recipe.min_support > 1:
            enough = noisy_counts(summed, sums.messages) > recipe.min_support - HALF
            refuse_few_items(recipe, enough)
            items = np.flatnonzero(enough).astype(np.int32)
        first = fold_popularity(plan, recipe.seed, summed[items])
        shared.counts, shared.weights, shared.vectors = (placed(part, items, recipe.n_items) for part in first)
        shared.regulariser = REGULARISATION
    elif shared.counts.any():  # where no one came to the first round, nothing is known to look with
        number = shared.round_number
        received = received_from(shared.sketch if plan.joined else np.zeros((recipe.n_items, 0)))
        folded = fold_histories(plan, number, recipe.shrinkage, shared.counts, sent_vectors, sums.residuals, received)
        shared.vectors, _, received = folded
        if plan.joined:
            shared.sketch = received.stored()
        if recipe.most_shown < 1:
            free = shared.vectors
            shared.vectors = hold_back(free, private_tastes(free, shared.weights), recipe.most_shown)
            shared.capped = capped_items(free, shared.vectors)


def _fold_spectral(
    recipe: FrugalRecipe, shared: FrugalState, sent_vectors: FloatMatrix, sums: SummedMessages, threads: int
) -> None:
    all_users = max(len(recipe.participants), 1)
    # S + Y H = P'X, with the column of the constant 1: how many users have each item, each user with their weight.
    products = sums.residuals + tall_product(sent_vectors, sums.squares[:-1], threads)
    mean_weight = sums.squares[-1, -1] / sums.messages
    if recipe.ridge:
        columns = recipe.factors + 1
        first = columns * (shared.round_number % recipe.rounds)  # a server keeps the newest rounds
        shared.seen[:, first : first + columns] = products * (all_users / sums.messages)
        seen_through = through_model(sent_vectors, shared.weights, shared.regulariser)
        shared.through[:, first : first + recipe.factors] = seen_through
    # Nystrom's sketch of what these users' items have in common joins what is known.
    now = spectrum_of(products[:, :-1], sums.squares[:-1, :-1], threads)
    kept = faded(shared.received, sums.messages, all_users)
    is_calm = shared.round_number >= shared.began + CALM_ROUNDS and 2 * shared.received >= all_users
    together = np.hstack((np.sqrt(kept) * shared.sketch, now)) if kept > 0 else now
    shared.counts = kept * shared.counts + products[:, -1] / mean_weight
    shared.received = kept * shared.received + sums.messages
    received = shared.received / all_users
    few = shared.received < min(recipe.factors, all_users)  # too few to tell what no one else will have
    weights = item_weights(shared.counts / received, recipe.popularity, received if few else 1.0)
    if recipe.min_support > 1:  # what weighs nothing is in no message
        weights = np.maximum(weights, LEAST_WEIGHT)
    said = np.einsum("ij,ij->i", together, together)
    # Where no two users share an item yet, what they said is kept: a model of it would be nothing, and lead nowhere.
    informative = float(weights @ said) > _LITTLE * float(said.sum())
    spectrum = strongest(together, weights if informative else np.ones_like(weights), recipe.factors, threads)
    shared.sketch = spectrum.vectors * spectrum.singular_values
    if not informative:
        return
    shared.weights = weights
    shared.vectors, shared.regulariser = balanced(spectrum, recipe.shrinkage, recipe.regulariser)
    unknown = spectrum.singular_values == 0
    if unknown.any():
        # A few users fill few directions. Anyone who shares nothing with them must be seen through the others.
        scale = float(np.sqrt(LEAST * spectrum.singular_values[~unknown][-1] / recipe.n_items))
        drawn = normal_rows(recipe.n_items, recipe.factors, seed=recipe.seed, purpose=ITEM_FACTORS, scale=scale)
        shared.vectors[:, unknown] = drawn[:, unknown]
    if recipe.most_shown < 1:
        model, having = (shared.vectors, weights, shared.regulariser), shared.counts / shared.received
        tastes = spectral_tastes(*model, having, mean_weight * shared.received, threads)
        free = shared.vectors
        shared.vectors = hold_back(free, tastes, recipe.most_shown, threads, least=usual_length(free))
        shared.capped = capped_items(free, shared.vectors)
        if is_calm and sums.messages >= FEWEST_UPLOADS:
            before = tastes_of_uploads(sums.squares)
            shared.vectors = without_jumps(sent_vectors, before, shared.vectors, tastes)


def _fold_solved(recipe: FrugalRecipe, shared: FrugalState, sent_vectors: FloatMatrix, sums: SummedMessages) -> None:
    all_users = len(recipe.participants) / sums.messages
    squares = all_users * sums.squares[:-1, :-1]
    part = min(1.0, max(1 / (shared.round_number + 1), 1.5 / recipe.cohorts)) if recipe.cohorts > 1 else 1.0
    shared.sketch = (1 - part) * shared.sketch + part * squares
    if recipe.regulariser < 0:
        gram = gram_matrix(sent_vectors, shared.weights)
        smallest = smallest_singular_value(recipe, gram, shared.sketch, shared.regulariser)
        shared.regulariser = recipe.shrinkage * smallest or shared.regulariser
    residuals = all_users * sums.residuals[:, :-1]
    moved = solved(recipe, sent_vectors, residuals, shared.sketch, shared.regulariser, recipe.damping * part)
    shared.vectors = np.ascontiguousarray(moved)


def _fold_adam(recipe: FrugalRecipe, shared: FrugalState, sums: SummedMessages) -> None:
    gradient = (2 * (shared.regulariser * shared.vectors - sums.residuals[:, :-1])).astype(np.float32)
    adam = Adam(recipe.learning_rate, recipe.beta1, recipe.beta2)
    shared.vectors = adam_step(adam, shared.vectors, gradient, shared.mean, shared.square, shared.round_number + 1)


# The step of a real server, whose state is a record.


def stepped(recipe: FrugalRecipe, state: ServerState, sums: SummedMessages) -> ServerState:
    """The state after a step; where no model follows, the sums are kept and the model stays."""
    shared = _shared(recipe, state)
    try:
        fold(recipe, shared, sums)
    except Diverged:  # a fixed lambda may be too large for the few who have uploaded so far
        shared.vectors, shared.weights = state.vectors, state.weights
        shared.regulariser, shared.round_number = float(state.regulariser[0]), int(state.folds[0]) + 1
    made = after(recipe, state, shared)
    if recipe.ridge and made.seen.any():
        made = with_item_weights(made, ridge_of(recipe, shared))
    return made


def _shared(recipe: FrugalRecipe, state: ServerState) -> FrugalState:
    none = np.zeros((0, recipe.factors), dtype=np.float32)
    return FrugalState(
        state.vectors,
        float(state.regulariser[0]),
        state.sketch if recipe.step == "spectral" else state.curvature,
        none,
        none,
        state.weights,
        state.counts,
        float(state.received[0]),
        int(state.folds[0]),
        state.seen.copy(),
        state.through.copy(),
        began=int(state.began[0]),
    )


def after(recipe: FrugalRecipe, state: ServerState, shared: FrugalState) -> ServerState:
    """The state with what a step has made."""
    remembered = "sketch" if recipe.step == "spectral" else "curvature"
    if recipe.ridge:
        state = replace(state, seen=shared.seen, through=shared.through)
    return replace(
        state,
        vectors=shared.vectors,
        weights=shared.weights,
        regulariser=np.array([shared.regulariser]),
        counts=shared.counts,
        received=np.array([shared.received]),
        folds=np.array([shared.round_number]),
        capped=np.array([shared.capped]),
        **{remembered: np.ascontiguousarray(shared.sketch)},
    )


def with_counts(recipe: FrugalRecipe, state: ServerState, counts: RealVector, clients: int) -> ServerState:
    """The state after more counts: items that have enough users now are supported."""
    state = replace(state, counted=state.counted + counts, counters=state.counters + clients)
    supported = (state.weights > 0) | (state.counted > recipe.min_support - HALF)
    if supported.sum() < FEWEST_ITEMS or np.array_equal(supported, state.weights > 0):
        return state
    if float(state.received[0]):  # what is not known of a new item comes with the next uploads
        return replace(state, weights=np.where((state.weights == 0) & supported, LEAST_WEIGHT, state.weights))
    drawn = normal_rows(
        recipe.n_items, recipe.factors, seed=recipe.seed, purpose=ITEM_FACTORS, scale=recipe.initial_scale
    )
    weights, regulariser = supported.astype(np.float32), state.regulariser
    if recipe.regulariser < 0:
        regulariser = np.array([first_regulariser(recipe) * float(supported.mean())])
    return replace(state, vectors=drawn * weights[:, None], weights=weights, regulariser=regulariser)
