"""The two floors under every method: the most popular items, and items at random.

Neither depends on the user, except that it leaves out what the user has. Of equally popular items, the one with
the smaller number comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.methods.recommender import Arrays, Recommender, made_from
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


@dataclass(frozen=True, kw_only=True)
class MostPopularSettings:
    """There is nothing to choose."""


class MostPopular(Recommender):
    """The most popular items, for everyone the same."""

    name = "popular"
    settings_type = MostPopularSettings
    settings: MostPopularSettings
    item_scores: FloatVector

    @made_from(MostPopularSettings)
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
