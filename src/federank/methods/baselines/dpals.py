"""Private alternating least squares with a trusted server (Chien et al., ICML 2021), for implicit feedback.

    model = PrivateALS(epsilon=1.0).fit(split.train)

The server holds all histories and publishes item vectors that are differentially private for users. In each iteration
it solves every user's vector exactly, clips it to length 1, and solves the items from noisy sums:

    A_i = sum x x' and b_i = sum x over the users of item i,    K = sum x x' over all users
    v_i = (A_i + w K + lambda I)^-1 b_i

A user counts for at most `items_per_user` random items, so adding or removing one changes all A together by at most
sqrt(items_per_user), all b by as much, and K by 1. User vectors are not published. It is the
comparison for private methods without a trusted server, and is not served.

The division of the privacy budget is ours; the defaults were chosen on the validation part of MovieLens 1M. The paper
prefers rare items within a user's limit; random ones were far better there. The accounting is not reviewed
from outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealMatrix, RealVector
from federank.checks import Settings, setting
from federank.data.interactions import Interactions, Profiles
from federank.methods.baselines.ials import SolvedFactors, new_workspace, solve_rows
from federank.methods.recommender import made_from
from federank.privacy.accountant import mu_for
from federank.simulation.options import TrainingOptions

# ruff: noqa: ARG002 (the parameters are those of every Recommender)

_COUNTS = 0.1
"""Share of the budget (mu squared) for the counts of items."""
_SHARES = {"A": 0.4, "b": 0.5, "K": 0.1}
"""How an iteration's budget is divided."""


@dataclass(frozen=True, kw_only=True)
class PrivateALSSettings(Settings):
    """Settings of private ALS."""

    epsilon: float = setting(1.0, positive=True)
    """Differential privacy of users (one user added or removed)."""
    delta: float = setting(1e-6, 1e-12, 0.1)
    """Probability with which the guarantee may fail."""
    factors: int = setting(16, 1)
    """Number of latent factors."""
    iterations: int = setting(2, 1)
    """Iterations; each costs a part of the budget."""
    items_per_user: int = setting(50, 1)
    """Items of a user that count at most."""
    items: int = setting(1000, 1)
    """Number of items that get a vector: the most popular by noisy counts."""
    unobserved_weight: float = setting(0.5, 0, 1)
    """Weight of the pairs that did not occur (w)."""
    regularization: float = setting(300.0, positive=True)
    """L2 regularisation of item vectors (lambda)."""
    user_regularization: float = setting(1.0, positive=True)
    """L2 regularisation of user vectors."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of the first vectors and of the noise."""


class PrivateALS(SolvedFactors):
    """Private alternating least squares with a trusted server (Chien et al., 2021)."""

    name = "dpals"
    settings_type = PrivateALSSettings
    settings: PrivateALSSettings

    @made_from(PrivateALSSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        settings = self.settings
        rng = np.random.default_rng(settings.seed)
        mu = mu_for(settings.epsilon, settings.delta)
        counts = noisy_counts(train, settings.items_per_user, np.sqrt(_COUNTS) * mu, rng)
        retained = np.sort(np.argsort(-counts, kind="stable")[: settings.items]).astype(np.int64)
        audiences = _audiences(train, retained, settings.items_per_user, rng)
        per_iteration = mu * np.sqrt((1 - _COUNTS) / settings.iterations)
        first = rng.normal(0, 1 / np.sqrt(settings.factors), (len(retained), settings.factors))
        self.item_vectors = np.zeros((train.n_items, settings.factors), dtype=np.float32)
        self.item_vectors[retained] = first
        for _ in range(settings.iterations):
            users = self._solved(train.profiles, self.item_vectors)
            users /= np.maximum(np.linalg.norm(users, axis=1, keepdims=True), 1.0)  # clipped to length 1
            self.item_vectors[retained] = self._items(users, audiences, per_iteration, rng)
        self.user_vectors = self._solved(train.profiles, self.item_vectors)
        self.report["privacy"] = {"epsilon": settings.epsilon, "delta": settings.delta}

    def _items(self, users: FloatMatrix, audiences: list[IntVector], mu: float, rng: np.random.Generator) -> RealMatrix:
        """Item vectors from noisy sums over users whose vectors have length at most 1."""
        settings, size = self.settings, self.settings.factors
        reach = np.sqrt(settings.items_per_user)
        noise = {name: 1 / (mu * np.sqrt(share)) for name, share in _SHARES.items()}
        everyone = users.T.astype(np.float64) @ users + _symmetric(rng, size, noise["K"])
        vectors = np.empty((len(audiences), size))
        for position, audience in enumerate(audiences):
            those = users[audience].astype(np.float64)
            gram = _positive(those.T @ those + _symmetric(rng, size, reach * noise["A"]))
            target = those.sum(axis=0) + rng.normal(0, reach * noise["b"], size)
            sides = gram + settings.unobserved_weight * _positive(everyone) + settings.regularization * np.eye(size)
            vectors[position] = np.linalg.solve(sides, target)
        return vectors

    def _solved(self, having: Profiles, vectors: FloatMatrix, threads: int = 1) -> FloatMatrix:
        settings, count = self.settings, len(having.starts) - 1
        solved = np.empty((count, settings.factors), dtype=np.float32)
        gram = vectors.T.astype(np.float64) @ vectors
        penalty = np.full(count, settings.user_regularization, dtype=np.float32)
        confidence = 1.0, float(settings.unobserved_weight)
        space = new_workspace(settings.factors)
        solve_rows(having.starts, having.items, vectors, gram, *confidence, penalty, 0, count, solved, space)
        return solved


def noisy_counts(train: Interactions, items_per_user: int, mu: float, rng: np.random.Generator) -> RealVector:
    """How many users have each item, with noise: a user counts for at most `items_per_user` random items."""
    limited = _limited(train, rng.random(len(train)), items_per_user)
    counts = np.bincount(train.items[limited], minlength=train.n_items)
    return counts + rng.normal(0, np.sqrt(items_per_user) / mu, train.n_items)


def _audiences(
    train: Interactions, retained: LongVector, items_per_user: int, rng: np.random.Generator
) -> list[IntVector]:
    """The users of each retained item, where a user counts for a limited number of random ones."""
    inside = np.isin(train.items, retained)
    order = np.where(inside, rng.random(len(train)), np.inf)
    rows = _limited(train, order, items_per_user)
    rows = rows[inside[rows]]
    table = csr_array((np.ones(len(rows)), (train.items[rows], train.users[rows])), (train.n_items, train.n_users))
    return [table.indices[table.indptr[item] : table.indptr[item + 1]] for item in retained]


def _limited(train: Interactions, order: RealVector, most: int) -> LongVector:
    """The rows of each user that come first in this order, at most this many."""
    rows = np.lexsort((order, train.users))
    rank = np.arange(len(rows)) - train.profiles.starts[train.users[rows]]
    chosen: LongVector = rows[rank < most].astype(np.int64)
    return chosen


def _symmetric(rng: np.random.Generator, size: int, deviation: float) -> RealMatrix:
    """Noise on a symmetric matrix: drawn for one triangle, mirrored to the other."""
    drawn = np.triu(rng.normal(0, deviation, (size, size)))
    return drawn + np.triu(drawn, 1).T


def _positive(matrix: RealMatrix) -> RealMatrix:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    positive: RealMatrix = (vectors * np.maximum(values, 0)) @ vectors.T
    return positive
