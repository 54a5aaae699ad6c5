"""Methods on the graph of users and items, a few lines of sparse algebra each.

    model = RP3beta(beta=0.3, k=400).fit(split.train)
    model = GFCF(factors=256).fit(split.train)

RP3beta (Paudel et al., 2017) scores an item by random walks of three steps, user to item to user to item, and divides
by the item's popularity to the power of `beta`. GF-CF (Shen et al., 2021) filters a history: one step over the
normalised graph, and a projection on its first singular vectors. Both need all histories in one place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.methods.recommender import (
    Arrays,
    FromHistories,
    ItemWeights,
    dense,
    made_from,
    restored_table,
    restored_weights,
    stored_weights,
)
from federank.simulation.options import TrainingOptions

# ruff: noqa: ARG002 (the parameters are those of every Recommender)

_ROWS_AT_A_TIME = 1024


def _powers(counts: LongVector, exponent: float) -> RealVector:
    """Each count to this power; every user and item of a training part has at least one interaction."""
    return counts.astype(np.float64) ** exponent


def _best_of_rows(table: csr_array, k: int) -> csr_array:
    """Only the k largest entries of each row."""
    keeps = np.zeros(table.nnz, dtype=bool)
    for start, end in zip(table.indptr[:-1], table.indptr[1:], strict=True):
        if end - start <= k:
            keeps[start:end] = True
        else:
            keeps[start + np.argpartition(-table.data[start:end], k)[:k]] = True
    starts = np.concatenate(([0], np.cumsum(keeps)))[table.indptr]
    return csr_array((table.data[keeps], table.indices[keeps], starts), shape=table.shape)


@dataclass(frozen=True, kw_only=True)
class RP3betaSettings(Settings):
    """Settings of RP3beta."""

    alpha: float = setting(0.7, positive=True)
    """Exponent of the transition probabilities: below 1, rare transitions count more."""
    beta: float = setting(0.3, 0, 2)
    """Exponent of the popularity that scores are divided by (0: none, 1: fully)."""
    k: int = setting(400, 1)
    """Number of items kept per item: those that walks from it reach most often."""


class RP3beta(ItemWeights):
    """Random walks of three steps, with popular items divided down (Paudel et al., 2017)."""

    name = "rp3beta"
    settings_type = RP3betaSettings
    settings: RP3betaSettings
    weights: csr_array

    @made_from(RP3betaSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        settings, histories = self.settings, train.matrix()
        to_items = csr_array(diags_array(_powers(train.profiles.sizes, -settings.alpha)) @ histories)
        to_users = csr_array(diags_array(_powers(train.popularity, -settings.alpha)) @ histories.T)
        damping = diags_array(_powers(train.popularity, -settings.beta))
        rows = []
        for start in range(0, train.n_items, _ROWS_AT_A_TIME):
            walks = csr_array(to_users[start : start + _ROWS_AT_A_TIME] @ to_items @ damping, dtype=np.float32)
            number = np.repeat(np.arange(start, start + walks.shape[0]), np.diff(walks.indptr))
            walks.data[walks.indices == number] = 0  # back to where the walk began
            walks.eliminate_zeros()
            rows.append(_best_of_rows(walks, settings.k))
        starts = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(part.indptr) for part in rows]))))
        items = np.concatenate([part.indices for part in rows])
        values = np.concatenate([part.data for part in rows]).astype(np.float32)
        self._keep(csr_array((values, items, starts), shape=(train.n_items, train.n_items)))
        self.report["weights"] = int(self.weights.nnz)

    def _shared_arrays(self) -> Arrays:
        return stored_weights(self.weights)

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self._keep(restored_weights(shared, self.training.n_items))


@dataclass(frozen=True, kw_only=True)
class GFCFSettings(Settings):
    """Settings of GF-CF."""

    factors: int = setting(256, 1)
    """Number of singular vectors of the ideal low-pass filter; at most as many as users or items."""
    low_pass: float = setting(0.3, 0)
    """Weight of the ideal low-pass filter beside the linear one (0: only the linear filter)."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of the randomised singular value decomposition."""


class GFCF(FromHistories):
    """Graph filter (Shen et al., 2021): smooth a history over the normalised graph of users and items."""

    name = "gfcf"
    settings_type = GFCFSettings
    settings: GFCFSettings
    singular_vectors: FloatMatrix
    """Items x factors, orthonormal."""

    @made_from(GFCFSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        self._filters()
        self.singular_vectors = _first_singular_vectors(self._graph, self._factors, self.settings.seed)

    @property
    def _factors(self) -> int:
        """A graph has no more singular vectors than users or items."""
        return min(self.settings.factors, self.training.n_items, self.training.n_users)

    def _filters(self) -> None:
        """The normalised graph, D_u^-1/2 R D_i^-1/2, from the training part."""
        train = self.training
        self._histories = train.matrix()
        self._roots: FloatVector = np.sqrt(train.popularity).astype(np.float32)
        by_user, by_item = (diags_array(_powers(n, -0.5)) for n in (train.profiles.sizes, train.popularity))
        self._graph = csr_array(by_user @ self._histories @ by_item, dtype=np.float32)

    def _score(self, histories: csr_array) -> FloatMatrix:
        linear = dense((histories @ self._graph.T) @ self._graph)
        smooth = (histories * (1 / self._roots)[None, :]) @ self.singular_vectors
        low_pass = np.asarray(smooth) @ self.singular_vectors.T * self._roots
        scores: FloatMatrix = (linear + np.float32(self.settings.low_pass) * low_pass).astype(np.float32)
        return scores

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return self._score(self._histories[users])

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for a user with this history."""
        scores: FloatVector = self._score(csr_array(vector[None, :]))[0]
        return scores

    def _shared_arrays(self) -> Arrays:
        return {"singular_vectors": self.singular_vectors}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        size = self.training.n_items, self._factors
        self.singular_vectors = restored_table(shared, "singular_vectors", size)
        self._filters()


def _first_singular_vectors(graph: csr_array, count: int, seed: int, iterations: int = 5) -> FloatMatrix:
    """The right singular vectors of the largest singular values, by subspace iteration (Halko et al., 2011)."""
    width = min(count + 32, *graph.shape)
    basis: RealMatrix = np.random.default_rng(seed).normal(size=(graph.shape[1], width)).astype(np.float32)
    for _ in range(iterations):
        basis, _ = np.linalg.qr(graph.T @ (graph @ basis))
    projected = graph @ basis
    _, rotations = np.linalg.eigh(projected.T @ projected)
    best: FloatMatrix = np.ascontiguousarray((basis @ rotations[:, ::-1])[:, :count], dtype=np.float32)
    return best
