"""What FPL and Frugal with the loss pairs share: rounds of pairs, everyone's choices, and vectors at home.

People may choose for themselves: a file of policies (`policies="people.toml"`), or from Python a list of them in the
sorted order of the users' ids (`fit(train, policies=[...])`). Those whose rounds do not follow their history are
recommended to from a home vector (protocol/pairs/home.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealVector
from federank.checks import Settings
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.methods.fpl.communication import count_communication, item_updates, paper_costs, participations
from federank.methods.fpl.factors import PairwiseFactors
from federank.methods.fpl.privacy import privacy_figure
from federank.methods.fpl.settings import FedeRankSettings, FPLSettings, Recipe, recipe_for
from federank.methods.recommender import Arrays, made_from
from federank.methods.sharing import ChoosingUsers, choices_as_arrays, choices_from_arrays, read_trace
from federank.privacy.population import coins, shared_profiles_of_all
from federank.simulation.options import TrainingOptions


class FederatedPairs(ChoosingUsers, PairwiseFactors):
    """Scores b_i + p_u . q_i, learnt from pairs by people who choose what leaves their devices."""

    audit = "federank.methods.fpl.audit"
    replays_communication = True

    home_vectors: FloatMatrix | None
    """The vectors that recommendations come from, once training is done, where someone has a home vector."""

    @property
    def pi(self) -> RealVector:
        """Each user's own probability of sending a positive item's gradient."""
        return self.choices.pi

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        chosen, self.home_vectors = self._ask_all(self.pairs(), train), None
        recipe = self.recipe(train)
        if recipe.clip > 0:  # what the figure needs is asked for before anything long is done
            privacy_figure(self.pairs(), recipe, np.ones(1, dtype=np.int64))
        self._run(self.pairs(), recipe, train, training_options, chosen)
        if recipe.clip > 0:
            rounds_of_each = participations(recipe, train.n_users, self.report["rounds"])
            self.report["privacy"] = privacy_figure(self.pairs(), recipe, rounds_of_each)
        if self.choices.at_home.any():
            self.home_vectors = self._tastes(np.arange(train.n_users, dtype=np.int32))

    def recipe(self, train: Interactions) -> Recipe:
        """The settings worked out for this population, with what everyone takes part with."""
        settings = self.pairs()
        trace = None if settings.trace is None else read_trace(settings.trace, train)
        shared_profile = shared_profiles_of_all(self.choices, settings.seed, train.profiles, train.n_items)
        own = self.choices.where(policy.triples or 0 for policy in self.choices.kinds)
        return recipe_for(
            settings, train.profiles.sizes, train.n_items, coins(self.choices), trace, shared_profile, own
        )

    def paper_costs(self) -> dict[str, float]:
        """What an epoch costs by the papers' formula, and how fresh it keeps the shared model."""
        return paper_costs(self)

    def item_updates(self) -> LongVector:
        """How many updates of the run had a row of each item."""
        return item_updates(self)

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


# FPL / FedeRank as a recommender: federated pair-wise learning, simulated for a whole population.


class FPL(FederatedPairs):
    """Federated pair-wise learning to rank (Anelli et al., 2020-2022); see `FPLSettings`."""

    name = "fpl"
    settings_type = FPLSettings
    settings: FPLSettings

    @made_from(FPLSettings)
    def __init__(self) -> None: ...

    def pairs(self) -> FPLSettings:
        """The settings, as they are."""
        return self.settings


class FedeRank(FPL):
    """FedeRank (Anelli et al., 2021) as its Eq. 1-5 are printed, with T = `triples`; see `FedeRankSettings`."""

    name = "federank"
    settings_type = FedeRankSettings
    settings: FedeRankSettings

    @made_from(FedeRankSettings)
    def __init__(self) -> None: ...


# BPR-MF: the centralised method that FPL is compared with.


@dataclass(frozen=True, kw_only=True)
class BPRSettings(Settings):
    """What can be chosen about centralised pair-wise learning."""

    factors: int = 20
    """Length of the vectors that describe users and items."""
    learning_rate: float = 0.05
    """Size of a step."""
    user_draw: Literal["activity", "uniform"] = "activity"
    """Draw users in proportion to their number of interactions, or each alike."""
    epochs: int = 20
    """Passes over the data: an epoch has as many steps as there are training interactions."""
    seed: int = 1
    """Names the run: the same seed gives the same model."""
    user_regulariser: float = 1 / 20
    """Pull of the user vector towards zero, as a multiple of the learning rate."""
    positive_regulariser: float = 1 / 20
    """Pull of a positive item's vector towards zero, as a multiple of the learning rate."""
    negative_regulariser: float = 1 / 200
    """Pull of a negative item's vector towards zero, as a multiple of the learning rate."""
    initial_scale: float = 0.1
    """Standard deviation of the first values of all vectors."""
    initial_biases: Literal["normal", "zero"] = "normal"
    """First values of the item biases: drawn like the vectors, or zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.as_fpl()

    def as_fpl(self) -> FPLSettings:
        """The federation that takes the same steps: one client a round, one pair, everything sent."""
        return FPLSettings(**vars(self), pi=1.0, clients_per_round=1, triples=1)


class BPR(PairwiseFactors):
    """Bayesian personalised ranking with matrix factorisation (Rendle et al., 2009)."""

    name = "bpr"
    settings_type = BPRSettings
    settings: BPRSettings

    @made_from(BPRSettings)
    def __init__(self) -> None: ...

    def pairs(self) -> FPLSettings:
        """The settings of the federation that takes the same steps."""
        return self.settings.as_fpl()

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        settings = self.pairs()
        recipe = recipe_for(settings, train.profiles.sizes, train.n_items, np.ones(train.n_users))
        self._run(settings, recipe, train, training_options)
