"""The two floors under every method: the most popular items, and items at random.

Neither looks at the person, but for leaving out what they already have. Of equally popular items, the one with
the smaller number comes first.
"""

# ruff: noqa: ARG002 (the parameters are those of every Recommender)
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federank import checks
from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.errors import ModelError
from federank.models.popularity import popularity_scores, random_scores
from federank.recommenders.constructor import made_from
from federank.recommenders.recommender import Arrays, Recommender


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

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        self.item_scores = popularity_scores(train.popularity)

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return np.broadcast_to(self.item_scores, (len(users), len(self.item_scores)))

    def _shared_arrays(self) -> Arrays:
        return {"item_scores": self.item_scores}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        scores = shared.get("item_scores")
        if scores is None or scores.shape != (self.training.n_items,):
            raise ModelError("The model does not have one popularity per item of its catalogue; train it anew.")
        self.item_scores = scores.astype(np.float32, copy=False)


@dataclass(frozen=True, kw_only=True)
class RandomSettings:
    """What chance depends on."""

    seed: int = 1
    """The seed of the random scores: the same seed gives the same lists."""

    def __post_init__(self) -> None:
        checks.seed(self.seed)


class Random(Recommender):
    """Items at random, for each person others; the same again for the same seed."""

    name = "random"
    settings_type = RandomSettings
    settings: RandomSettings

    @made_from(RandomSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        """There is nothing to learn: scores follow from the seed and the user's number."""

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return random_scores(self.settings.seed, users, self.training.n_items)

    def _shared_arrays(self) -> Arrays:
        return {}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        """Nothing was stored but the seed, which is among the settings."""
