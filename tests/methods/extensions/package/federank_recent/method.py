"""The items that were chosen most lately, for everyone the same."""

from dataclasses import dataclass

import numpy as np

import federank as fr


@dataclass(frozen=True, kw_only=True)
class RecentSettings:
    """What can be chosen."""

    days: float = 30.0
    """In how many days what was chosen counts for half."""


class Recent(fr.Recommender):
    """Items that were chosen lately."""

    name = "recent"
    settings_type = RecentSettings

    def _learn(self, train, training_options):  # noqa: ARG002 (every method is asked alike)
        age = (train.times.max() - train.times) / 86_400
        weights = 0.5 ** (age / self.settings.days)
        self.freshness = np.bincount(train.items, weights=weights, minlength=train.n_items).astype(np.float32)

    def _score_users(self, users):
        return np.tile(self.freshness, (len(users), 1))

    def _shared_arrays(self):
        return {"freshness": self.freshness}

    def _restore(self, shared, private):  # noqa: ARG002
        self.freshness = shared["freshness"]
