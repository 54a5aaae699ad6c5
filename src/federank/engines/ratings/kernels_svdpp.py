"""The compiled loop of SVD++: PMF's, with the rated items' W in a table of the device's own.

The W are gathered when a client's round begins, move there together by the short cut of models/svdpp.py, and are
written back when it ends. Training that nobody hears of (protocol/ratings/virtual.py) has a table of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.compiling import compiled
from federank.engines.ratings.kernels import AHEAD, RatingRun, Room, begin_turn, predict
from federank.models.pmf import item_gradient, rating_error, user_gradient
from federank.models.rows import fetch_row, inlined, load_row, store_row
from federank.models.svdpp import (
    Shift,
    implicit_row,
    moved_together,
    moved_without,
    needs_settling,
    normaliser,
    settled,
)

_ONE = np.float32(1.0)


@inlined
def _gather(W: Any, rows: Any, items: Any, size: Any, zero: Any, width: Any) -> Any:
    """Copy the rated items' W into a device's own table."""
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
def play_svdpp(run: RatingRun, room: Room, first_round: int, rounds: int) -> None:
    """Stochastic SVD++, one client a round."""
    recipe, raters, V, W, U, width = run
    items, values, regulariser, after = room.items, room.values, recipe.regulariser, recipe.after
    own, trial = room.own, room.trial
    for r in range(first_round, first_round + rounds):
        user, rate, server_rate, size, count, predicting, training = begin_turn(recipe, raters, r, len(V), room)
        rule, alone = _Rule(rate, regulariser, after, size), _Rule(rate, regulariser, False, size)
        norm, norm_of_all = normaliser(size - 1), normaliser(size)
        u = load_row(U, user, width)
        shift = _gather(W, own, items, size, u - u, width)
        if training:
            local = u
            local_shift = _gather(W, trial, items, size, u - u, width)
            for _pass in range(recipe.local_passes):
                for k in range(size):
                    v = load_row(V, items[k], width)
                    local, local_shift, _gradient = _svdpp_step(
                        local, trial, local_shift, v, values[k], k, alone, norm, width
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
