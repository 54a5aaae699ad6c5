"""iALS: matrix factorisation of who has what, by exact alternating solves (Hu et al., 2008).

    model = IALS(factors=64, regulariser=10).fit(split.train)

FCF and Frugal minimise the same sum of squares on clients, by steps or by sums of messages; here all histories
are in one place, and each side is solved for in closed form while the other is fixed. The regulariser matters as much
as the method: `frequency` lets it grow with the size of a history (Rendle et al., 2022).

Users and items are solved for one by one, so threads never change a bit.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank._numerics.compiling import at_once, compiled
from federank._numerics.rows import inlined
from federank._numerics.topn import gram_matrix
from federank.checks import Settings, setting
from federank.data.interactions import Interactions, Profiles
from federank.errors import Diverged, SettingError
from federank.federation.rng import ITEM_FACTORS, normal_rows
from federank.methods.recommender import Arrays, Recommender, made_from, put_back, restored_table
from federank.simulation.options import TrainingOptions

# Alternating least squares (Hu et al., 2008), solved exactly, one side at a time.


class Workspace(NamedTuple):
    """Scratch for one worker."""

    own: FloatMatrix
    sides: RealMatrix
    aim: RealVector


def new_workspace(factors: int) -> Workspace:
    """Scratch for one worker."""
    square = factors, factors
    return Workspace(np.empty(square, dtype=np.float32), np.empty(square), np.empty(factors))


@compiled(allocates=False)
def solve_rows(
    starts: LongVector,
    others: IntVector,
    vectors: FloatMatrix,
    gram: RealMatrix,
    liked: float,
    unobserved: float,
    residuals: FloatVector,
    first: int,
    last: int,
    solved: FloatMatrix,
    workspace: Workspace,
) -> None:
    """The best vectors of rows `first` to just before `last`, from those of the others that each row has.

    `gram` is Y'Y of all others, `lambdas` each row's regularisation.
    """
    own, sides, aim = workspace.own, workspace.sides, workspace.aim
    size = vectors.shape[1]
    more = np.float32(liked - unobserved)
    for row in range(first, last):
        begin, end = starts[row], starts[row + 1]
        _add_up_own(others, begin, end, vectors, own, aim)
        for f in range(size):
            aim[f] *= liked
            for g in range(f + 1):
                sides[f, g] = unobserved * gram[f, g] + more * own[f, g]
            sides[f, f] += residuals[row]
        _solve_lower(sides, aim)
        for f in range(size):
            solved[row, f] = np.float32(aim[f])


@inlined
def _add_up_own(others: Any, begin: Any, end: Any, vectors: Any, own: Any, aim: Any) -> None:
    """The lower half of the sum of y y' into `own`, and the sum of y into `aim`."""
    size = vectors.shape[1]
    for f in range(size):
        aim[f] = 0.0
        for g in range(f + 1):
            own[f, g] = np.float32(0)
    k = begin
    while k + 4 <= end:
        a, b, c, d = vectors[others[k]], vectors[others[k + 1]], vectors[others[k + 2]], vectors[others[k + 3]]
        for f in range(size):
            one, two, three, four = a[f], b[f], c[f], d[f]
            aim[f] += np.float64(one) + np.float64(two) + np.float64(three) + np.float64(four)
            for g in range(f + 1):
                own[f, g] += one * a[g] + two * b[g] + three * c[g] + four * d[g]
        k += 4
    while k < end:
        a = vectors[others[k]]
        for f in range(size):
            one = a[f]
            aim[f] += np.float64(one)
            for g in range(f + 1):
                own[f, g] += one * a[g]
        k += 1


@inlined
def _solve_lower(sides: Any, aim: Any) -> None:
    """Solve in place by the decomposition R'R of the lower triangle of `sides`, R lower; `aim` becomes the answer."""
    size = len(aim)
    for k in range(size - 1, -1, -1):
        root = np.sqrt(sides[k, k])
        for g in range(k + 1):
            sides[k, g] /= root
        for f in range(k):
            factor = sides[k, f]
            for g in range(f + 1):
                sides[f, g] -= factor * sides[k, g]
    for k in range(size - 1, -1, -1):  # R'z = aim
        aim[k] /= sides[k, k]
        for g in range(k):
            aim[g] -= sides[k, g] * aim[k]
    for f in range(size):  # R x = z
        for g in range(f):
            aim[f] -= sides[f, g] * aim[g]
        aim[f] /= sides[f, f]


class SolvedFactors(Recommender):
    """Scores x_u . y_i, where a user's vector is solved for in closed form."""

    item_vectors: FloatMatrix
    user_vectors: FloatMatrix

    @abstractmethod
    def _solved(self, having: Profiles, vectors: FloatMatrix, threads: int = 1) -> FloatMatrix:
        """The best vector of every row, given the vectors of the others that it has."""

    def enrolled(self, profile: IntVector) -> FloatVector:
        """The vector of a user with this history, in closed form."""
        alone = Profiles(np.array([0, len(profile)], dtype=np.int64), profile)
        vector: FloatVector = self._solved(alone, self.item_vectors)[0]
        return vector

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for a user with this vector."""
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


@dataclass(frozen=True, kw_only=True)
class IALSSettings(Settings):
    """Settings of alternating least squares."""

    factors: int = setting(64, 1)
    """Number of latent factors."""
    iterations: int = setting(15, 1)
    """How many times both sides are solved for."""
    alpha: float = setting(1.0, 0)
    """How much surer it is that users like what they have than that they dislike the rest: confidence 1 + alpha."""
    unobserved_weight: float = setting(1.0, 0)
    """Confidence that users dislike what they do not have."""
    regulariser: float = setting(10.0, positive=True)
    """L2 regularisation of all vectors (lambda)."""
    frequency: float = setting(0.0, 0, 1)
    """How the regularisation grows with the size of a history: 0 not at all, 1 in proportion."""
    initial_scale: float = setting(0.1, positive=True)
    """Standard deviation of the first values of the item vectors."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Seed of all random numbers: the same seed gives the same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unobserved_weight > 1 + self.alpha:
            raise SettingError(
                f"unobserved_weight is {self.unobserved_weight:g}, more than 1 + alpha ({1 + self.alpha:g}): what "
                "users do not have would count for more than what they have. Lower it, or raise alpha."
            )


class IALS(SolvedFactors):
    """Implicit alternating least squares (Hu et al., 2008); see `IALSSettings`."""

    name = "ials"
    can_use = ("threads", "after_epoch")
    _warm = ("item_vectors",)
    settings_type = IALSSettings
    settings: IALSSettings

    @made_from(IALSSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        settings = self.settings
        size = train.n_items, settings.factors
        self.item_vectors = normal_rows(*size, seed=settings.seed, purpose=ITEM_FACTORS, scale=settings.initial_scale)
        put_back(self._earlier, train, {"item_vectors": self.item_vectors})
        self.user_vectors = self._solved(train.profiles, self.item_vectors, training_options.threads)
        for iteration in range(1, settings.iterations + 1):
            self.item_vectors = self._solved(train.audiences, self.user_vectors, training_options.threads)
            # Users last: their vectors are the best for the final items.
            self.user_vectors = self._solved(train.profiles, self.item_vectors, training_options.threads)
            if not np.isfinite(self.user_vectors).all():
                raise Diverged("The vectors of ials are no longer finite numbers; ask for a larger regulariser.")
            if training_options.after_epoch is not None:
                training_options.after_epoch(iteration)

    def _solved(self, having: Profiles, vectors: FloatMatrix, threads: int = 1) -> FloatMatrix:
        """The best vector of every row, given the vectors of the others that it has."""
        settings, count = self.settings, len(having.starts) - 1
        gram: RealMatrix = gram_matrix(vectors, np.ones(len(vectors), dtype=np.float32))
        reach = having.sizes + settings.unobserved_weight * len(vectors)
        lambdas: FloatVector = (settings.regulariser * reach**settings.frequency).astype(np.float32)
        solved = np.empty((count, settings.factors), dtype=np.float32)
        # Shares of about equal work: a row costs its others, and a little for itself.
        work = np.cumsum(having.sizes + settings.factors)
        edges = np.searchsorted(work, np.arange(1, threads) * (work[-1] / threads))
        edges = np.concatenate(([0], edges, [count]))

        def solve(worker: int) -> None:
            workspace = new_workspace(settings.factors)
            confidence = 1.0 + settings.alpha, float(settings.unobserved_weight)
            span = int(edges[worker]), int(edges[worker + 1])
            solve_rows(having.starts, having.items, vectors, gram, *confidence, lambdas, *span, solved, workspace)

        at_once(solve, threads)
        return solved
