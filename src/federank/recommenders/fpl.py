"""FPL / FedeRank as a recommender: federated pair-wise learning, simulated for a whole population.

model = FPL(pi=0.3, triples="mean").fit(split.train)
model.recommend("A3EBHHCZO6V2A4", n=10)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import RealVector
from federank.data.interactions import Interactions
from federank.engines.communication import count_communication
from federank.errors import ModelError, SettingError
from federank.protocol.choices import Choices, coins, everyones_outward
from federank.protocol.people import read_pi, read_trace
from federank.protocol.recipes import FPLSettings, Recipe, recipe_for
from federank.recommenders.factors import PairwiseFactors
from federank.recommenders.recommender import Arrays


class FPL(PairwiseFactors):
    """Federated pair-wise learning to rank (Anelli et al., 2020-2022); see `FPLSettings`."""

    name = "fpl"
    settings_type = FPLSettings
    settings: FPLSettings
    pi: RealVector
    """Each user's own probability of sending a positive item's gradient."""

    choices: Choices
    """What everybody allows."""

    def _learn(self, train: Interactions, **how: Any) -> None:
        self.pi = self._pi(train)
        self.choices = Choices.alike(self.settings.policy(0.5), self.pi)
        recipe = self.recipe(train)
        self._run(self.settings, recipe, train, how)

    def recipe(self, train: Interactions) -> Recipe:
        """The settings worked out for this population, with what everybody takes part with."""
        trace = None if self.settings.trace is None else read_trace(self.settings.trace, train)
        outward = everyones_outward(self.choices, self.settings.seed, train.profiles, train.n_items)
        return recipe_for(self.settings, train.profiles.sizes, train.n_items, coins(self.choices), trace, outward)

    def communication(self) -> dict[str, Any]:
        """What the run has sent, counted update by update: rows and bytes, beside the papers' formulas."""
        data = self._fitted()
        return count_communication(self.recipe(data), data.profiles, data.n_items, self.report["rounds"])

    def _pi(self, train: Interactions) -> RealVector:
        pi = self.settings.pi
        if isinstance(pi, float | int):
            return np.full(train.n_users, float(pi))
        if isinstance(pi, str):
            return read_pi(pi, train)
        try:
            values = np.asarray(pi, dtype=np.float64)
        except (TypeError, ValueError) as reason:
            raise SettingError(f"pi is not a number, a file, or a number for each user: {reason}.") from reason
        if values.shape != (train.n_users,):
            raise SettingError(
                f"pi is of shape {values.shape}; one number for each of the {train.n_users:,} users is needed."
            )
        return values

    def _private_arrays(self) -> Arrays:
        return super()._private_arrays() | {"pi": self.pi}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        super()._restore(shared, private)
        if "pi" not in private or private["pi"].shape != (self.training.n_users,):
            raise ModelError("The model's folder lacks the users' own pi, or has it for other users.")
        self.pi = private["pi"]
        self.choices = Choices.alike(self.settings.policy(0.5), self.pi)
