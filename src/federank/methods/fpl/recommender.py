"""FPL, FedeRank and BPR as recommenders.

Users may choose their policies: in a file (`policies="people.toml"`), or from Python as a list in the sorted order of
users' ids (`fit(train, policies=[...])`). Users whose updates do not follow their full history get recommendations from
a vector that is folded in locally (`FPL.fold_in` in method.py).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank.checks import Settings
from federank.data.interactions import Interactions, Profiles
from federank.errors import ModelError
from federank.federation import wire
from federank.methods.fpl import method as federated
from federank.methods.fpl.communication import communication_cost, count_communication, tallied
from federank.methods.fpl.method import HOME_STEPS, FPLModel, FPLState, PairwiseSettings
from federank.methods.fpl.settings import FedeRankSettings, FPLSettings, Recipe, participations, recipe_for
from federank.methods.fpl.simulation import Federation, home_vectors
from federank.methods.recommender import Arrays, LearnsInRounds, made_from, put_back
from federank.methods.sharing import ChoosingUsers, choices_as_arrays, choices_from_arrays, read_trace
from federank.privacy.accountant import epsilon_of
from federank.privacy.population import coins, shared_profiles_of_all
from federank.simulation.options import TrainingOptions


class PairwiseFactors(LearnsInRounds):
    """Scores b_i + p_u . q_i, learnt from pairs."""

    tables: ClassVar = {"item_vectors": 2, "item_biases": 1, "user_vectors": 2}
    _warm = tuple(tables)
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix

    @abstractmethod
    def pairs(self) -> FPLSettings:
        """The method's settings as those of FPL."""

    def _run(self, recipe: Recipe, data: Interactions, training_options: TrainingOptions, chosen: str = "") -> None:
        """Create a federation and play its rounds; `chosen` digests users' own choices."""
        settings = self.pairs()
        federation = Federation.established(settings, recipe, data.profiles, data.n_items)
        put_back(self._earlier, data, {name: getattr(federation, name) for name in self._warm})
        self._play(federation, settings.epochs, training_options, chosen)
        triples = int(recipe.triples[recipe.participants].mean() * recipe.clients_per_round * federation.round_number)
        if recipe.online >= 1.0 and not len(recipe.trace):
            self.report["triples"] = triples
        self.report["skipped_users"] = int(data.n_users - len(np.unique(recipe.participants)))

    def _tastes(self, users: IntVector) -> FloatMatrix:
        """A copy of the vectors that these users' recommendations come from."""
        return self.user_vectors[users]

    def fold_in(self, histories: Profiles, users: IntVector) -> FloatMatrix:
        """Fold in these users from their full history."""
        model = FPLModel(self.item_vectors, self.item_biases)
        return home_vectors(self.pairs().method(len(self.item_biases)), model, histories, users, HOME_STEPS)

    def enrolled(self, profile: IntVector) -> FloatVector:
        """Fold in a new user with this history; nothing is sent."""
        alone = Profiles(np.array([0, len(profile)], dtype=np.int64), profile)
        vector: FloatVector = self.fold_in(alone, np.zeros(1, dtype=np.int32))[0]
        return vector

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """Scores of all items for a user with this vector."""
        scores: FloatVector = self.item_vectors @ vector + self.item_biases
        return scores

    def _score_users(self, users: IntVector) -> FloatMatrix:
        with np.errstate(over="ignore", invalid="ignore"):  # factors that overflow: training reports it
            return self._tastes(users) @ self.item_vectors.T + self.item_biases


# FPL and FedeRank: federated pairwise learning, simulated for a population.


class FPL(ChoosingUsers, PairwiseFactors):
    """Federated pair-wise learning to rank (Anelli et al., 2020-2022); see `FPLSettings`."""

    name = "fpl"
    settings_type = FPLSettings
    settings: FPLSettings
    audit = "federank.methods.fpl.audit"
    replays_communication = True

    home_vectors: FloatMatrix | None
    """The vectors that recommendations come from after training, if some users have a local fold-in."""

    @made_from(FPLSettings)
    def __init__(self) -> None: ...

    def pairs(self) -> FPLSettings:
        """The settings."""
        return self.settings

    @property
    def method(self) -> federated.FPL:
        """The method on the interface: for a federation that starts from this model."""
        return self.settings.method(self.training.n_items)

    @property
    def state(self) -> FPLState:
        """The initial state of such a federation."""
        empty: FPLState = wire.zeros(FPLState, self.method)
        return replace(empty, vectors=np.ascontiguousarray(self.item_vectors), biases=self.item_biases)

    @property
    def pi(self) -> RealVector:
        """Each user's probability of sending a positive item's gradient."""
        return self.choices.pi

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        chosen, self.home_vectors = self._ask_all(self.settings, train), None
        recipe = self.recipe(train)
        if recipe.clip > 0:  # check the extra before the long training
            privacy_figure(self.settings, recipe, np.ones(1, dtype=np.int64))
        self._run(recipe, train, training_options, chosen)
        if recipe.clip > 0:
            rounds_of_each = participations(recipe, train.n_users, self.report["rounds"])
            self.report["privacy"] = privacy_figure(self.settings, recipe, rounds_of_each)
        if self.choices.at_home.any():
            self.home_vectors = self._tastes(np.arange(train.n_users, dtype=np.int32))

    def recipe(self, train: Interactions) -> Recipe:
        """The settings resolved for this population, with all shared profiles."""
        settings = self.settings
        trace = None if settings.trace is None else read_trace(settings.trace, train)
        shared_profile = shared_profiles_of_all(self.choices, settings.seed, train.profiles, train.n_items)
        own = self.choices.where(policy.triples or 0 for policy in self.choices.kinds)
        return recipe_for(
            settings, train.profiles.sizes, train.n_items, coins(self.choices), trace, shared_profile, own
        )

    def paper_costs(self) -> dict[str, float]:
        """The papers' communication cost and freshness of an epoch."""
        data, recipe = self.training, self.recipe(self.training)
        triples, pi = (float(np.mean(of_all[recipe.participants])) for of_all in (recipe.triples, recipe.pi))
        # The papers' CCE rounds neither T = X+/|U| nor X+/|U|. Rounds per epoch are integers, as simulated.
        triples = len(data) / data.n_users if self.settings.triples == "mean" else triples
        return {
            "cce": communication_cost(len(data), data.n_items, triples, pi),
            "rounds_per_epoch": recipe.rounds_per_epoch,
            "normalised_freshness": recipe.rounds_per_epoch / len(data),
        }

    def item_updates(self) -> LongVector:
        """Number of updates of the run that contain each item."""
        data = self.training
        return tallied(self.recipe(data), data.profiles, data.n_items, self.report["rounds"]).updates

    def communication(self) -> dict[str, Any]:
        """Communication cost of the run: rows and bytes per update, beside the papers' formulas."""
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
        self.choices = choices_from_arrays(private, self.training.n_users, self.settings.policy(0.5))
        self.home_vectors = private.get("home_vectors") if self.choices.at_home.any() else None
        if self.choices.at_home.any() and (
            self.home_vectors is None
            or self.home_vectors.dtype != np.float32
            or self.home_vectors.shape != self.user_vectors.shape
        ):
            raise ModelError("The model's folder lacks the folded-in vectors, or has them for other users.")


class FedeRank(FPL):
    """FedeRank (Anelli et al., 2021) as its Eq. 1-5 are printed, with T = `triples`; see `FedeRankSettings`."""

    name = "federank"
    settings_type = FedeRankSettings
    settings: FedeRankSettings

    @made_from(FedeRankSettings)
    def __init__(self) -> None: ...


# The differential-privacy guarantee of a run, stated only for noise that covers everything an adversary sees.


_SEES = {
    "all-rows": "each client's updates, linkable over rounds",
    "sums": "sums over all clients of a round, and nothing else",
}


def privacy_figure(settings: FPLSettings, recipe: Recipe, rounds_of_each: LongVector) -> dict[str, Any]:
    """Epsilon of the user with the most rounds and of the median user, or the reason why there is none."""
    about: dict[str, Any] = {"clip": settings.clip, "noise": settings.noise, "noise_on": settings.noise_on}
    if not settings.noise:
        return about | {"epsilon": None, "reason": "Updates are clipped, but have no noise."}
    if settings.noise_on == "sums" and (recipe.online < 1 or recipe.dropout > 0 or len(recipe.trace)):
        reason = "If clients are offline or drop out, a sum has less noise than planned."
        return about | {"epsilon": None, "reason": reason}
    taking_part = rounds_of_each[rounds_of_each > 0]
    most, median = int(taking_part.max(initial=0)), int(np.median(taking_part)) if len(taking_part) else 0
    return about | {
        "epsilon": epsilon_of(settings.noise, most, settings.delta),
        "epsilon_median": epsilon_of(settings.noise, median, settings.delta),
        "delta": settings.delta,
        "rounds": most,
        "against": _SEES[settings.noise_on],
    }


# BPR-MF: the centralised baseline of FPL.


@dataclass(frozen=True, kw_only=True)
class BPRSettings(PairwiseSettings, Settings):
    """Settings of centralised pairwise learning (BPR)."""

    user_draw: Literal["activity", "uniform"] = "activity"
    """Draw users in proportion to their number of interactions, or uniformly."""
    epochs: int = 20
    """Passes over the data: an epoch has as many steps as there are training interactions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.as_fpl()

    def as_fpl(self) -> FPLSettings:
        """The federation with the same steps: one client per round, one pair, everything sent."""
        return FPLSettings(**vars(self), pi=1.0, clients_per_round=1, triples=1)


class BPR(PairwiseFactors):
    """Bayesian personalised ranking with matrix factorisation (Rendle et al., 2009)."""

    name = "bpr"
    settings_type = BPRSettings
    settings: BPRSettings

    @made_from(BPRSettings)
    def __init__(self) -> None: ...

    def pairs(self) -> FPLSettings:
        """The settings of the federation with the same steps."""
        return self.settings.as_fpl()

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        recipe = recipe_for(self.pairs(), train.profiles.sizes, train.n_items, np.ones(train.n_users))
        self._run(recipe, train, training_options)
