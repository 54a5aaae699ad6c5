"""Aggregation, when ratings are learnt: the server steps each item by the gradients it was sent.

    V_i <- V_i - rate * mean of the gradients of V_i over the clients that sent one       (FedRec, 2020, Eq. 9)

In stochastic style a round has one client, so the mean is what that client sent (Algorithm 4, line 7); W steps in the
same way. The server cannot tell a rated item from a sampled one, and need not.

In batch style the mean is over everybody: a round is an iteration. A served federation has rounds of some clients, so
one iteration is many rounds, and each makes its share of the iteration's step:

    V_i <- V_i - rate * (sum of this round's gradients of V_i) / (n_i + prior_count)

n_i is how many clients report item i in an iteration, estimated from the uploads of the last one. So all rounds of an
iteration together move an item about as far as one round with everybody would. Were each round divided by its own
count, an item would make the step of a complete iteration in every round, by the gradients of one or two clients:
it diverges. The prior count stands for clients who report a gradient of zero; without it, items that few have rated are
fitted to these few.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, RealMatrix, RealVector
from federank.protocol.ratings.distribution import make_rating_broadcast
from federank.protocol.ratings.messages import RatingBroadcast, RatingUpdate, check_rating_update
from federank.protocol.ratings.recipes import RatingRecipe, rate_after


class GradientSums(NamedTuple):
    """A round's gradients, summed per item, and how many clients sent one for it."""

    vectors: FloatMatrix | RealMatrix
    counts: RealVector
    implicit_vectors: FloatMatrix | RealMatrix  # of W; no rows for PMF
    implicit_counts: RealVector


class ReportCounts(NamedTuple):
    """How often each item was reported lately: in the uploads of about one iteration."""

    uploads: float
    items: RealVector
    implicit_items: RealVector  # of W; no rows for PMF

    def after(self, sums: GradientSums, uploads: int, clients: int) -> ReportCounts:
        """The counts with a round's uploads; as many of the earlier ones are forgotten."""
        kept = max(0.0, 1.0 - uploads / clients)
        return ReportCounts(
            kept * self.uploads + uploads,
            kept * self.items + sums.counts,
            kept * self.implicit_items + sums.implicit_counts,
        )


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
        self.step_by_means(recipe, self.summed(recipe, updates))

    def summed(self, recipe: RatingRecipe, updates: Iterable[RatingUpdate]) -> GradientSums:
        """A round's Updates, added up."""
        sums, implicit_sums = np.zeros_like(self.vectors), np.zeros_like(self.implicit_vectors)
        counts, implicit_counts = np.zeros(len(sums)), np.zeros(len(implicit_sums))
        for update in updates:
            check_rating_update(update, recipe.factors, len(sums), implicit=recipe.implicit)
            sums[update.items] += update.vectors
            counts[update.items] += 1
            implicit_sums[update.implicit_items] += update.implicit_vectors
            implicit_counts[update.implicit_items] += 1
        return GradientSums(sums, counts, implicit_sums, implicit_counts)

    def step_by_means(self, recipe: RatingRecipe, sums: GradientSums) -> None:
        """Step every item by the mean of its gradients; the round is an iteration, or one client's."""
        self._step(recipe, sums, sums.counts, sums.implicit_counts)

    def step_by_share(
        self, recipe: RatingRecipe, sums: GradientSums, counts: ReportCounts, clients: int, prior_count: float
    ) -> None:
        """Step every item by this round's share of an iteration; `counts` have the round in them."""
        per_iteration = clients / counts.uploads
        self._step(
            recipe,
            sums,
            np.maximum(per_iteration * counts.items, sums.counts) + prior_count,
            np.maximum(per_iteration * counts.implicit_items, sums.implicit_counts) + prior_count,
        )

    def _step(self, recipe: RatingRecipe, sums: GradientSums, among: RealVector, implicit_among: RealVector) -> None:
        rate = rate_after(recipe, self.round_number // recipe.rounds_per_epoch)
        self.vectors = self.vectors - rate * _divided(sums.vectors, among)
        self.implicit_vectors = self.implicit_vectors - rate * _divided(sums.implicit_vectors, implicit_among)
        self.round_number += 1


def _divided(sums: FloatMatrix | RealMatrix, among: RealVector) -> FloatMatrix:
    """Sums divided by counts; a count below one is taken for one."""
    shares: Any = (1 / np.maximum(among, 1.0)).astype(sums.dtype)
    divided: FloatMatrix = (sums * shares[:, None]).astype(np.float32)
    return divided
