"""iALS: matrix factorisation of who has what, by exact alternating solves (Hu et al., 2008).

    model = IALS(factors=64, regulariser=10).fit(split.train)

FCF and Frugal minimise the same sum of squares on devices, by steps or by sums of messages; here everybody's history
lies in one place, and each side is solved for in closed form while the other stands still (models/als.py). As much as
on the method depends on its regulariser: `frequency` lets it grow with how much somebody has (Rendle et al., 2022).

People and items are solved for one by one, so threads never change a bit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from federank import checks
from federank.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.data.interactions import Interactions, Profiles
from federank.engines.conduct import Conduct
from federank.errors import Diverged, SettingError
from federank.models.als import new_room, solve_rows
from federank.models.squares import gram_matrix
from federank.protocol.draws import ITEM_FACTORS
from federank.protocol.initial import normal_rows
from federank.recommenders.constructor import made_from
from federank.recommenders.recommender import Arrays, Recommender, restored_table
from federank.recommenders.warm_start import put_back
from federank.workers import at_once


@dataclass(frozen=True, kw_only=True)
class IALSSettings:
    """What can be chosen about alternating least squares."""

    factors: int = 64
    """Length of the vectors that describe users and items."""
    iterations: int = 15
    """How many times both sides are solved for."""
    alpha: float = 1.0
    """How much surer it is that users like what they have than that they dislike the rest: confidence 1 + alpha."""
    unobserved_weight: float = 1.0
    """Confidence that users dislike what they do not have."""
    regulariser: float = 10.0
    """Pull of all vectors towards zero (lambda)."""
    frequency: float = 0.0
    """How that pull grows with how much a user or an item has: 0 not at all, 1 in proportion."""
    initial_scale: float = 0.1
    """Standard deviation of the first values of the item vectors."""
    seed: int = 1
    """Names the run: the same seed gives the same model."""

    def __post_init__(self) -> None:
        checks.whole("factors", self.factors, 1)
        checks.whole("iterations", self.iterations, 1)
        checks.within("alpha", self.alpha, 0, np.inf)
        checks.within("unobserved_weight", self.unobserved_weight, 0, np.inf)
        checks.positive("regulariser", self.regulariser)
        checks.within("frequency", self.frequency, 0, 1)
        checks.positive("initial_scale", self.initial_scale)
        checks.seed(self.seed)
        if self.unobserved_weight > 1 + self.alpha:
            raise SettingError(
                f"unobserved_weight is {self.unobserved_weight:g}, more than 1 + alpha ({1 + self.alpha:g}): what "
                "users do not have would count for more than what they have. Lower it, or raise alpha."
            )


class IALS(Recommender):
    """Implicit alternating least squares (Hu et al., 2008); see `IALSSettings`."""

    name = "ials"
    can_use = ("threads", "after_epoch")
    _warm = ("item_vectors",)
    settings_type = IALSSettings
    settings: IALSSettings
    item_vectors: FloatMatrix
    user_vectors: FloatMatrix

    @made_from(IALSSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        settings, begin = self.settings, time.perf_counter()
        size = train.n_items, settings.factors
        self.item_vectors = normal_rows(*size, seed=settings.seed, purpose=ITEM_FACTORS, scale=settings.initial_scale)
        put_back(self._earlier, train, {"item_vectors": self.item_vectors})
        self.user_vectors = self._solved(train.profiles, self.item_vectors, conduct.threads)
        for iteration in range(1, settings.iterations + 1):
            self.item_vectors = self._solved(train.audiences, self.user_vectors, conduct.threads)
            # After the items their people: everybody's vector is the best for the items as they are.
            self.user_vectors = self._solved(train.profiles, self.item_vectors, conduct.threads)
            if not np.isfinite(self.user_vectors).all():
                raise Diverged("The vectors of ials are no longer finite numbers; ask for a larger regulariser.")
            if conduct.after_epoch is not None:
                conduct.after_epoch(iteration)
        self.report["seconds"] = time.perf_counter() - begin

    def _solved(self, having: Profiles, vectors: FloatMatrix, threads: int = 1) -> FloatMatrix:
        """The best vector of everybody (or everything) that has these others, whose vectors stand still."""
        settings, count = self.settings, len(having.starts) - 1
        gram: RealMatrix = gram_matrix(vectors, np.ones(len(vectors), dtype=np.float32))
        reach = having.sizes + settings.unobserved_weight * len(vectors)
        pulls: FloatVector = (settings.regulariser * reach**settings.frequency).astype(np.float32)
        solved = np.empty((count, settings.factors), dtype=np.float32)
        # Shares of about equal work: a row costs its others, and a little for itself.
        work = np.cumsum(having.sizes + settings.factors)
        edges = np.searchsorted(work, np.arange(1, threads) * (work[-1] / threads))
        edges = np.concatenate(([0], edges, [count]))

        def solve(worker: int) -> None:
            room = new_room(settings.factors)
            confidence = 1.0 + settings.alpha, float(settings.unobserved_weight)
            span = int(edges[worker]), int(edges[worker + 1])
            solve_rows(having.starts, having.items, vectors, gram, *confidence, pulls, *span, solved, room)

        at_once(solve, threads)
        return solved

    def enrolled(self, profile: IntVector) -> FloatVector:
        """The vector of somebody with this history, in closed form."""
        alone = Profiles(np.array([0, len(profile)], dtype=np.int64), profile)
        vector: FloatVector = self._solved(alone, self.item_vectors)[0]
        return vector

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the whole catalogue for somebody with this vector."""
        scores: FloatVector = self.item_vectors @ vector
        return scores

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self.user_vectors[users] @ self.item_vectors.T
        return scores

    def _shared_arrays(self) -> Arrays:
        return {"item_vectors": self.item_vectors}

    def _private_arrays(self) -> Arrays:
        return {"user_vectors": self.user_vectors}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        n_users, n_items, factors = self.training.n_users, self.training.n_items, self.settings.factors
        self.item_vectors = restored_table(shared, "item_vectors", (n_items, factors))
        self.user_vectors = restored_table(private, "user_vectors", (n_users, factors))
