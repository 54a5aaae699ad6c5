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
from federank.protocol.messages import Broadcast, CheckedUpdate, Update, check_update
from federank.protocol.pairs.distribution import make_broadcast
from federank.protocol.pairs.recipes import Recipe


@dataclass(eq=False)
class Shared:
    """What the server holds between rounds."""

    vectors: FloatMatrix
    biases: FloatVector
    round_number: int = 0

    def distribute(self, recipe: Recipe) -> Broadcast:
        """The whole shared model, for whoever takes part."""
        del recipe  # everybody gets all of it
        return make_broadcast(self.round_number, self.vectors, self.biases)

    def aggregate(self, recipe: Recipe, updates: Iterable[Update]) -> None:
        """Fold a round's Updates into the shared model: all of them, or none if one breaks the protocol."""
        sum_of_vectors, sum_of_biases = np.zeros_like(self.vectors), np.zeros_like(self.biases)
        for update in updates:
            if not isinstance(update, CheckedUpdate):
                check_update(update, recipe.factors, len(self.biases))
            sum_of_vectors[update.items] += update.vectors
            sum_of_biases[update.items] += update.biases
        self.vectors = self.vectors + recipe.learning_rate * sum_of_vectors
        self.biases = self.biases + recipe.learning_rate * sum_of_biases
        self.round_number += 1
