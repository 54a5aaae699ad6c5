"""Weights: what each device's Update counts in a round (w_u; FPL, 2020, Eq. 1).

    Theta <- Theta + lr * sum over the round's devices of w_u * Update of u

As published w_u is 1 for everybody. The mean (w_u = 1 / |U-|) makes the step as long as one device's, and `profile`
(w_u = n_u / sum of the n_v of the round) lets a long history count for more, as in federated averaging. Devices that
drop out count for nothing, so weights are known when a round's Updates are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from federank.protocol.messages import Update
from federank.protocol.pairs.recipes import Recipe


def weighted(recipe: Recipe, updates: Iterable[tuple[int, Update]]) -> Iterator[Update]:
    """The Updates of a round, each times its device's weight; as they are where all count as 1."""
    if not len(recipe.weights):
        for _, update in updates:
            yield update
        return
    arrived = list(updates)
    total = sum(recipe.weights[user] for user, _ in arrived)
    for user, update in arrived:
        weight = np.float32(recipe.weights[user] / total)
        yield Update(update.items, weight * update.vectors, weight * update.biases)
