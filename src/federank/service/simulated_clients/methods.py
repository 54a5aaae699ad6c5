"""Simulated clients by method, the models that they have, and what happened in a rehearsal."""

from __future__ import annotations

import ssl
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.data.interactions import Interactions, Profiles
from federank.data.splits import Split
from federank.errors import BadAnswer, DataError, SettingError
from federank.federation import wire
from federank.federation.client import Model, Rows, Terms, can_afford, cost_of, split
from federank.federation.method import HOME, NO_RATINGS, Client, ClientResult, Scale, kernels_of
from federank.federation.rng import DROPOUT, happens, words, words_wrap_around
from federank.federation.secure import length_of, secure_message, simulated_chances
from federank.privacy.policy import Policy, default_basis
from federank.privacy.population import Choices, all_shared_items, shared_profiles_of_all
from federank.secagg.round_config import Offer
from federank.service.client.federation import FederationInfo, merged
from federank.service.client.methods import ClientMethod


class SimulatedClients:
    """The private side of the clients of any method on the interface, with the draws of a simulation."""

    def __init__(
        self, info: FederationInfo, ids: list[str], data: Interactions, seed: int, chosen: dict[str, Any]
    ) -> None:
        self.method, self.seed, self._secure = info.settings, seed, info.is_summed
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        self._ratings = NO_RATINGS if self.method.scale is None else ratings_in_catalogue(data, ids, self.method.scale)
        values: dict[str, Any] = {"sharing": self.method.sharing_policies[0], "pi": 1.0}
        values |= {name: getattr(self.method, name) for name in self.method.suggestions}
        if chosen.get("filling") == "none":
            values["rho"] = 0.0
        values |= chosen
        values.setdefault("basis", default_basis(values["sharing"]))
        self._policy: Policy = info.rules.sharing_policy(Policy(**values))
        self.method = self.method.chosen(self._policy, 1.0)
        choices = Choices.alike(self._policy, np.full(data.n_users, self._policy.pi))
        kernels = kernels_of(self.method)
        self.kernels = None if kernels is None else kernels(self.method, seed, self.profiles, choices)
        shared = shared_profiles_of_all(choices, seed, self.profiles, info.n_items)
        self._shared = all_shared_items(shared, self.profiles)
        sizes = self._shared.sizes
        most = info.n_items - self.method.needs_unseen_items
        self.participants: IntVector = np.flatnonzero((sizes > 0) & (sizes <= most)).astype(np.int32)
        if not len(self.participants):
            raise SettingError("No user of this data can take part: nothing is shared, or everything is.")
        self._states: dict[int, Any] = {}
        self._sent: dict[int, int] = {}
        self._spent: dict[int, float] = {}  # what their uploads have cost, as a square of mu
        self._known: tuple[int, Any] = -1, None  # the newest version, and what clients have of it

    def take_over(self, before: SimulatedClients) -> None:
        """Every client keeps what was learnt so far; uploads count again from 0."""
        self._states = before._states
        if self.kernels is not None and before.kernels is not None:
            for name, table in before.kernels.states.items():
                self.kernels.states[name][:] = table

    def may_take_part(self, user: int) -> bool:
        """Whether a client has an upload left."""
        allowed = ClientMethod(self.method, self._secure).messages(self._policy)
        return allowed is None or self._sent.get(user, 0) < allowed

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One client's part of a round: the bytes that it sends."""
        update = self._train(user, round_number, self._broadcast(model), None)
        return wire.encode(self.method.bounded(update, self.method.clip) if self.method.clip else update)

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """The same under secure aggregation: split; nothing where its guarantee is used up."""
        spent, broadcast, offer = self._spent.get(user, 0.0), self._broadcast(model), terms.offer
        if not can_afford(terms.config, offer, spent):
            return None
        update = self._train(user, offer.round, broadcast, offer.stage)
        method = self.method.covering(broadcast, offer.stage)
        chances = simulated_chances(self.seed, user, offer.round, length_of(method, offer.stage))
        padded = np.zeros(offer.length, dtype=np.int32)
        padded[: len(chances)] = secure_message(method, offer.stage, update, chances)
        self._spent[user] = spent + cost_of(offer.noise)
        return split(terms, padded)

    def release(self, user: int, noise: int) -> None:
        """Give back a client's last upload, which is in no sum."""
        self._sent[user] -= 1
        self._spent[user] = self._spent.get(user, 0.0) - cost_of(noise)

    def vectors(self) -> FloatMatrix:
        """Everyone's vector of the rounds where compiled clients have one; else scores come from folding in."""
        nothing = np.zeros((len(self.profiles.sizes), 0), dtype=np.float32)
        return nothing if self.kernels is None else self.kernels.states["vector"].copy()

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """The scores of all users: by what they have learnt in rounds or, where that does not follow full histories,
        aggregated in at home.
        """
        broadcast = self._broadcast(model)
        if self.kernels is not None:
            self.kernels.states["vector"][:] = vectors
            factors = self.kernels.factors(broadcast)
        else:
            factors = np.stack([self._factors(user, broadcast) for user in range(len(self.profiles.sizes))])
        return np.asarray(self.method.scores(broadcast, factors), dtype=np.float32)

    def errors(self, model: Model, split: Split, ids: list[str]) -> dict[str, float]:
        """MAE and RMSE of held-out ratings, as clients predict them: where they cannot, by the user's own mean."""
        data, scale, broadcast = split.test, self.method.scale, self._broadcast(model)
        assert data.ratings is not None, "a split of rated data is rated"
        assert scale is not None, "asked of federations of ratings alone"
        number_of = {item: number for number, item in enumerate(ids)}
        items = np.array([number_of.get(str(item), -1) for item in data.item_ids.tolist()])[data.items]
        rows_of = dict(
            zip(data.user_ids.tolist(), np.split(np.arange(len(data)), data.profiles.starts[1:-1]), strict=True)
        )
        errors = []
        for user, name in enumerate(split.train.user_ids.tolist()):
            rows = rows_of.get(name, np.zeros(0, np.int64))
            rows, history = rows[items[rows] >= 0], self.client(user, HOME)
            if not len(rows) or not len(history.items):
                continue
            predicted = self.method.scores(broadcast, self._factors(user, broadcast)[None])[0][items[rows]]
            predicted = np.where(np.isfinite(predicted), predicted, history.ratings.mean())
            errors.append(np.clip(predicted, scale.lowest, scale.highest) - data.ratings[rows])
        if not errors:
            return {}
        off = np.concatenate(errors)
        return {"mae": round(float(np.abs(off).mean()), 6), "rmse": round(float(np.sqrt(np.square(off).mean())), 6)}

    def _factors(self, user: int, broadcast: Any) -> wire.Array:
        return np.asarray(self.method.fold_in(self.client(user, HOME), broadcast))

    def client(self, user: int, round_number: int, shared: IntVector | None = None) -> Client:
        """One client, with its full history unless it takes part with less."""
        here = slice(self.profiles.starts[user], self.profiles.starts[user + 1])
        items = self.profiles.items[here] if shared is None else shared
        ratings = self._ratings[here][np.isin(self.profiles.items[here], items)] if len(self._ratings) else NO_RATINGS
        return Client(self.seed, user, round_number, items, ratings)

    def _train(self, user: int, round_number: int, broadcast: Any, stage: int | None) -> Any:
        """One client's update; its state moves."""
        sent = self._sent.get(user, 0)
        self._sent[user] = sent + 1
        if self.kernels is not None:
            return self.kernels.update(user, round_number, broadcast)
        client = self.client(user, round_number, self._shared.of(user))
        client = replace(client, state=self._states.get(user), sent=sent, stage=stage)
        result: ClientResult = self.method.client_update(client, broadcast)
        if self.method.records.client is not None:
            self._states[user] = wire.checked(result.state, self.method.records.client, self.method)
        return wire.checked(result.update, self.method.records.update, self.method)

    def _broadcast(self, model: Model) -> Any:
        if self._known[0] != model.version:
            self._known = model.version, self.method.records.sent(**model.tables, **model.overall)
        return self._known[1]


def ratings_in_catalogue(data: Interactions, ids: list[str], scale: Scale) -> FloatVector:
    """All ratings, in the order of `in_catalogue`."""
    if data.ratings is None:
        raise DataError(f"{data.name} has no ratings, and this federation is of ratings; choose data with some.")
    if why := next((why for value in np.unique(data.ratings).tolist() if (why := scale.why_not(value))), None):
        raise DataError(f"{data.name} has ratings that are none of this federation: {why}.")
    number_of = {item: number for number, item in enumerate(ids)}
    numbers = np.array([number_of.get(str(item), -1) for item in data.item_ids.tolist()], dtype=np.int32)[data.items]
    order = np.lexsort((numbers, data.users))
    ratings: FloatVector = data.ratings[order[numbers[order] >= 0]]
    return ratings


# What a rehearsal does, and what its clients have sent.


ATTEMPTS = 6


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a fleet goes about it."""

    address: str
    trusted: ssl.SSLContext | None = None
    last_version: int | None = None
    """End when the server has published this version; no client takes part in a round beyond it."""
    seconds: float | None = None
    """End after this long."""
    vanish: float = 0.0
    """Share of clients that vanish in a round before they reply."""
    rate: float | None = None
    """Ask for work at most this many times a second, all clients together."""
    attempts: int = ATTEMPTS
    """How often a request is tried while the server is away or busy: 6 times are twelve seconds."""


class Era(NamedTuple):
    """What goes together for as long as a season lasts."""

    info: FederationInfo
    clients: SimulatedClients
    models: Models


class Sent(NamedTuple):
    """An upload whose round has not ended."""

    ticket: str
    round_number: int  # that has taken it
    offer: Offer | None


class Charge(NamedTuple):
    """An upload that is charged to a client."""

    season: int
    noise: int  # of one server, under secure aggregation


# The models that simulated clients have, and what happened in a rehearsal.
#
# Every client downloads what it is sent; in memory, clients that have the same version of the model share it.


class Models:
    """The versions of the model that clients of this process have, each kept once."""

    MOST = 64

    def __init__(self, info: FederationInfo) -> None:
        self.info = info
        self._kept: dict[int, Model] = {}
        self._seen: set[tuple[int | None, int]] = set()

    def known(self, have: Model | None, version: int) -> Model | None:
        """The model that these very rows make, if another client has received and checked them before."""
        return self._kept.get(version) if (have and have.version, version) in self._seen else None

    def receive(self, have: Model | None, rows: Rows) -> Model:
        """Take in rows; where other clients have the same version, it must be the very same model."""
        model = merged(rows, have, self.info.n_items)
        twin = self._kept.setdefault(model.version, model)
        for one, other in ((twin.tables, model.tables), (twin.overall, model.overall)):
            if one.keys() != other.keys() or not all(np.array_equal(one[name], other[name]) for name in one):
                raise BadAnswer(f"The server gave two clients different models as version {model.version}.")
        self._seen.add((have and have.version, model.version))
        while len(self._kept) > self.MOST:
            self._kept.pop(min(self._kept))
        return twin


# What happened in a rehearsal, counted: interactions, bytes, how long requests took, and what came to nothing.


@dataclass
class Tally:
    """What happened, counted."""

    seconds: float = 0.0
    interactions: int = 0
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0
    took: dict[str, list[float]] = field(default_factory=lambda: {"task": [], "upload": [], "interaction": []})

    def merge(self, other: Tally) -> None:
        """Add what another process has counted at the same time."""
        self.seconds, self.rounds = max(self.seconds, other.seconds), max(self.rounds, other.rounds)
        self.interactions += other.interactions
        self.counts += other.counts
        self.bytes_up += other.bytes_up
        self.bytes_down += other.bytes_down
        for name, took in other.took.items():
            self.took[name] += took

    def report(self) -> dict[str, Any]:
        """The numbers that a person or a program reads."""
        each = max(1, self.interactions)
        return {
            "interactions": self.interactions,
            "rounds": self.rounds,
            "seconds": round(self.seconds, 2),
            "interactions_per_s": round(self.interactions / max(self.seconds, 1e-9), 1),
            "bytes_per_interaction": round((self.bytes_up + self.bytes_down) / each),
            "bytes_up_per_interaction": round(self.bytes_up / each),
            "bytes_down_per_interaction": round(self.bytes_down / each),
            **{
                f"{name}_ms": {
                    f"p{level}": round(1000 * float(np.percentile(took, level)), 1) for level in (50, 95, 99)
                }
                for name, took in self.took.items()
                if took
            },
            "not_counted": dict(self.counts),
        }


def vanishes(seed: int, user: int, round_number: int, share: float) -> bool:
    """Whether a client is gone before it has answered, by the draw that a simulation's `dropout` makes."""
    if share <= 0:
        return False
    with words_wrap_around():
        word, _, _, _ = words(seed, user, DROPOUT, round_number, 0)
    return bool(happens(word, share))


def in_catalogue(data: Interactions, ids: list[str]) -> tuple[Profiles, int]:
    """All histories in the numbers of the federation's catalogue, and how many items it does not have."""
    own = [str(item) for item in data.item_ids.tolist()]
    if own == ids:
        return data.profiles, 0
    number_of = {item: number for number, item in enumerate(ids)}
    numbers = np.array([number_of.get(item, -1) for item in own], dtype=np.int32)
    known = numbers[data.items] >= 0
    if not known.any():
        raise DataError(f"None of the items of {data.name} is in the federation's catalogue; is it the same data?")
    users, items = data.users[known], numbers[data.items[known]]
    order = np.lexsort((items, users))
    starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=data.n_users)))).astype(np.int64)
    return Profiles(starts, items[order]), int((numbers < 0).sum())
