"""Aggregation: the server checks Updates and folds their sum into the shared model.

    plain   Q <- Q + lr * sum of the Updates' vectors        b <- b + lr * sum of their biases   (FedeRank, 2021, Eq. 6)
    adam    the sum is taken for minus the gradient, and Q and b take a step of Adam (protocol/server_steps.py)

Either way the recipe may pull Q towards zero: item_pull * Q is taken off the sum first. The server needs nothing else
from a device. Because only sums enter, a masked or secret-shared sum of Updates could take their place. A round that no
Update came from leaves the model as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.protocol.messages import Broadcast, CheckedUpdate, Update, check_update
from federank.protocol.pairs.distribution import make_broadcast
from federank.protocol.pairs.recipes import Recipe
from federank.protocol.server_steps import Adam, adam_step


def no_moments() -> FloatMatrix:
    """What a server remembers whose step remembers nothing."""
    return np.zeros((0, 0), dtype=np.float32)


def first_moments(recipe: Recipe, n_items: int) -> FloatMatrix:
    """What a server remembers before the first round: a row for each item, the last column for its bias."""
    return np.zeros((n_items, recipe.factors + 1), dtype=np.float32) if recipe.adam else no_moments()


@dataclass(eq=False)
class Shared:
    """What the server holds between rounds."""

    vectors: FloatMatrix
    biases: FloatVector
    round_number: int = 0
    mean: FloatMatrix = field(default_factory=no_moments)  # adam: of past sums, items x (factors and bias)
    square: FloatMatrix = field(default_factory=no_moments)

    def distribute(self, recipe: Recipe) -> Broadcast:
        """The whole shared model, for whoever takes part."""
        del recipe  # everybody gets all of it
        return make_broadcast(self.round_number, self.vectors, self.biases)

    def aggregate(self, recipe: Recipe, updates: Iterable[Update]) -> None:
        """Fold a round's Updates into the shared model: all of them, or none if one breaks the protocol."""
        sum_of_vectors, sum_of_biases = np.zeros_like(self.vectors), np.zeros_like(self.biases)
        count = 0
        for update in updates:
            if not isinstance(update, CheckedUpdate):
                check_update(update, recipe.factors, len(self.biases))
            sum_of_vectors[update.items] += update.vectors
            sum_of_biases[update.items] += update.biases
            count += 1
        if count:
            fold(recipe, self, sum_of_vectors, sum_of_biases)
        self.round_number += 1


def fold(recipe: Recipe, shared: Shared, sum_of_vectors: FloatMatrix, sum_of_biases: FloatVector) -> None:
    """The server's step: the next version of the model, from the sums of a round."""
    if recipe.item_pull > 0:
        sum_of_vectors = sum_of_vectors - np.float32(recipe.item_pull) * shared.vectors
    if not recipe.adam:
        shared.vectors = shared.vectors + recipe.learning_rate * sum_of_vectors
        shared.biases = shared.biases + recipe.learning_rate * sum_of_biases
        return
    adam = Adam(float(recipe.learning_rate), recipe.beta1, recipe.beta2)
    gradient = -np.column_stack((sum_of_vectors, sum_of_biases))
    values = np.column_stack((shared.vectors, shared.biases))
    moved = adam_step(adam, values, gradient, shared.mean, shared.square, shared.round_number + 1)
    shared.vectors, shared.biases = moved[:, :-1].copy(), moved[:, -1].copy()
