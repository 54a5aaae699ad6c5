"""Nearest neighbours: what similar users have, and what is similar to what the user has.

User-kNN adds up, for each item, the similarities of those of the user's k nearest users who have it. Item-kNN
adds up, for each item, the similarities of those of the item's k nearest items that the user has; normalised, it
divides by the similarities of all k, so that a popular item needs many of its neighbours in the history to come
first. Similarity is the cosine between histories (models/neighbours.py).

An item that no neighbour speaks for has score 0 and is not recommended: where little is known a list is short, or
empty, rather than filled up with the same few items for everyone.

Both need everyone's histories in one place: they are what a federated method is measured against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix, FloatVector, IntMatrix, IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank._numerics.topn import is_worse, put_on_top, sort_best_first
from federank.checks import Settings, setting
from federank.data.interactions import Interactions, Profiles
from federank.errors import ModelError
from federank.methods.recommender import Arrays, FromHistories, ItemWeights, dense, made_from
from federank.simulation.options import TrainingOptions

# Who is most alike: the k nearest rows of a table of ones and zeros, by cosine.


NO_USERS = -1
_ROWS_AT_A_TIME = 64
_STRETCHES = 256


class Neighbours(NamedTuple):
    """The nearest rows of each row, best first; where a row has fewer than k, the rest is -1 with similarity 0."""

    rows: IntMatrix
    similarities: FloatMatrix

    def matrix(self) -> csr_array:
        """Similarities as a sparse matrix: entry (a, b) is there if b is one of the k nearest of a."""
        is_there = self.rows != NO_USERS
        starts = np.concatenate(([0], np.cumsum(is_there.sum(axis=1))))
        shape = (len(self.rows), len(self.rows))
        return csr_array((self.similarities[is_there], self.rows[is_there], starts), shape=shape)


def nearest(profiles: Profiles, owners: Profiles, k: int, shrinkage: float = 0.0, exponent: float = 0.0) -> Neighbours:
    """The k nearest of each row of `profiles`; `owners` is the same table transposed.

    An entry that n rows have weighs n^-exponent in the cosine.
    """
    count = len(profiles.starts) - 1
    width = min(k, max(count - 1, 0))
    rows = np.full((count, width), NO_USERS, dtype=np.int32)
    similarities = np.full((count, width), -1, dtype=np.float32)  # an empty place is worse than anyone
    if width:
        weights = entry_weights(owners.sizes, exponent)
        norms = row_norms(profiles, weights)
        table = profiles.starts, profiles.items, owners.starts, owners.items
        _nearest(*table, weights, norms, float(shrinkage), rows, similarities)
    return Neighbours(rows, np.maximum(similarities, 0))


def entry_weights(sizes: LongVector, exponent: float) -> RealVector:
    """The weight of each entry of the table by how many rows have it."""
    return np.maximum(sizes, 1).astype(np.float64) ** -exponent


def row_norms(profiles: Profiles, weights: RealVector) -> RealVector:
    """The sum of each row's weights: the square of its length."""
    totals = np.concatenate(([0.0], np.cumsum(weights[profiles.items])))
    return totals[profiles.starts[1:]] - totals[profiles.starts[:-1]]


@compiled(parallel=True)
def _nearest(
    starts: LongVector,
    entries: IntVector,
    owner_starts: LongVector,
    owners: IntVector,
    weights: RealVector,
    norms: RealVector,
    shrinkage: float,
    rows: IntMatrix,
    similarities: FloatMatrix,
) -> None:
    count = len(starts) - 1
    # Rows in a stretch share one array of counts, as long as the table: few stretches, but more than there are cores.
    together = max(_ROWS_AT_A_TIME, -(-count // _STRETCHES))
    for stretch in numba.prange(-(-count // together)):
        shared = np.zeros(count, dtype=np.float64)
        met = np.empty(count, dtype=np.int32)
        for row in range(stretch * together, min(count, (stretch + 1) * together)):
            n_met = _add_shared(row, starts, entries, owner_starts, owners, weights, shared, met)
            for other in met[:n_met]:
                similarity = np.float32(shared[other] / (np.sqrt(norms[row] * norms[other]) + shrinkage))
                nearest_of, heap = rows[row], similarities[row]
                if other != row and is_worse(heap[0], nearest_of[0], similarity, other):
                    put_on_top(heap, nearest_of, len(heap), similarity, other)
                shared[other] = 0.0
            sort_best_first(similarities[row], rows[row])


@compiled
def _add_shared(
    row: int,
    starts: LongVector,
    entries: IntVector,
    owner_starts: LongVector,
    owners: IntVector,
    weights: RealVector,
    shared: RealVector,
    met: IntVector,
) -> int:
    """Add into `shared` the weights of the entries each other row has in common with this one; list who was met."""
    n_met = 0
    for entry in entries[starts[row] : starts[row + 1]]:
        for other in owners[owner_starts[entry] : owner_starts[entry + 1]]:
            if shared[other] == 0.0:
                met[n_met] = other
                n_met += 1
            shared[other] += weights[entry]
    return n_met


# ruff: noqa: ARG002 (the parameters are those of every Recommender)


@dataclass(frozen=True, kw_only=True)
class KNNSettings(Settings):
    """How many neighbours count, and how much."""

    k: int = setting(50, 1)
    """How many of the most similar users or items count."""
    shrinkage: float = setting(0.0, 0)
    """Added to the cosine's denominator: the larger, the less a few shared items or users count (0: plain cosine)."""
    fill: bool = False
    """Fill lists up with items that no neighbour speaks for (score 0), as in the tables of the papers."""


@dataclass(frozen=True, kw_only=True)
class UserKNNSettings(KNNSettings):
    """Settings of user-based neighbours."""

    item_weight_exponent: float = setting(0.0, 0, 2)
    """Down-weights popular items in the cosine: an item with n users has weight n^-item_weight_exponent (0: none)."""


@dataclass(frozen=True, kw_only=True)
class ItemKNNSettings(KNNSettings):
    """Settings of item-based neighbours."""

    user_weight_exponent: float = setting(0.0, 0, 2)
    """Down-weights active users in the cosine: a user with n items has weight n^-user_weight_exponent (0: none)."""
    normalised: bool = False
    """Divide by the similarities of all k neighbours: more even lists, less precise ones on dense data."""


class UserKNN(FromHistories):
    """What the most similar users have."""

    name = "userknn"
    settings_type = UserKNNSettings
    settings: UserKNNSettings
    neighbours: Neighbours

    @made_from(UserKNNSettings)
    def __init__(self) -> None: ...

    @property
    def zero_is_nothing(self) -> bool:
        """Whether an item that no neighbour speaks for is left out."""
        return not self.settings.fill

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        table, settings = (train.profiles, train.audiences), self.settings
        self._keep(nearest(*table, settings.k, settings.shrinkage, settings.item_weight_exponent))

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return dense(self._similarities[users] @ self._histories)

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """What those have who are most similar to someone with this history."""
        weights = entry_weights(self.training.popularity, self.settings.item_weight_exponent)
        norms, weighted = row_norms(self.training.profiles, weights), weights * vector
        likeness = (self._histories @ weighted) / (np.sqrt(norms * weighted.sum()) + self.settings.shrinkage)
        nearest_first = np.lexsort((np.arange(len(likeness)), -likeness))[: self.settings.k]
        weights = np.zeros(len(likeness), dtype=np.float32)
        weights[nearest_first] = likeness[nearest_first]
        scores: FloatVector = (weights @ self._histories).astype(np.float32)
        return scores

    def _shared_arrays(self) -> Arrays:
        return self.neighbours._asdict()

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self._keep(_checked(shared, self.training.n_users, "user"))

    def _keep(self, neighbours: Neighbours) -> None:
        self.neighbours = neighbours
        self._similarities = neighbours.matrix()
        self._histories = self.training.matrix()


class ItemKNN(ItemWeights):
    """What is most similar to what the user has."""

    name = "itemknn"
    settings_type = ItemKNNSettings
    settings: ItemKNNSettings
    neighbours: Neighbours

    @made_from(ItemKNNSettings)
    def __init__(self) -> None: ...

    @property
    def zero_is_nothing(self) -> bool:
        """Whether an item that no neighbour speaks for is left out."""
        return not self.settings.fill

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        table, settings = (train.audiences, train.profiles), self.settings
        self._keep_neighbours(nearest(*table, settings.k, settings.shrinkage, settings.user_weight_exponent))

    def _shared_arrays(self) -> Arrays:
        return self.neighbours._asdict()

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self._keep_neighbours(_checked(shared, self.training.n_items, "item"))

    def _keep_neighbours(self, neighbours: Neighbours) -> None:
        self.neighbours = neighbours
        rows, similarities = neighbours
        if self.settings.normalised:
            totals = similarities.sum(axis=1, keepdims=True)
            similarities = np.divide(similarities, totals, out=np.zeros_like(similarities), where=totals > 0)
        # Row j of the transposed matrix: for which items is j among the nearest.
        self._keep(csr_array(Neighbours(rows, similarities).matrix().T))


def _checked(stored: Arrays, count: int, kind: str) -> Neighbours:
    """Neighbours from a file, if they are rows of this many users or items and nothing else."""
    rows, similarities = stored.get("rows"), stored.get("similarities")
    if rows is None or similarities is None or rows.shape != similarities.shape or rows.ndim != 2:
        raise ModelError("The model does not hold neighbours with their similarities; train it again.")
    numbers_fit = rows.dtype == np.int32 and len(rows) == count and np.all((rows >= NO_USERS) & (rows < count))
    if not numbers_fit or similarities.dtype != np.float32:
        raise ModelError(f"The model's neighbours are not numbers of its {count:,} {kind}s; train it again.")
    return Neighbours(rows, similarities)
