"""Aggregation: the server checks Updates and folds them into the shared model.

    Q <- Q + lr * sum of the Updates' vectors        b <- b + lr * sum of their biases   (FedeRank, 2021, Eq. 6)

The server needs nothing else from a device. Because only sums enter, a masked or secret-shared sum of Updates could
take their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.protocol.messages import CheckedUpdate, Update, check_update
from federank.protocol.pairs.recipes import Recipe


@dataclass(eq=False)
class Shared:
    """What the server holds."""

    vectors: FloatMatrix
    biases: FloatVector
    round_number: int = 0


def aggregate(recipe: Recipe, shared: Shared, updates: Iterable[Update]) -> None:
    """Fold a round's Updates into the shared model: all of them, or none if one breaks the protocol."""
    sum_of_vectors, sum_of_biases = np.zeros_like(shared.vectors), np.zeros_like(shared.biases)
    for update in updates:
        if not isinstance(update, CheckedUpdate):
            check_update(update, recipe.factors, len(shared.biases))
        sum_of_vectors[update.items] += update.vectors
        sum_of_biases[update.items] += update.biases
    shared.vectors = shared.vectors + recipe.learning_rate * sum_of_vectors
    shared.biases = shared.biases + recipe.learning_rate * sum_of_biases
    shared.round_number += 1
