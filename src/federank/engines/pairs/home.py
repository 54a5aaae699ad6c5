"""Home vectors of many people at once: protocol/pairs/home.py, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.compiling import compiled
from federank.data.interactions import Profiles
from federank.models.bpr import pair_slope, user_gradient
from federank.models.rows import load_row, padded_width, store_row
from federank.protocol.pairs.computation import NO_BITS, Draw, Profile, draw_pair
from federank.protocol.pairs.home import HOME_ROUND, HOME_STEPS
from federank.protocol.pairs.recipes import Recipe


def home_vectors(
    recipe: Recipe,
    histories: Profiles,
    item_vectors: FloatMatrix,
    item_biases: FloatVector,
    people: IntVector,
    steps: int = HOME_STEPS,
) -> FloatMatrix:
    """A vector for each of these people, learnt from their whole history with the item factors as they are."""
    factors = recipe.factors
    width = padded_width(factors)
    Q = np.zeros((len(item_biases), width), dtype=np.float32)
    Q[:, :factors] = item_vectors[:, :factors]
    vectors = np.zeros((len(people), width), dtype=np.float32)
    starts, items = np.array(histories.starts), np.array(histories.items)
    numbers = (recipe.seed, recipe.learning_rate, recipe.user_regulariser)
    b = np.array(item_biases)
    _learn(*numbers, starts, items, Q, b, np.array(people, np.int32), vectors, steps, NO_BITS, (0,) * width)
    return vectors[:, :factors]


@compiled
def _learn(
    seed: int,
    rate: Any,
    regulariser: Any,
    starts: LongVector,
    items: IntVector,
    Q: FloatMatrix,
    b: FloatVector,
    people: IntVector,
    vectors: FloatMatrix,
    steps: int,
    no_bits: Any,
    width: Any,
) -> None:
    for row in range(len(people)):
        user = people[row]
        start = starts[user]
        size = starts[user + 1] - start
        if size == 0 or size == len(b):
            continue
        p, profile = load_row(vectors, row, width), Profile(items, start, size, no_bits, len(b))
        for counter in range(steps):
            position, j, _ = draw_pair(Draw(seed, user, HOME_ROUND, counter), profile)
            i = items[position]
            q_i, q_j = load_row(Q, i, width), load_row(Q, j, width)
            g = pair_slope(p, q_i, q_j, b[i], b[j])
            p = p + rate * user_gradient(g, p, q_i, q_j, regulariser)
        store_row(vectors, row, p)
