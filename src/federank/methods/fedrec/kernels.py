"""The compiled loops of FedRec: the draws and steps of reference.py, for populations.

A client's ratings name every item once, so what it sends for an item may be applied at once: nothing reads that
item's V again before the client has finished. (Predictions of virtual ratings come first.) In stochastic style the
next client sees this one's result, so the order is the algorithm; in batch style all clients see the same V, and
their gradients are summed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import dot, fetch_row, inlined, load_row, store_row
from federank.data.interactions import Profiles
from federank.federation.rng import ORDER, SELECT, SERVER, below, words
from federank.methods.fedrec.reference import (
    RatingRecipe,
    item_gradient,
    normaliser,
    predicts,
    rate_after,
    rating_error,
    round_of_sample,
    sample_unrated,
    user_gradient,
)

AHEAD = 8
"""How many ratings ahead an item's row is asked for."""


class Raters(NamedTuple):
    """What clients hold, user by user."""

    profiles: Profiles
    ratings: FloatVector
    means: FloatVector
    participations: IntVector


class RatingRun(NamedTuple):
    """Arguments of every kernel: the recipe, what clients hold, and the tables that rounds change."""

    recipe: RatingRecipe
    raters: Raters
    item_vectors: FloatMatrix  # V
    implicit_vectors: FloatMatrix  # W; no rows for PMF
    user_vectors: FloatMatrix  # U
    width: Any  # a tuple as long as rows are wide: a constant to the compiler


class Turn(NamedTuple):
    """A client's part of a round, before its first step; numbers only."""

    user: int
    rate: np.float32  # the client's
    server_rate: np.float32
    size: int  # ratings of its own
    virtual: int  # virtual ones
    predicting: bool  # its virtual ratings are to be predicted
    training: bool  # it makes local passes over its own ratings first


class Workspace(NamedTuple):
    """Working space for one client at a time."""

    marks: LongVector  # one per item: which call has sampled it
    calls: LongVector  # one number: how many samples have been drawn
    items: IntVector  # what the client learns from: rated items, then sampled ones
    values: FloatVector  # and their ratings
    own: FloatMatrix  # W of the rated items
    trial: FloatMatrix  # the same for local passes


class Sums(NamedTuple):
    """A batch round's gradients of V: their sum per item, and their number."""

    vectors: FloatMatrix
    counts: LongVector


# Who takes part in a round.


@inlined
def choose_one(seed: Any, round_number: Any, participants: Any) -> Any:
    """The position, among the participants, of the one client of a stochastic round."""
    word, _, _, _ = words(seed, SERVER, SELECT, round_number, 0)
    return below(word, len(participants))


@inlined
def draw_order(seed: Any, iteration: Any, participants: Any) -> Any:
    """The participants in an order that is drawn again for each iteration (Fisher and Yates)."""
    order = participants.copy()
    for last in range(len(order) - 1, 0, -1):
        word, _, _, _ = words(seed, SERVER, ORDER, iteration, last)
        position = below(word, last + 1)
        order[last], order[position] = order[position], order[last]
    return order


# What a client learns from.


@inlined
def lay_out(recipe: Any, raters: Any, user: Any, round_number: Any, n_items: Any, workspace: Any) -> Any:
    """Lay out the client's ratings and its virtual ones, which are averages so far; the number of each."""
    start = raters.profiles.starts[user]
    size = raters.profiles.starts[user + 1] - start
    for k in range(size):
        workspace.items[k] = raters.profiles.items[start + k]
        workspace.values[k] = raters.ratings[start + k]
    count = np.int64(recipe.virtual[user])
    if count > 0:
        workspace.calls[0] += 1
        profile, sampled = workspace.items[:size], workspace.items[size : size + count]
        named_by = round_of_sample(recipe, round_number)
        sample_unrated(recipe.seed, user, named_by, profile, n_items, workspace.marks, workspace.calls[0], sampled)
        for k in range(size, size + count):
            workspace.values[k] = raters.means[user]
    return size, count


@inlined
def predict(V: Any, bracket: Any, items: Any, values: Any, size: Any, count: Any, width: Any) -> None:
    """Virtual ratings from a user's vector."""
    for k in range(size, size + count):
        values[k] = dot(bracket, load_row(V, items[k], width))


@inlined
def client_rate(recipe: Any, raters: Any, user: Any, iteration: Any) -> Any:
    """The client's learning rate in this round, in which it takes part once more."""
    times = np.int64(raters.participations[user]) if recipe.rate_by_participation else np.int64(iteration)
    raters.participations[user] += 1
    return rate_after(recipe, times)


@inlined
def order_of_round(recipe: Any, round_number: Any, order: Any, begins: Any) -> Any:
    """Whose turns these are: without a federation everyone's, in an order that each iteration draws again."""
    if not recipe.federated and (begins or round_number % recipe.rounds_per_epoch == 0):
        return draw_order(recipe.seed, round_number // recipe.rounds_per_epoch, recipe.participants)
    return order


@inlined
def begin_turn(recipe: Any, raters: Any, round_number: Any, order: Any, n_items: Any, workspace: Any) -> Any:
    """The one client of a stochastic round, and what it learns from."""
    iteration, position = round_number // recipe.rounds_per_epoch, round_number % recipe.rounds_per_epoch
    if recipe.federated:
        position = choose_one(recipe.seed, round_number, order)
    user = order[position]
    rate = client_rate(recipe, raters, user, iteration)
    size, count = lay_out(recipe, raters, user, round_number, n_items, workspace)
    predicting = predicts(recipe, iteration)
    training = count > 0 and recipe.hybrid and (predicting or recipe.local_own)
    return Turn(user, rate, rate_after(recipe, iteration), size, count, predicting, training)


@inlined
def _pmf_step(u: Any, v: Any, rating: Any, rate: Any, regulariser: Any, after: Any) -> Any:
    """The moved U, and the gradient of V_i."""
    error = rating_error(u, v, rating)
    moved = u - rate * user_gradient(error, u, v, regulariser)
    if after:
        return moved, item_gradient(rating_error(moved, v, rating), moved, v, regulariser)
    return moved, item_gradient(error, u, v, regulariser)


@compiled
def play_pmf(run: RatingRun, workspace: Workspace, first_round: int, rounds: int) -> None:
    """Stochastic PMF, one client a round."""
    recipe, raters, V, _, U, width = run
    # Records of arrays are taken apart outside the inner loops: handing them on costs a count for every array.
    items, values, regulariser, after = workspace.items, workspace.values, recipe.regulariser, recipe.after
    order = recipe.participants
    for r in range(first_round, first_round + rounds):
        order = order_of_round(recipe, r, order, r == first_round)
        turn = begin_turn(recipe, raters, r, order, len(V), workspace)
        user, rate, server_rate, size, count, predicting, training = turn
        u = load_row(U, user, width)
        if training:
            local = u
            for _pass in range(recipe.local_passes):
                for k in range(size + count if recipe.local_all else size):
                    local, _gradient = _pmf_step(
                        local, load_row(V, items[k], width), values[k], rate, regulariser, False
                    )
            if recipe.local_own:
                u = local
            if predicting:
                predict(V, local, items, values, size, count, width)
        for k in range(size + count):
            fetch_row(V, items[k + AHEAD], width)
            v = load_row(V, items[k], width)
            u, gradient = _pmf_step(u, v, values[k], rate, regulariser, after)
            store_row(V, items[k], v - server_rate * gradient)
        store_row(U, user, u)


@inlined
def _mean_gradient(u: Any, V: Any, items: Any, values: Any, count: Any, regulariser: Any, width: Any) -> Any:
    """Eq. 7."""
    total = u - u
    for k in range(count):
        v = load_row(V, items[k], width)
        total = total + user_gradient(rating_error(u, v, values[k]), u, v, regulariser)
    return np.float32(1 / count) * total


@compiled
def sum_pmf_batch(run: RatingRun, sums: Sums, workspace: Workspace, r: int, clients: IntVector) -> None:
    """What these clients send in a round of PMF in batch style, added to the sums."""
    recipe, raters, V, _, U, width = run
    items, values, regulariser = workspace.items, workspace.values, recipe.regulariser
    vectors, counts = sums.vectors, sums.counts
    rate = rate_after(recipe, r)
    predicting = predicts(recipe, r)
    for user in clients:
        raters.participations[user] += 1
        size, count = lay_out(recipe, raters, user, r, len(V), workspace)
        u = load_row(U, user, width)
        if count > 0 and recipe.hybrid and (predicting or recipe.local_own):
            local = u
            met = size + count if recipe.local_all else size
            for _pass in range(recipe.local_passes):
                local = local - rate * _mean_gradient(local, V, items, values, met, regulariser, width)
            if recipe.local_own:
                u = local
            if predicting:
                predict(V, local, items, values, size, count, width)
        moved = u - rate * _mean_gradient(u, V, items, values, size + count, regulariser, width)
        if recipe.after:
            u = moved
        for k in range(size + count):
            v = load_row(V, items[k], width)
            gradient = item_gradient(rating_error(u, v, values[k]), u, v, regulariser)
            store_row(vectors, items[k], load_row(vectors, items[k], width) + gradient)
            counts[items[k]] += 1
        store_row(U, user, moved)


# The compiled loop of SVD++: PMF's, with the rated items' W in a table of the client's own.


_ONE = np.float32(1.0)
_SMALLEST_SCALE = np.float32(1e-3)


class Shift(NamedTuple):
    """What a client's W have in common: W_i' = scale * row_i' + offset, and their sum."""

    scale: Any
    offset: Any
    total: Any


@inlined
def implicit_row(rows: Any, position: Any, shift: Any, width: Any) -> Any:
    """W of the item in this position, as it is now."""
    return shift.scale * load_row(rows, position, width) + shift.offset


@inlined
def moved_without(rows: Any, position: Any, own: Any, shift: Any, keep: Any, move: Any, count: Any) -> Any:
    """All W but that of one position (now `own`) become keep * W - move; `count` is the number of all."""
    scale, offset = keep * shift.scale, keep * shift.offset - move
    # The row of this position is changed against the change: scale * row + offset is `own`, as it was.
    store_row(rows, position, (_ONE / scale) * (own - offset))
    total = keep * (shift.total - own) - np.float32(count - 1) * move + own
    return Shift(scale, offset, total)


@inlined
def moved_together(shift: Any, keep: Any, move: Any, count: Any) -> Any:
    """All W become keep * W - move."""
    return Shift(keep * shift.scale, keep * shift.offset - move, keep * shift.total - np.float32(count) * move)


@inlined
def settled(rows: Any, count: Any, shift: Any, width: Any) -> Any:
    """Write every W out into its row, so that the scale is one again."""
    zero = shift.offset - shift.offset
    for position in range(count):
        store_row(rows, position, implicit_row(rows, position, shift, width))
    return Shift(_ONE, zero, shift.total)


@inlined
def needs_settling(shift: Any) -> Any:
    """Whether the scale has become so small that the rows would lose accuracy."""
    return shift.scale < _SMALLEST_SCALE


@inlined
def _gather(W: Any, rows: Any, items: Any, size: Any, zero: Any, width: Any) -> Any:
    """Copy the rated items' W into a client's own table."""
    total = zero
    for k in range(size):
        row = load_row(W, items[k], width)
        store_row(rows, k, row)
        total = total + row
    return Shift(_ONE, zero, total)


class _Rule(NamedTuple):
    """What all of a client's steps have in common."""

    rate: Any
    regulariser: Any
    after: Any  # item gradients are taken after the user's step
    size: Any  # ratings of its own


@inlined
def _svdpp_step(u: Any, rows: Any, shift: Any, v: Any, rating: Any, k: Any, rule: Any, norm: Any, width: Any) -> Any:
    """One rating, a real one where k < size: the moved U, the moved W, and the gradient of V_i."""
    rate, regulariser, after, size = rule
    keep = _ONE - rate * regulariser
    if k < size:
        own = implicit_row(rows, k, shift, width)
        bracket = u + norm * (shift.total - own)
        error = rating_error(bracket, v, rating)
        moved = moved_without(rows, k, own, shift, keep, (rate * error * norm) * v, size)
        others = moved.total - own
    else:
        bracket = u + norm * shift.total
        error = rating_error(bracket, v, rating)
        moved = moved_together(shift, keep, (rate * error * norm) * v, size)
        others = moved.total
    next_u = u - rate * user_gradient(error, u, v, regulariser)
    if after:
        bracket = next_u + norm * others
        error = rating_error(bracket, v, rating)
    return next_u, moved, item_gradient(error, bracket, v, regulariser)


@compiled
def play_svdpp(run: RatingRun, workspace: Workspace, first_round: int, rounds: int) -> None:
    """Stochastic SVD++, one client a round."""
    recipe, raters, V, W, U, width = run
    items, values, regulariser, after = workspace.items, workspace.values, recipe.regulariser, recipe.after
    own, trial = workspace.own, workspace.trial
    order = recipe.participants
    for r in range(first_round, first_round + rounds):
        order = order_of_round(recipe, r, order, r == first_round)
        turn = begin_turn(recipe, raters, r, order, len(V), workspace)
        user, rate, server_rate, size, count, predicting, training = turn
        rule, alone = _Rule(rate, regulariser, after, size), _Rule(rate, regulariser, False, size)
        norm, norm_of_all = normaliser(size - 1), normaliser(size)
        u = load_row(U, user, width)
        shift = _gather(W, own, items, size, u - u, width)
        if training:
            local = u
            local_shift = _gather(W, trial, items, size, u - u, width)
            for _pass in range(recipe.local_passes):
                for k in range(size + count if recipe.local_all else size):
                    v = load_row(V, items[k], width)
                    local, local_shift, _gradient = _svdpp_step(
                        local, trial, local_shift, v, values[k], k, alone, norm if k < size else norm_of_all, width
                    )
                    if needs_settling(local_shift):
                        local_shift = settled(trial, size, local_shift, width)
            if recipe.local_own:
                u = local
                shift = settled(trial, size, local_shift, width)
                own[:size] = trial[:size]
            if predicting:
                predict(V, local + norm_of_all * local_shift.total, items, values, size, count, width)
        for k in range(size + count):
            fetch_row(V, items[k + AHEAD], width)
            v = load_row(V, items[k], width)
            u, shift, gradient = _svdpp_step(
                u, own, shift, v, values[k], k, rule, norm if k < size else norm_of_all, width
            )
            store_row(V, items[k], v - server_rate * gradient)
            if needs_settling(shift):
                shift = settled(own, size, shift, width)
        store_row(U, user, u)
        for k in range(size):
            store_row(W, items[k], implicit_row(own, k, shift, width))
