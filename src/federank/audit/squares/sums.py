"""The server that has only sums: what the two sums of a round tell about one of its members.

A message's vector ends in a constant 1, x~ = [x, 1]. With the public Y, the sums S of a_u w_u x~_u' and H of
a_u x~_u x~_u' give back

    (S + w Y H) / (1 + alpha) = sum of a_u p_u x~_u'      (nearly so where alpha > 0)

whose last column says how many members have each item, each with their weight a_u, however many they are; and whose
other columns, added up and scored with Y, say what they all like together. Who the members of a round are is known.
Members come and go, so both are laid to single people by least squares: with M_tu = 1 where u was in round t, and m
as what is expected of anybody,

    guess_u = m + M' (M M')^-1 (sums_t - expected_t)

Two rounds that differ by one member so give that member's items; a round of one gives all of them; and rounds that
always have the same members tell nothing apart.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from federank.arrays import FloatMatrix, FloatVector, IntVector, RealVector
from federank.engines.squares.federation import SquaresFederation
from federank.protocol.squares.distribution import published
from federank.protocol.squares.server_steps import SummedMessages

_LEAST = 1e-6


class SumsReader:
    """Notes about the sums of rounds."""

    def __init__(self, federation: SquaresFederation) -> None:
        self._federation = federation
        self._members: list[IntVector] = []
        self._weights: list[float] = []  # of the members of each round together
        self._counts: list[RealVector] = []
        self._tastes: list[RealVector] = []
        self._tells_counts: list[bool] = []

    def watch(self, answering: IntVector, sums: SummedMessages) -> None:
        """Take down the sums of a round before it is folded: the model is still as its devices were told it."""
        if not len(answering):
            return
        recipe = self._federation.recipe
        if recipe.private is not None:
            self._take_down(answering, sums)
            return
        told = published(recipe, self._federation.item_vectors).astype(np.float64)
        back = sums.pulls + float(recipe.objective.unobserved) * told @ sums.squares[:-1]
        back /= float(recipe.objective.liked)
        self._members.append(answering)
        self._weights.append(float(sums.squares[-1, -1]))
        self._counts.append(back[:, -1])
        self._tastes.append(told @ back[:, :-1].sum(axis=0))
        self._tells_counts.append(True)

    def _take_down(self, answering: IntVector, sums: SummedMessages) -> None:
        """Sums of whole numbers: the first round's say what people have, the later ones' what goes together."""
        first = sums.pulls.shape[1] == 1 and not self._members
        along = sums.pulls.sum(axis=0)
        length = float(np.linalg.norm(along))
        self._members.append(answering)
        self._weights.append(float(sums.messages))
        self._counts.append(sums.pulls[:, 0] if first else np.zeros(len(sums.pulls)))
        self._tastes.append(sums.pulls @ along / length if length > 0 else np.zeros(len(sums.pulls)))
        self._tells_counts.append(first)

    def popularity(self) -> FloatVector:
        """The share of everybody who has each item, as far as sums tell."""
        weight, total = 0.0, np.zeros(self._federation.recipe.n_items)
        for one, tells, counts in zip(self._weights, self._tells_counts, self._counts, strict=True):
            weight += one if tells else 0.0
            total += counts
        mean: FloatVector = (total / (weight if weight > 0 else 1)).astype(np.float32)
        return mean

    def counts(self, people: IntVector) -> FloatMatrix:
        """People x items: how much of the counts goes back to each of them."""
        return self._laid_to(people, self._counts, self.popularity().astype(np.float64), self._tells_counts)

    def tastes(self, people: IntVector) -> FloatMatrix:
        """People x items: how much of the tastes goes back to each of them."""
        n_items = self._federation.recipe.n_items
        mean = np.sum(self._tastes, axis=0) / sum(self._weights) if self._weights else np.zeros(n_items)
        return self._laid_to(people, self._tastes, mean, [True] * len(self._tastes))

    def _laid_to(self, people: IntVector, sums: list[RealVector], mean: RealVector, tells: list[bool]) -> FloatMatrix:
        members = sum(len(some) for some in self._members)
        anybody = mean * (sum(self._weights) / max(members, 1))
        guess: FloatMatrix = np.tile(anybody, (len(people), 1)).astype(np.float32)
        if not sums:
            return guess
        beyond = np.zeros((len(sums), len(mean)))
        for row, (weight, seen) in enumerate(zip(self._weights, sums, strict=True)):
            if tells[row]:
                beyond[row] = seen - weight * mean
        there = self._who_was_there()
        explained = np.linalg.solve((there @ there.T).toarray() + _LEAST * np.eye(len(sums)), beyond)
        guess += (there[:, people].T @ explained).astype(np.float32)
        return guess

    def _who_was_there(self) -> sparse.csr_matrix:
        """M: rounds x users."""
        sizes = [len(members) for members in self._members]
        rows, users = np.repeat(np.arange(len(sizes)), sizes), np.concatenate(self._members)
        shape = len(sizes), len(self._federation.spent)
        return sparse.csr_matrix((np.ones(len(users)), (rows, users)), shape=shape)
