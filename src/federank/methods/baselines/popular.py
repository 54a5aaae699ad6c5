"""The floors under every method: the most popular items, items at random, and biases of users and items.

Neither depends on the user, except that it leaves out what the user has. Of equally popular items, the one with
the smaller number comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.methods.predicting import PredictsRatings, refuse_bad_ratings
from federank.methods.recommender import Arrays, NoSettings, Recommender, made_from, restored_table
from federank.simulation.options import TrainingOptions

# Scores that do not depend on the user.


def popularity_scores(popularity: LongVector) -> FloatVector:
    """Each item's share of all interactions; equally popular items have equal scores."""
    return (popularity / max(int(popularity.sum()), 1)).astype(np.float32)


def random_scores(seed: int, users: IntVector, n_items: int) -> FloatMatrix:
    """Scores in [0, 1) that depend on the seed and the user alone, one row per user.

    Each user has a bit generator of their own, keyed by (seed, user), so it does not matter who else is asked
    about. The upper 24 bits of each word are all that a float32 holds.
    """
    words = (np.random.PCG64(np.random.SeedSequence((seed, int(user)))).random_raw(n_items) for user in users)
    scores = np.empty((len(users), n_items), dtype=np.float32)
    for row, word in enumerate(words):
        scores[row] = (np.asarray(word) >> np.uint64(40)) * np.float32(2.0**-24)
    return scores


# ruff: noqa: ARG002 (the parameters are those of every Recommender)


class MostPopular(Recommender):
    """The most popular items, for everyone the same."""

    name = "popular"
    item_scores: FloatVector

    @made_from(NoSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        self.item_scores = popularity_scores(train.popularity)

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return np.broadcast_to(self.item_scores, (len(users), len(self.item_scores)))

    def enrolled(self, profile: IntVector) -> FloatVector:
        """Nothing of a history counts."""
        return np.zeros(0, dtype=np.float32)

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The same scores for everyone."""
        return self.item_scores

    def _shared_arrays(self) -> Arrays:
        return {"item_scores": self.item_scores}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        scores = shared.get("item_scores")
        if scores is None or scores.shape != (self.training.n_items,):
            raise ModelError("The model does not have one popularity per item of its catalogue; train it again.")
        self.item_scores = scores.astype(np.float32, copy=False)


@dataclass(frozen=True, kw_only=True)
class RandomSettings(Settings):
    """What chance depends on."""

    seed: int = setting(1, 0, 2**32 - 1)
    """The seed of the random scores: the same seed gives the same lists."""


class Random(Recommender):
    """Items at random, different for each user; the same for the same seed."""

    name = "random"
    settings_type = RandomSettings
    settings: RandomSettings

    @made_from(RandomSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        """There is nothing to learn: scores follow from the seed and the user's number."""

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return random_scores(self.settings.seed, users, self.training.n_items)

    def _shared_arrays(self) -> Arrays:
        return {}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        """Nothing was stored but the seed, which is among the settings."""


# Means with biases: a rating predicted as the mean of all, and how far this user and this item usually are from it.
#
#     model = Biases().fit(split.train)            mu + b_u + b_i, the baseline of Koren (2010)
#     model = Biases(of="users").fit(split.train)  the user's mean; `items`: the item's
#
#     minimise  sum of (r - mu - b_u - b_i)^2  +  user_damping sum of b_u^2  +  item_damping sum of b_i^2
#
# by solving for one side while the other stands still. Damping draws the biases of those with few ratings towards zero;
# with a damping of 0 and one side alone they are plain means. All ratings are in one place.


# ruff: noqa: ARG002 (the parameters are those of every Recommender)


@dataclass(frozen=True, kw_only=True)
class BiasesSettings(Settings):
    """What can be chosen about means and biases."""

    of: Literal["both", "users", "items", "none"] = "both"
    """Whose habits count: users' and items', one of them alone, or none (the mean of all)."""
    user_damping: float = setting(5.0, 0)
    """As many ratings of exactly the mean are counted to every user's own."""
    item_damping: float = setting(5.0, 0)
    """As many ratings of exactly the mean are counted to every item's own."""
    passes: int = setting(15, 1)
    """How many times both sides are solved for."""
    lowest: float = 1.0
    """The lowest rating that there is."""
    highest: float = 5.0
    """The highest rating that there is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lowest < self.highest:
            raise SettingError(f"lowest is {self.lowest} and highest {self.highest}; the first must be smaller.")


class Biases(PredictsRatings):
    """Predicts the mean of all ratings, and how far this user and this item usually are from it."""

    name = "biases"
    settings_type = BiasesSettings
    settings: BiasesSettings
    mean: float
    user_biases: FloatVector
    item_biases: FloatVector

    @made_from(BiasesSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        refuse_bad_ratings(train, self.settings)
        assert train.ratings is not None
        settings = self.settings
        ratings = train.ratings.astype(np.float64)
        self.mean = float(np.float32(ratings.mean()))
        users, items = np.zeros(train.n_users), np.zeros(train.n_items)
        for _ in range(settings.passes):
            if settings.of in ("both", "items"):
                rest = ratings - self.mean - users[train.users]
                items = _solved(train.items, rest, settings.item_damping, train.n_items)
            if settings.of in ("both", "users"):
                rest = ratings - self.mean - items[train.items]
                users = _solved(train.users, rest, settings.user_damping, train.n_users)
        self.user_biases, self.item_biases = users.astype(np.float32), items.astype(np.float32)

    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        values: FloatVector = np.float32(self.mean) + self.user_biases[users] + self.item_biases[items]
        return values

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = np.float32(self.mean) + self.user_biases[users, None] + self.item_biases
        return scores

    def _shared_arrays(self) -> Arrays:
        return {"item_biases": self.item_biases, "mean": np.array([self.mean], dtype=np.float32)}

    def _private_arrays(self) -> Arrays:
        return {"user_biases": self.user_biases}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        if self.training.ratings is None:
            raise ModelError("The model was learnt from ratings, but the training data in its folder have none.")
        self.mean = float(restored_table(shared, "mean", (1,))[0])
        self.item_biases = restored_table(shared, "item_biases", (self.training.n_items,))
        self.user_biases = restored_table(private, "user_biases", (self.training.n_users,))


def _solved(codes: IntVector, rest: RealVector, damping: float, count: int) -> RealVector:
    """The bias of each user or item: the sum of its residuals over their number plus the damping."""
    biases: RealVector = np.bincount(codes, weights=rest, minlength=count) / (
        np.bincount(codes, minlength=count) + damping
    )
    return biases
