"""Aggregation, when ratings are learnt: the server steps each item by the mean of the gradients it was sent.

    V_i <- V_i - rate * mean of the gradients of V_i over the devices that sent one       (FedRec, 2020, Eq. 9)

In stochastic style a round has one device, so the mean is what that device sent (Algorithm 4, line 7); W steps in
the same way. The server cannot tell a rated item from a sampled one, and need not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from federank.arrays import FloatMatrix
from federank.protocol.ratings.distribution import make_rating_broadcast
from federank.protocol.ratings.messages import RatingBroadcast, RatingUpdate, check_rating_update
from federank.protocol.ratings.recipes import RatingRecipe, rate_after


@dataclass(eq=False)
class SharedFactors:
    """What the server holds between rounds: V, and W for SVD++ (no rows for PMF)."""

    vectors: FloatMatrix
    implicit_vectors: FloatMatrix
    round_number: int = 0

    def distribute(self, recipe: RatingRecipe) -> RatingBroadcast:
        """The whole shared model, for whoever takes part."""
        del recipe  # everybody gets all of it
        return make_rating_broadcast(self.round_number, self.vectors, self.implicit_vectors)

    def aggregate(self, recipe: RatingRecipe, updates: Iterable[RatingUpdate]) -> None:
        """Fold a round's Updates into the shared model: all of them, or none if one breaks the protocol."""
        sums, implicit_sums = np.zeros_like(self.vectors), np.zeros_like(self.implicit_vectors)
        counts, implicit_counts = np.zeros(len(sums), np.int64), np.zeros(len(implicit_sums), np.int64)
        for update in updates:
            check_rating_update(update, recipe.factors, len(sums), implicit=recipe.implicit)
            sums[update.items] += update.vectors
            counts[update.items] += 1
            implicit_sums[update.implicit_items] += update.implicit_vectors
            implicit_counts[update.implicit_items] += 1
        self.step(recipe, _means(sums, counts), _means(implicit_sums, implicit_counts))

    def step(self, recipe: RatingRecipe, means: FloatMatrix, implicit_means: FloatMatrix) -> None:
        """Step by mean gradients, one row per item of each table, at the rate of the round."""
        rate = rate_after(recipe, self.round_number // recipe.rounds_per_epoch)
        self.vectors = self.vectors - rate * means
        self.implicit_vectors = self.implicit_vectors - rate * implicit_means
        self.round_number += 1


def _means(sums: FloatMatrix, counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatMatrix:
    return sums * (1 / np.maximum(counts, 1)).astype(np.float32)[:, None]
