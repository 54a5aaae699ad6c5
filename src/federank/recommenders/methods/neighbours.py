"""Neighbourhood methods: what people like you have, and what goes with what you have.

User-kNN adds up, for each item, the similarities of those of the user's k nearest users who have it. Item-kNN
adds up, for each item, the similarities of those of the item's k nearest items that the user has; normalised, it
divides by the similarities of all k, so that a popular item needs many of its neighbours in the history to come
first. Similarity is the cosine between histories (models/neighbours.py).

An item that no neighbour speaks for has score 0 and is not recommended: where little is known a list is short, or
empty, rather than filled up with the same few items for everybody.

Both need everybody's histories in one place: they are what a federated method is measured against.
"""

# ruff: noqa: ARG002 (the parameters are those of every Recommender)
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from federank import checks
from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.errors import ModelError
from federank.models.neighbours import NOBODY, Neighbours, nearest
from federank.recommenders.constructor import made_from
from federank.recommenders.from_histories import FromHistories, ItemWeights, dense
from federank.recommenders.recommender import Arrays


@dataclass(frozen=True, kw_only=True)
class UserKNNSettings:
    """How many neighbours, and how much to trust those who share little."""

    k: int = 50
    """How many of the most similar users count."""
    shrinkage: float = 0.0
    """Added to the cosine's denominator: the larger, the less a few shared items count (0: plain cosine)."""
    fill: bool = False
    """Fill lists up with items that no neighbour speaks for (score 0), as in the tables of the papers."""

    def __post_init__(self) -> None:
        _check(self.k, self.shrinkage)


@dataclass(frozen=True, kw_only=True)
class ItemKNNSettings:
    """How many neighbours, how much to trust those that share little, and whether their sum is taken as a share."""

    k: int = 50
    """How many of the most similar items count."""
    shrinkage: float = 0.0
    """Added to the cosine's denominator: the larger, the less a few shared users count (0: plain cosine)."""
    normalised: bool = False
    """Divide by the similarities of all k neighbours: more even lists, less precise ones on dense data."""
    fill: bool = False
    """Fill lists up with items that no neighbour speaks for (score 0), as in the tables of the papers."""

    def __post_init__(self) -> None:
        _check(self.k, self.shrinkage)


def _check(k: int, shrinkage: float) -> None:
    checks.whole("k", k, 1)
    checks.within("shrinkage", shrinkage, 0, np.inf)


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

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        self._keep(nearest(train.profiles, train.audiences, self.settings.k, self.settings.shrinkage))

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return dense(self._similarities[users] @ self._histories)

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """What those have who are most similar to somebody with this history."""
        shared, sizes = self._histories @ vector, self.training.profiles.sizes
        likeness = shared / (np.sqrt(sizes * vector.sum()) + self.settings.shrinkage)
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

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        self._keep_neighbours(nearest(train.audiences, train.profiles, self.settings.k, self.settings.shrinkage))

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
        raise ModelError("The model does not hold neighbours with their similarities; train it anew.")
    numbers_fit = rows.dtype == np.int32 and len(rows) == count and np.all((rows >= NOBODY) & (rows < count))
    if not numbers_fit or similarities.dtype != np.float32:
        raise ModelError(f"The model's neighbours are not numbers of its {count:,} {kind}s; train it anew.")
    return Neighbours(rows, similarities)
