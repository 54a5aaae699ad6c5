"""The recommender that simulates a method of the interface (federation/method.py).

    model = fr.FedMF(factors=16).fit(split.train, rounds=50, pi=0.5)      the method, then the simulation
    model = fr.fit("fedmf", split, factors=16, rounds=50, pi=0.5)         the same by name

Clients upload what their owner's policy allows. Users who withhold items get recommendations from factors that
are learnt locally from the full history and never sent.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.checks import setting
from federank.data.interactions import Interactions, Profiles
from federank.errors import BadMessage, ModelError, SettingError
from federank.federation import wire
from federank.federation.method import AUTO, HOME, NO_ITEMS, NO_RATINGS, Client, DataSummary, FederatedMethod
from federank.federation.schedule import Schedule
from federank.methods.recommendations import match_ids
from federank.methods.recommender import Arrays, LearnsInRounds
from federank.methods.sharing import (
    ChoosingUsers,
    choices_as_arrays,
    choices_from_arrays,
    messages_allowed,
    refuse_coins,
)
from federank.privacy.policy import SharedProfileSettings
from federank.privacy.population import SharedProfiles, shared_profiles_of_all
from federank.simulation.engine import Simulation, state_of
from federank.simulation.options import TrainingOptions

_STATE = "state."
_NOTHING = Profiles(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))


@dataclass(frozen=True, kw_only=True)
class FederatedSettings(SharedProfileSettings):
    """Settings of a simulation of a federated method: rounds, participation, and what users share."""

    rounds: int = setting(20, 1)
    """Number of rounds. Every client that is online takes part in each."""
    online: float = setting(1.0, 0, 1)
    """Probability that a client is online when a round begins."""
    dropout: float = setting(0.0, 0, 1)
    """Probability that a client takes part but its upload never arrives."""
    leak: bool = setting(False, paper=True)
    """Never draw held-out items as negatives, as several published programs do. The test then leaks into training: use
    it only to study that leak."""


class FederatedModel(ChoosingUsers, LearnsInRounds):
    """A federated method as a recommender: its settings, its simulation and its model."""

    can_use = ("engine", "cluster", "shards", "checkpoint", "resume", "progress", "after_epoch")
    learns_from = "interactions"
    method_type: ClassVar[type[FederatedMethod]]
    settings: Any
    _held_out: Interactions | None = None
    _never_drawn: Profiles | None = None

    def with_held_out(self, held_out: Interactions) -> Self:
        """Give the model the held-out part, which the setting `leak` needs."""
        self._held_out = held_out
        return self

    def _leaked(self, data: Interactions) -> Profiles | None:
        """Held-out items of each user, numbered as in the training part; None without `leak`."""
        if not self.settings.leak:
            return None
        if self._held_out is None:
            raise SettingError(
                "leak needs the held-out part: call model.with_held_out(split.test) first, or run a study."
            )
        test = self._held_out
        users = match_ids(test.user_ids, data.user_ids)[test.users]
        items = match_ids(test.item_ids, data.item_ids)[test.items]
        known = (users >= 0) & (items >= 0)
        table = csr_array((np.ones(known.sum(), np.int8), (users[known], items[known])), (data.n_users, data.n_items))
        table.sort_indices()
        return Profiles(table.indptr.astype(np.int64), table.indices.astype(np.int32))

    def resolved(self, data: Interactions) -> FederatedMethod:
        """The method with every setting that depends on the data resolved."""
        kind = self.method_type
        own = {name: getattr(self.settings, name) for name in _names(kind) if name != "n_items"}
        return kind(**own).resolve(DataSummary.of(data))

    def shared_profiles(self, data: Interactions) -> SharedProfiles:
        """The shared profiles of all users."""
        return shared_profiles_of_all(self.choices, self.settings.seed, data.profiles, data.n_items)

    def simulation(self) -> Simulation:
        """The simulation before its first round, for audits that repeat it."""
        return self._simulation(self._fitted())

    def _simulation(self, data: Interactions) -> Simulation:
        refuse_coins(self.choices)
        method, shared, settings = self.resolved(data), self.shared_profiles(data), self.settings
        sizes = Profiles(shared.starts, shared.items).sizes if len(shared.starts) else data.profiles.sizes
        able = np.flatnonzero((sizes > 0) & (sizes < data.n_items)).astype(np.int32)
        if not len(able):
            raise SettingError("No client can take part: every user shares nothing or has the full catalogue.")
        uploads = messages_allowed(self.choices)
        if method.uploads_per_client:
            uploads = np.minimum(uploads, method.uploads_per_client).astype(np.int32)
        schedule = Schedule(method.seed, settings.rounds, settings.online, settings.dropout, able, uploads)
        simulation = Simulation(method, schedule, shared, data)
        simulation.held_out = self._leaked(data)
        return simulation

    def communication(self) -> dict[str, Any]:
        """Communication cost of the run, counted per message."""
        self._fitted()
        counted: dict[str, Any] = self.report["sent"]
        return counted

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        chosen = self._ask_all(self.settings, train)
        simulation = self._simulation(train)
        self._never_drawn = simulation.held_out
        self._play(simulation, self.settings.rounds, training_options, chosen)
        self.report |= {
            "messages": int(simulation.sent.max(initial=0)),
            "skipped_users": int(train.n_users - len(simulation.schedule.participants)),
            "sent": simulation.communication(),
        }

    def _follow(self, simulation: Simulation, _threads: int) -> None:
        """Copy the current state of server and clients."""
        self._take(simulation.method, simulation.state)
        self.client_states = {name: table.copy() for name, table in simulation.client_states.items()}
        self.trained = simulation.trained.copy()

    def _take(self, method: FederatedMethod, state: Any) -> None:
        self.method, self.state = method, state
        self.broadcast = wire.read_only(wire.checked(method.broadcast(state), method.records.sent, method))
        data = self.training
        shared = self.shared_profiles(data)
        # A client's state follows its full history only if it withholds nothing and has no decoys.
        self._complete = np.ones(data.n_users, dtype=np.bool_)
        if len(shared.starts):
            shared_profiles = Profiles(shared.starts, shared.items)
            self._complete = np.array(
                [np.array_equal(shared_profiles.of(user), data.profiles.of(user)) for user in range(data.n_users)]
            )

    def factors_of(self, user: int) -> wire.Array:
        """A user's factors: the trained ones if they follow the full history, else a local fold-in."""
        data = self.training
        here = slice(data.profiles.starts[user], data.profiles.starts[user + 1])
        ratings = NO_RATINGS if data.ratings is None else data.ratings[here]
        known = self.trained[user] and self._complete[user]
        state = state_of(self.method, self.client_states, user) if known else None
        held_out = NO_ITEMS if self._never_drawn is None else self._never_drawn.of(user)
        client = Client(self.method.seed, user, HOME, data.profiles.of(user), ratings, state, held_out=held_out)
        return np.asarray(self.method.fold_in(client, self.method.broadcast_for(user, self.broadcast, self.state)))

    def enrolled(self, profile: IntVector) -> FloatVector:
        """Fold in a new user with this history, locally; nothing is sent."""
        client = Client(self.method.seed, self.training.n_users, HOME, profile)
        return np.asarray(self.method.fold_in(client, self.broadcast))

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """Scores of all items for a user with these factors."""
        row: FloatVector = self._scores(vector[None])[0]
        return row

    def _score_users(self, users: IntVector) -> FloatMatrix:
        if not len(users):
            return np.zeros((0, self.training.n_items), dtype=np.float32)
        return self._scores(np.stack([self.factors_of(user) for user in users.tolist()]))

    def _scores(self, factors: wire.Array) -> FloatMatrix:
        scores: FloatMatrix = np.asarray(self.method.scores(self.broadcast, factors), dtype=np.float32)
        if scores.shape != (len(factors), self.training.n_items) or np.isnan(scores).any():
            raise ModelError(
                f"The scores of {self.name} have shape {scores.shape} or are not numbers; one number for each of the "
                f"{self.training.n_items:,} items is needed."
            )
        return scores

    @property
    def item_vectors(self) -> FloatMatrix | None:
        """Item vectors, if the method has any."""
        return getattr(self.broadcast, "vectors", None)

    def _shared_arrays(self) -> Arrays:
        return wire.values(self.state)

    def _private_arrays(self) -> Arrays:
        states = {_STATE + name: table for name, table in self.client_states.items()}
        leaked = {f"held_out.{name}": part for name, part in (self._never_drawn or _NOTHING)._asdict().items()}
        held_out = leaked if self.settings.leak else {}
        return states | held_out | {"trained": self.trained} | choices_as_arrays(self.choices)

    def restore_shared(self, shared: Arrays) -> None:
        """Restore the server's state alone: a federation's model, before it knows any user."""
        self._restore(shared, {"pi": np.zeros(0), "trained": np.zeros(0, dtype=np.int8)})

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        n_users = self.training.n_users
        self.choices = choices_from_arrays(private, n_users, self.settings.policy(0.5))
        self.client_states = {n.removeprefix(_STATE): t for n, t in private.items() if n.startswith(_STATE)}
        self.trained = private.get("trained", np.zeros(0, dtype=np.int8))
        if self.settings.leak:
            leaked = [private.get(f"held_out.{name}", np.zeros(0)) for name in Profiles._fields]
            self._never_drawn = Profiles(leaked[0].astype(np.int64), leaked[1].astype(np.int32))
            if len(leaked[0]) != n_users + 1 or leaked[0][-1] != len(leaked[1]):
                raise ModelError("The model's folder has held-out items of other users.")
        if any(len(table) != n_users for table in (self.trained, *self.client_states.values())):
            raise ModelError("The model's folder has client states of other users.")
        method = self.resolved(self.training)
        try:
            self._take(method, wire.from_arrays(method.records.state, method, shared))
        except BadMessage as reason:
            raise ModelError(f"The model's folder does not hold what {self.name} has learnt: {reason}") from reason


@cache
def model_class(kind: type[FederatedMethod]) -> type[FederatedModel]:
    """The recommender class of a method; its settings are the method's and the simulation's."""
    # Class variables are not fields, so these are not settings: hosts fill them in.
    hidden = {"__annotations__": {"n_items": ClassVar[Any]}, "n_items": AUTO, "__doc__": kind.__doc__}

    def check(self: Any) -> None:
        kind.__post_init__(self)
        FederatedSettings.__post_init__(self)

    settings: Any = type(f"{kind.__name__}Settings", (kind, FederatedSettings), hidden | {"__post_init__": check})
    settings_type: Any = dataclass(frozen=True, kw_only=True)(settings)
    content = {"name": kind.name, "method_type": kind, "settings_type": settings_type, "__doc__": kind.__doc__}
    content["__signature__"] = inspect.signature(settings_type)
    content |= {"searched": kind.searched, "audit": kind.audit, "__module__": kind.__module__}
    return type(kind.__name__, (FederatedModel,), content)


def fit(
    method: FederatedMethod, train: Interactions, *, training_options: TrainingOptions | None = None, **simulation: Any
) -> FederatedModel:
    """Simulate a method. `simulation` holds `policies` and the fields of `FederatedSettings`."""
    policies = {"policies": simulation.pop("policies")} if _is_choice(simulation.get("policies")) else {}
    own = {name: value for name, value in asdict(method).items() if name != "n_items"}
    kind: Any = type(method)
    model = model_class(kind)(**own, **simulation)
    return model.fit(train, training_options=training_options, **policies)


def _is_choice(policies: Any) -> bool:
    """Whether policies are an argument of `fit` (users' choices) rather than a setting (a file)."""
    return policies is not None and not isinstance(policies, str)


def _names(kind: type[FederatedMethod]) -> list[str]:
    return [part.name for part in fields(kind)]
