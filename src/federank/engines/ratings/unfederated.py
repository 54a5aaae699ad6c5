"""Learning ratings without a federation: plain loops over everyone's ratings in one place.

What FedRec is compared with. In stochastic style an iteration goes through all users in an order drawn anew, and
through each one's ratings; U, V and W move with every rating. In batch style all gradients are taken from the same
vectors: the mean over a user's ratings steps U, the mean over an item's ratings steps V. There is nobody to hide
from, so there are no virtual ratings.

The loops are written once: the compiled engine compiles them, the reference engine runs them as they stand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import IntVector
from federank.compiling import compiled
from federank.engines.ratings.federation import RatingFederation
from federank.engines.ratings.kernels import RatingRun
from federank.models.pmf import item_gradient, rating_error, user_gradient
from federank.models.rows import inlined, load_row, store_row
from federank.models.svdpp import Shift, implicit_row, moved_without, needs_settling, normaliser, settled
from federank.protocol.draws import ORDER, SERVER, below, words
from federank.protocol.ratings.recipes import rate_after

_ONE = np.float32(1.0)


@inlined
def _draw_order(seed: Any, iteration: Any, participants: Any) -> Any:
    """The participants in an order that is drawn anew for each iteration (Fisher and Yates)."""
    order = participants.copy()
    for last in range(len(order) - 1, 0, -1):
        word, _, _, _ = words(seed, SERVER, ORDER, iteration, last)
        position = below(word, last + 1)
        order[last], order[position] = order[position], order[last]
    return order


def _learn_from_each(run: RatingRun, first_round: int, rounds: int) -> None:
    """Stochastic PMF and SVD++; a round is one user."""
    recipe, raters, V, W, U, width = run
    profiles, ratings = raters.profiles, raters.ratings
    most_rated = 0
    for user in recipe.participants:
        most_rated = max(most_rated, profiles.starts[user + 1] - profiles.starts[user])
    rows = np.empty((most_rated if recipe.implicit else 0, len(width)), np.float32)
    order = recipe.participants
    for r in range(first_round, first_round + rounds):
        iteration, position = r // recipe.rounds_per_epoch, r % recipe.rounds_per_epoch
        if position == 0 or r == first_round:
            order = _draw_order(recipe.seed, iteration, recipe.participants)
        user = order[position]
        rate = rate_after(recipe, iteration)
        keep = _ONE - rate * recipe.regulariser
        start = profiles.starts[user]
        size = profiles.starts[user + 1] - start
        norm = normaliser(size - 1)
        u = load_row(U, user, width)
        shift = Shift(_ONE, u - u, u - u)
        if recipe.implicit:
            for k in range(size):
                w = load_row(W, profiles.items[start + k], width)
                store_row(rows, k, w)
                shift = Shift(_ONE, shift.offset, shift.total + w)
        for k in range(size):
            item = profiles.items[start + k]
            v = load_row(V, item, width)
            bracket = u
            if recipe.implicit:
                own = implicit_row(rows, k, shift, width)
                bracket = u + norm * (shift.total - own)
                error = rating_error(bracket, v, ratings[start + k])
                shift = moved_without(rows, k, own, shift, keep, (rate * error * norm) * v, size)
                if needs_settling(shift):
                    shift = settled(rows, size, shift, width)
            else:
                error = rating_error(bracket, v, ratings[start + k])
            u = u - rate * user_gradient(error, u, v, recipe.regulariser)
            store_row(V, item, v - rate * item_gradient(error, bracket, v, recipe.regulariser))
        store_row(U, user, u)
        if recipe.implicit:
            for k in range(size):
                store_row(W, profiles.items[start + k], implicit_row(rows, k, shift, width))


def _learn_from_all(run: RatingRun, users: IntVector, first_round: int, rounds: int) -> None:
    """PMF in batch style; a round is an iteration."""
    recipe, raters, V, _, U, width = run
    items, ratings = raters.profiles.items, raters.ratings
    user_counts, item_counts = np.zeros(len(U), np.int64), np.zeros(len(V), np.int64)
    for row in range(len(items)):
        user_counts[users[row]] += 1
        item_counts[items[row]] += 1
    for r in range(first_round, first_round + rounds):
        rate = rate_after(recipe, r)
        user_sums, item_sums = np.zeros_like(U), np.zeros_like(V)
        for row in range(len(items)):
            user, item = users[row], items[row]
            u, v = load_row(U, user, width), load_row(V, item, width)
            error = rating_error(u, v, ratings[row])
            gradient = user_gradient(error, u, v, recipe.regulariser)
            store_row(user_sums, user, load_row(user_sums, user, width) + gradient)
            gradient = item_gradient(error, u, v, recipe.regulariser)
            store_row(item_sums, item, load_row(item_sums, item, width) + gradient)
        for user in range(len(U)):
            step = np.float32(rate / max(user_counts[user], 1)) * load_row(user_sums, user, width)
            store_row(U, user, load_row(U, user, width) - step)
        for item in range(len(V)):
            step = np.float32(rate / max(item_counts[item], 1)) * load_row(item_sums, item, width)
            store_row(V, item, load_row(V, item, width) - step)


_learn_from_each_compiled = compiled(_learn_from_each)
_learn_from_all_compiled = compiled(_learn_from_all)


def play_plainly(federation: RatingFederation, rounds: int) -> None:
    """The loops, interpreted."""
    _play(federation, rounds, _learn_from_each, _learn_from_all)


def play_compiled(federation: RatingFederation, rounds: int) -> None:
    """The loops, compiled."""
    _play(federation, rounds, _learn_from_each_compiled, _learn_from_all_compiled)


def _play(federation: RatingFederation, rounds: int, learn_from_each: Any, learn_from_all: Any) -> None:
    run, first_round = federation.run, federation.round_number
    if run.recipe.batch:
        users = np.repeat(np.arange(len(run.user_vectors), dtype=np.int32), federation.profiles.sizes)
        learn_from_all(run, users, first_round, rounds)
    else:
        learn_from_each(run, first_round, rounds)
    federation.round_number += rounds
