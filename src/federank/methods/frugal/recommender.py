"""What Frugal and FCF share: rounds of few messages, item vectors, and everyone's own vector solved at home."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from federank import checks
from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.data.interactions import Interactions, Profiles
from federank.errors import BadMessage, ModelError
from federank.federation import wire
from federank.federation.method import FederatedMethod
from federank.methods.frugal import method
from federank.methods.frugal.communication import count_communication, fcf_cost, fcf_of_paper
from federank.methods.frugal.item_weights import ItemWeights
from federank.methods.frugal.private import PrivateFrugal
from federank.methods.frugal.private_plan import PrivatePlan, guarantee_of
from federank.methods.frugal.protocol import covered_items
from federank.methods.frugal.records import FrugalModel, ServerState, without_ridge
from federank.methods.frugal.server_update import ridge_of
from federank.methods.frugal.settings import FrugalSettings
from federank.methods.frugal.simulation import FrugalFederation, vectors_at_home
from federank.methods.recommender import Arrays, LearnsInRounds, made_from
from federank.methods.sharing import (
    ChoosingUsers,
    choices_as_arrays,
    choices_from_arrays,
    messages_allowed,
    read_trace,
    refuse_coins,
)
from federank.privacy.policy import SharedProfileSettings
from federank.privacy.population import AS_HISTORIES_ARE, Choices, SharedProfiles, shared_profiles_of_all
from federank.simulation.complexity import cost_figures
from federank.simulation.options import TrainingOptions


class FewMessages(ChoosingUsers, LearnsInRounds):
    """Scores x_u . y_i, learnt from squares by the rounds of a federation."""

    audit = "federank.methods.frugal.audit"

    learns_from = "interactions"
    tables: ClassVar = {"item_vectors": 2, "item_weights": 1, "user_vectors": 2}
    item_vectors: FloatMatrix
    """As published: what clients have, and recommend from."""
    regulariser: float
    """lambda: regularisation of a user's own vector."""
    item_weights: FloatVector
    """d: how much each item counts when a user's own vector is solved for."""
    user_vectors: FloatMatrix
    ridge: ItemWeights | None = None
    """Item-item weights, where the settings ask for them."""

    def implicit_settings(self) -> FrugalSettings:
        """The method's settings as those of few messages."""
        raise NotImplementedError

    def federation(self, train: Interactions) -> FrugalFederation:
        """The federation of this population before its first round, with what everyone takes part with."""
        settings = self.implicit_settings()
        return FrugalFederation(
            settings,
            train.profiles,
            train.n_items,
            uploads=messages_allowed(self.choices),
            shared_profiles=_shared_profiles(self.choices, settings.seed, train),
            trace=None if settings.trace is None else read_trace(settings.trace, train),
        )

    def communication(self) -> dict[str, Any]:
        """What the run has sent, counted message by message."""
        data = self._fitted()
        supported = len(covered_items(self.implicit_settings().min_support, self.item_weights))
        counted = count_communication(self.federation(data), len(data), self.report["rounds"], supported)
        if self.ridge is not None:  # downloaded once, with the last model
            for way in ("down_dense", "down_changed"):
                counted[way]["bytes"] += data.n_users * wire.size(self.ridge)
        return counted

    @property
    def zero_is_nothing(self) -> bool:
        """Items without support have no vector, and are recommended to no one."""
        return self.implicit_settings().min_support > 1

    def enrolled(self, profile: IntVector) -> FloatVector:
        """The vector of someone with this history, in closed form; nothing is sent.

        With item-item weights it ends with the history itself, which they are applied to.
        """
        starts = np.array([0, len(profile)], dtype=np.int64)
        model = FrugalModel(self.item_vectors, self.item_weights, np.array([self.regulariser]))
        vectors = vectors_at_home(self._alone(), model, Profiles(starts, profile))
        vector: FloatVector = vectors[0]
        if self.ridge is None:
            return vector
        history = np.zeros(len(self.item_vectors), dtype=np.float32)
        history[profile] = 1
        return np.concatenate((vector, history))

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for someone with this vector."""
        factors = self.item_vectors.shape[1]
        scores: FloatVector = self.item_vectors @ vector[:factors]
        return scores if self.ridge is None else self.ridge.scores(vector[factors:][None], scores[None])[0]

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        chosen = self._ask_all(self.implicit_settings(), train)
        federation = self.federation(train)
        epochs = federation.schedule.rounds // federation.schedule.cohorts
        self._play(federation, epochs, training_options, chosen)
        method, most_sent = federation.method, int(federation.sent.max(initial=0))
        if method.item_weights == "ridge":
            self.ridge = ridge_of(method, federation.state)
        self.report |= {
            "messages": most_sent,
            "regulariser": self.regulariser,
            "skipped_users": int(train.n_users - len(federation.schedule.participants)),
            "epochs": epochs,
            "supported_items": len(covered_items(method.min_support, self.item_weights)),
            "items": method.n_items,
        }
        if isinstance(method, PrivateFrugal):
            self.report |= guarantee(method.plan, self.implicit_settings(), most_sent)

    def _follow(self, federation: FrugalFederation, threads: int) -> None:
        model = federation.model
        self.item_vectors, self.item_weights = model.vectors, model.weights
        self.regulariser = float(model.regulariser[0])
        self.user_vectors = vectors_at_home(federation.method, model, federation.profiles, threads)

    def _alone(self) -> method.Frugal:
        """The method of one user at home."""
        settings, (n_items, factors) = self.implicit_settings(), self.item_vectors.shape
        alike = method.Frugal(n_items=n_items, factors=factors, min_support=1)
        return replace(alike, alpha=settings.alpha, unobserved_weight=settings.unobserved_weight)

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self.user_vectors[users] @ self.item_vectors.T
        return scores if self.ridge is None else self.ridge.scores(self.training.matrix()[users], scores)

    def _shared_arrays(self) -> Arrays:
        model = super()._shared_arrays() | {"regulariser": np.array([self.regulariser])}
        return model | (
            {} if self.ridge is None else {f"ridge_{name}": part for name, part in wire.values(self.ridge).items()}
        )

    def _private_arrays(self) -> Arrays:
        return super()._private_arrays() | choices_as_arrays(self.choices)

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        super()._restore(shared, private)
        stored = shared.get("regulariser")
        if stored is None or stored.shape != (1,) or not np.isfinite(stored).all():
            raise ModelError("The model's folder lacks its regulariser, which a user's own vector is solved with.")
        self.regulariser = float(stored[0])
        if self.implicit_settings().item_weights == "ridge":
            self.ridge = _stored_weights(shared, self.training.n_items)
        self.choices = choices_from_arrays(private, self.training.n_users, self.implicit_settings().policy(0.5))

    def _factors_in(self, shared: Arrays) -> int:
        return self.implicit_settings().factors or _columns(shared.get("item_vectors"))


def _stored_weights(shared: Arrays, n_items: int) -> ItemWeights:
    """The item-item weights among a model's arrays."""
    parts = {name.removeprefix("ridge_"): part for name, part in shared.items() if name.startswith("ridge_")}
    try:
        return ItemWeights.read(parts, n_items)
    except BadMessage as reason:
        raise ModelError(f"The model's folder has no item-item weights for its catalogue. {reason}") from reason


def _sketch_of(vectors: FloatMatrix, weights: FloatVector, regulariser: float) -> RealMatrix:
    """V diag(sigma), which a trained model knows of all users' items: Y = V diag(sqrt(sigma - lambda)), V'DV = I."""
    exact = vectors.astype(np.float64)
    beyond = np.einsum("ij,ij,i->j", exact, exact, weights.astype(np.float64))  # sigma - lambda
    is_known = beyond > 0
    scale = np.where(is_known, (beyond + regulariser) / np.sqrt(np.where(is_known, beyond, 1.0)), 0.0)
    sketch: RealMatrix = exact * scale
    return sketch


def _columns(table: NDArray[Any] | None) -> int:
    """How long the vectors of a table are; what is no table of vectors is refused by anyone who takes it."""
    return table.shape[1] if table is not None and table.ndim == 2 else 0


def guarantee(plan: PrivatePlan, settings: FrugalSettings, messages: int) -> dict[str, Any]:
    """What may be said of a run's noise, for someone who has sent this many messages."""
    return {
        "epsilon": guarantee_of(plan, messages, settings.delta),
        "delta": settings.delta,
        "sigmas": list(plan.sigmas(messages)),
        "against": "anyone who runs one of the two servers, or sees every sum and every model",
        "adjacency": "a person's messages are replaced by zeros",
    }


def _shared_profiles(choices: Choices, seed: int, train: Interactions) -> SharedProfiles:
    """What everyone takes part with; nothing to compute where that is everyone's full history."""
    refuse_coins(choices)
    complete = all(
        kind.sharing == "fixed-subset" and not kind.never_items and kind.budget is None and not kind.paused
        for kind in choices.kinds
    )
    if complete and np.all(choices.pi >= 1):
        return AS_HISTORIES_ARE
    return shared_profiles_of_all(choices, seed, train.profiles, train.n_items)


# Frugal: a handful of uploads over a lifetime, simulated for a population.


class Frugal(FewMessages):
    """Few uploads per client, and a server that solves from their sums; see `FrugalSettings`."""

    name = "frugal"
    settings_type = FrugalSettings
    settings: FrugalSettings
    searched: ClassVar = {
        "factors": (16, 32, 64, 96, 128),
        "shrinkage": (0.6, 0.8, 0.95, 1.1),
        "activity": (0.0, 0.15, 0.3, 0.5),
        "popularity": (0.0, 0.2, 0.4, 0.5),
    }

    @made_from(FrugalSettings)
    def __init__(self) -> None: ...

    def implicit_settings(self) -> FrugalSettings:
        """The settings, as they are."""
        return self.settings

    @property
    def method(self) -> FederatedMethod:
        """The method on the interface: for a federation that starts from this model."""
        n_items, factors = self.item_vectors.shape
        return method.Frugal(n_items=n_items, factors=factors, min_support=1)

    @property
    def state(self) -> ServerState:
        """The initial state of such a federation: the model, and what its users have uploaded."""
        report = self.report  # an exported model has nobody's history; its report has the counts
        people = int(report.get("people", self.training.n_users))
        counts = report.get("people_with_item")
        if counts is None or len(counts) != len(self.item_vectors):
            counts = np.bincount(self.training.items, minlength=len(self.item_vectors))
        state: ServerState = replace(
            without_ridge(ServerState, self.method),
            vectors=self.item_vectors,
            weights=self.item_weights,
            regulariser=np.array([self.regulariser]),
            sketch=_sketch_of(self.item_vectors, self.item_weights, self.regulariser),
            counts=np.asarray(counts, dtype=np.float64),
            received=np.array([float(people)]),
            before=np.array([people]),
        )
        return state


# FCF: federated collaborative filtering (Ammad-ud-din et al., 2019), as a special case of few messages.


@dataclass(frozen=True, kw_only=True)
class FCFSettings(SharedProfileSettings):
    """Settings of federated collaborative filtering."""

    factors: int = 20
    """Number of latent factors."""
    rounds: int = 50
    """Number of rounds: in each, all clients upload and the server takes one step."""
    alpha: float = 1.0
    """Confidence in observed items is 1 + alpha (Hu et al., 2008)."""
    unobserved_weight: float = checks.setting(1.0, paper=True)
    """Confidence in unobserved items: 1 as published, 0 for the variant in the FPL tables."""
    regulariser: float = 1.0
    """L2 regularisation of all vectors (lambda)."""
    learning_rate: float = 0.1
    """Learning rate of the server (Adam)."""
    beta1: float = checks.setting(0.9, paper=True)
    """Adam: decay of the first moment."""
    beta2: float = checks.setting(0.999, paper=True)
    """Adam: decay of the second moment."""
    initial_scale: float = checks.setting(0.1, paper=True)
    """Standard deviation of the initial item vectors."""
    encoding: Literal["float32", "int8"] = "float32"
    """Encoding of item vectors for clients: float32, or int8 with one scale per row."""
    seed: int = 1
    """Seed of all random numbers: the same seed gives the same model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_int("factors", self.factors, 1, 1024)
        checks.check_int("rounds", self.rounds, 1)
        checks.check_positive("regulariser", self.regulariser)
        self.as_least()

    def as_least(self) -> FrugalSettings:
        """The federation of few messages that takes the same steps: one message of everyone a round, Adam."""
        same = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "rounds"}
        return FrugalSettings(**same, messages=self.rounds, min_support=1, server="adam")


class FCF(FewMessages):
    """Federated collaborative filtering (Ammad-ud-din et al., 2019); see `FCFSettings`."""

    name = "fcf"
    settings_type = FCFSettings
    settings: FCFSettings

    @made_from(FCFSettings)
    def __init__(self) -> None: ...

    def implicit_settings(self) -> FrugalSettings:
        """The settings as those of few messages."""
        return self.settings.as_least()

    def complexity(self) -> dict[str, float]:
        """What a round costs a client and the server, counted, beside the formulas of FedRec's authors for it."""
        data = self._fitted()
        profiles = [data.profiles.of(int(user)) for user in np.flatnonzero(data.profiles.sizes)]
        size, (items, factors) = len(data) / len(profiles), self.item_vectors.shape
        formula = fcf_of_paper(size=size, users=len(profiles), items=items, factors=factors)
        return cost_figures(fcf_cost(self.item_vectors, profiles), formula)
