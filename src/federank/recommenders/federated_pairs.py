"""What FPL and Frugal with the loss pairs share: rounds of pairs, everybody's choices, and vectors at home.

People may choose for themselves: a file of policies (`policies="people.toml"`), or from Python a list of them in the
sorted order of the users' ids (`fit(train, policies=[...])`). Those whose rounds do not follow their history are
recommended to from a home vector (protocol/pairs/home.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import FloatMatrix, IntVector, RealVector
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.engines.pairs.communication import count_communication
from federank.engines.pairs.replay import participations
from federank.errors import ModelError
from federank.protocol.pairs.privacy import privacy_figure
from federank.protocol.pairs.recipes import Recipe, recipe_for
from federank.protocol.policies.choices import coins, everyones_outward
from federank.recommenders.choosing_people import ChoosingPeople
from federank.recommenders.factors import PairwiseFactors
from federank.recommenders.people.shares import read_trace
from federank.recommenders.recommender import Arrays
from federank.recommenders.stored.policies import choices_as_arrays, choices_from_arrays


class FederatedPairs(ChoosingPeople, PairwiseFactors):
    """Scores b_i + p_u . q_i, learnt from pairs by people who choose what leaves their devices."""

    home_vectors: FloatMatrix | None
    """The vectors that recommendations come from, once training is done, where somebody has a home vector."""

    @property
    def pi(self) -> RealVector:
        """Each user's own probability of sending a positive item's gradient."""
        return self.choices.pi

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        chosen, self.home_vectors = self._ask_everybody(self.pairs(), train), None
        recipe = self.recipe(train)
        if recipe.clip > 0:  # what the figure needs is asked for before anything long is done
            privacy_figure(self.pairs(), recipe, np.ones(1, dtype=np.int64))
        self._run(self.pairs(), recipe, train, conduct, chosen)
        if recipe.clip > 0:
            rounds_of_each = participations(recipe, train.n_users, self.report["rounds"])
            self.report["privacy"] = privacy_figure(self.pairs(), recipe, rounds_of_each)
        if self.choices.at_home.any():
            self.home_vectors = self._tastes(np.arange(train.n_users, dtype=np.int32))

    def recipe(self, train: Interactions) -> Recipe:
        """The settings worked out for this population, with what everybody takes part with."""
        settings = self.pairs()
        trace = None if settings.trace is None else read_trace(settings.trace, train)
        outward = everyones_outward(self.choices, settings.seed, train.profiles, train.n_items)
        own = self.choices.where(policy.triples or 0 for policy in self.choices.kinds)
        return recipe_for(settings, train.profiles.sizes, train.n_items, coins(self.choices), trace, outward, own)

    def communication(self) -> dict[str, Any]:
        """What the run has sent, counted update by update: rows and bytes, beside the papers' formulas."""
        data = self._fitted()
        return count_communication(self.recipe(data), data.profiles, data.n_items, self.report["rounds"])

    def _tastes(self, users: IntVector) -> FloatMatrix:
        if self.home_vectors is not None:
            return self.home_vectors[users]
        vectors = super()._tastes(users)
        home = np.flatnonzero(self.choices.at_home[users])
        if len(home):
            vectors[home] = self.fold_in(self.training.profiles, users[home])
        return vectors

    def _private_arrays(self) -> Arrays:
        home = {} if self.home_vectors is None else {"home_vectors": self.home_vectors}
        return super()._private_arrays() | choices_as_arrays(self.choices) | home

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        super()._restore(shared, private)
        self.choices = choices_from_arrays(private, self.training.n_users, self.pairs().policy(0.5))
        self.home_vectors = private.get("home_vectors") if self.choices.at_home.any() else None
        if self.choices.at_home.any() and (
            self.home_vectors is None
            or self.home_vectors.dtype != np.float32
            or self.home_vectors.shape != self.user_vectors.shape
        ):
            raise ModelError("The model's folder lacks the home vectors, or has them for other users.")
