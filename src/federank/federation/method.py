"""The interface of federated methods: a method is one value, a frozen dataclass.

Its fields are what a federation publishes (canonical JSON, the same on server, client and verifier). Its functions are
the maths. Every host (simulation, server, client, audit) runs any method through them:

    state     = method.initial_state()                     server
    broadcast = method.broadcast(state)                    server to clients
    result    = method.client_update(client, broadcast)    client; only result.update leaves it
    method.add(aggregate, result.update)                   server, or the same numbers under secure aggregation
    state     = method.server_update(state, aggregate)     server; a verifier gets the same bits

All are pure: no clock, no global random numbers, nothing kept between calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, cast

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.checks import check_fields, refuse_unknown
from federank.checks import setting as setting
from federank.errors import BadMessage, SettingError
from federank.federation import wire
from federank.federation.defences import NO_DEFENCES, Defences, Shortened, shortened
from federank.federation.wire import Array, array

if TYPE_CHECKING:
    from federank.data.interactions import Interactions, Profiles
    from federank.federation.server import Guarantee
    from federank.privacy.policy import Policy
    from federank.privacy.population import Choices

AUTO: Any = None
"""A setting that is left open; `resolve` fills it in."""
HOME = 2**31
"""Stands for the round in the random numbers of what a client does at home."""
HOME_ROUNDS = 10
LOW = 0.1
"""New items start where this share of the items is below them."""
_CLOSE = 1e-4
NO_ITEMS: IntVector = np.zeros(0, dtype=np.int32)
MOST_MESSAGES = 1000
"""Most uploads of a client in a season: a guarantee of more would be none."""
NO_RATINGS = np.zeros(0, dtype=np.float32)


class Scale(NamedTuple):
    """What ratings there are: from the lowest to the highest, in steps; a step of 0 is any number between them."""

    lowest: float
    highest: float
    step: float

    def __str__(self) -> str:
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"from {self.lowest:g} to {self.highest:g}{steps}"

    def why_not(self, value: float) -> str | None:
        """Why this is no rating here, in words that follow what was found; None where it is one."""
        if not math.isfinite(value) or not self.lowest <= value <= self.highest:
            return f"ratings go {self}"
        if self.step and abs((value - self.lowest) / self.step - round((value - self.lowest) / self.step)) > _CLOSE:
            integers = self.step == 1 and self.lowest == round(self.lowest)
            return f"ratings go {self}" + ("; there are no half stars here" if integers else "")
        return None


class DataSummary(NamedTuple):
    """What is known of the data when settings are resolved. A server knows the catalogue alone: None is unknown."""

    n_items: int
    n_clients: int | None = None
    n_interactions: int | None = None
    ratings: FloatVector | None = None  # the distinct ones, ascending; None where nothing is rated

    @classmethod
    def of(cls, data: Interactions) -> DataSummary:
        """The summary of data; of a catalogue without histories the catalogue alone."""
        if not len(data):
            return cls(data.n_items)
        return cls(data.n_items, data.n_users, len(data), None if data.ratings is None else np.unique(data.ratings))


@dataclass(frozen=True, eq=False)
class Client:
    """One client in one round. Nothing of it crosses the wire."""

    seed: int  # seed, user and round name the client's random numbers; in the service, seed and user are its secret
    user: int
    round: int
    items: IntVector  # ascending; what the owner's policy lets stand for the history
    ratings: Array = field(default_factory=lambda: NO_RATINGS)  # beside items; empty where nothing is rated
    state: Any = None  # what client_update returned last; None at first, and once the owner has withdrawn items
    sent_negatives: IntVector = field(default_factory=lambda: NO_ITEMS)  # from the ledger: other items it has named
    held_out: IntVector = field(default_factory=lambda: NO_ITEMS)  # ascending; filled in simulations with `leak` alone
    withheld: IntVector = field(default_factory=lambda: NO_ITEMS)  # of items, ascending: trained on, and never sent
    sent: int = 0  # uploads of the season before this one
    stage: int | None = None  # which of a client's uploads a secure round asks for; None in other rounds

    @property
    def not_negative(self) -> IntVector:
        """Items that are never drawn as negatives, ascending: the history and, with `leak`, the held-out items."""
        return self.items if not len(self.held_out) else np.union1d(self.items, self.held_out).astype(np.int32)

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random numbers of this client and round, for methods that draw with NumPy."""
        return np.random.default_rng([self.seed, self.user + 1, self.round + 1])


class ClientResult(NamedTuple):
    """What comes out of a client's part of a round: `update` leaves, the rest stays."""

    update: Any
    state: Any = None  # kept until the client takes part again
    positives: IntVector | None = None  # items disclosed as the user's, for the ledger; None: all of client.items
    negatives: IntVector = NO_ITEMS  # other items that the update names


@dataclass(eq=False, kw_only=True)
class Aggregate:
    """The sum of a round's updates: all that the server's step sees. Hosts fill in the numbers."""

    count: int = 0  # updates in the sum
    enrolled: int = 0  # clients that could have taken part
    noise: float = 0.0  # standard deviation of the noise on each number


# The records of a matrix factorisation whose clients send rows. A method that needs others declares its own.


@dataclass(frozen=True, eq=False)
class ItemVectors:
    """State and broadcast."""

    vectors: Array = array("items", "factors")


@dataclass(frozen=True, eq=False)
class ItemGradients:
    """Update: one row per named item."""

    items: Array = array("rows", dtype="index")
    vectors: Array = array("rows", "factors")


@dataclass(eq=False, kw_only=True)
class ItemSums(Aggregate):
    """Sums of rows, and how many updates had each."""

    vectors: Array = array("items", "factors", dtype="f8")
    counts: Array = array("items", dtype="f8")


@dataclass(frozen=True, eq=False)
class UserVector:
    """Client state."""

    vector: Array = array("factors")


class Records(NamedTuple):
    """The types of a method's records. broadcast None: clients download the state. client None: they keep nothing."""

    state: type[Any] = ItemVectors
    broadcast: type[Any] | None = None
    update: type[Any] = ItemGradients
    aggregate: type[Any] = ItemSums
    client: type[Any] | None = UserVector

    @property
    def sent(self) -> type[Any]:
        """The type of broadcasts."""
        return self.broadcast or self.state


@dataclass(frozen=True, kw_only=True)
class FederatedMethod:
    """What is learnt. Who takes part when, and what owners allow, are arguments of `fit`."""

    name: ClassVar[str]
    records: ClassVar[Records] = Records()
    searched: ClassVar[Mapping[str, Any]] = {}
    """What a search tunes, and the values that it tries."""
    audit: ClassVar[str] = "federank.audit.generic"
    """The module that audits it; the default observes any method."""
    kernels: ClassVar[str] = ""
    """Compiled clients, as `module:class` (see `ClientKernels`); without them hosts call `client_update`."""
    sharing_policies: ClassVar[tuple[str, ...]] = ("fixed-subset", "randomized-response")
    """The sharing policies that its clients can follow. With `all`, clients may train on the full history, follow
    `withheld`, and recommend from the vector that they have trained."""
    owner_choices: ClassVar[tuple[str, ...]] = ()
    """Settings that each client's owner decides (`chosen`), and no federation."""
    suggestions: ClassVar[tuple[str, ...]] = ()
    """Settings that are suggested to clients, and that owners may change: fields of `Policy` of the same names. They
    hide an upload's content, so they mean nothing under secure aggregation."""
    counts_uploads: ClassVar[bool] = False
    """Whether each client's uploads are counted against a quota also where the server reads them."""
    recipe: ClassVar[str] = "gradients"
    """The name of its updates in a config of secure aggregation."""
    quota: ClassVar[str] = "uploads_per_client"
    """The setting that has the number of uploads of a client in a season."""
    filled_in: ClassVar[tuple[str, ...]] = ("n_items", "uploads", "noise")
    """Settings that no operator names: they follow from the data and from what is asked of secure aggregation."""
    needs_unseen_items: ClassVar[bool] = True
    """Whether a user who has the full catalogue cannot take part, even where no server reads an upload."""
    defences: ClassVar[Defences] = NO_DEFENCES
    """What one step of a real server may do to the model, unless its operator says otherwise."""

    n_items: int = setting(AUTO, 2, 10_000_000)
    """Number of items of the catalogue."""
    factors: int = setting(20, 1, 1024)
    """Number of latent factors."""
    seed: int = setting(1, 0, 2**32 - 1)
    """Names the random numbers: the same seed gives the same model."""
    uploads: Literal["plain", "secure"] = setting("plain", expert=True)
    """Whether the server reads each upload, or only sums of them (two-server secure aggregation)."""
    uploads_per_client: int = setting(0, 0, 10_000, expert=True)
    """Uploads in a client's lifetime (0: no limit)."""
    clip: float = setting(0.0, 0, expert=True)
    """L2 bound of one upload (0: none). Secure aggregation needs one."""
    noise: int = setting(0, 0, expert=True)
    """Standard deviation of each server's noise on a secure sum, in units of clip / 4096 (0: none)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.uploads == "secure" and not self.norm_bound:
            raise SettingError(
                "uploads is secure, which needs clip, the L2 bound of an upload; clip is 0. Set it, to 5 for example."
            )
        if self.noise and self.uploads != "secure":
            raise SettingError("noise is added to secure sums alone; choose uploads = secure, or no noise.")

    # A method writes these three.

    def initial_state(self) -> Any:
        """What the server starts with, drawn from `seed`. Compiles nothing."""
        raise NotImplementedError

    def client_update(self, client: Client, broadcast: Any) -> ClientResult:
        """One client's part of a round."""
        raise NotImplementedError

    def server_update(self, state: Any, aggregate: Any) -> Any:
        """The next state. An empty aggregate gives the state back."""
        raise NotImplementedError

    # These have defaults.

    def resolve(self, data: DataSummary) -> Self:
        """The same method with nothing left open. Raises SettingError where something unknown is needed."""
        return replace(self, n_items=data.n_items)

    def broadcast(self, state: Any) -> Any:
        """What clients download."""
        return state

    def broadcast_for(self, user: int, broadcast: Any, state: Any) -> Any:  # noqa: ARG002
        """What one client downloads in a simulation. Default: the same broadcast for all."""
        return broadcast

    @classmethod
    def one_broadcast(cls) -> bool:
        """Whether all clients download the same, which servers and clusters need."""
        return cls.broadcast_for is FederatedMethod.broadcast_for

    def empty(self, stage: int = 0) -> Any:  # noqa: ARG002 (a method with stages has aggregates of several shapes)
        """An empty aggregate for the given upload per client: zeros as declared."""
        return wire.zeros(self.records.aggregate, self)

    def add(self, aggregate: Any, update: Any) -> None:
        """Add an update to an aggregate. Default: rows of the same name; `counts` counts rows that are not zero."""
        rows = [name for name in wire.tables(aggregate) if name != "counts"]
        for name in rows:
            getattr(aggregate, name)[update.items] += getattr(update, name)
        if "counts" in wire.tables(aggregate):
            used = [np.reshape(getattr(update, name), (len(update.items), -1)).any(axis=1) for name in rows]
            aggregate.counts[update.items] += np.any(used, axis=0)

    @property
    def scale(self) -> Scale | None:
        """What ratings there are; None where users have items, and rate none."""
        return None

    def chosen(self, policy: Policy, pi: float) -> Self:  # noqa: ARG002
        """The method as one client runs it, with what its owner has chosen. `pi` is the probability with which an
        item that may leave is sent each time; 1 where the policy decides once for a lifetime."""
        values = {name: getattr(policy, name) for name in self.suggestions}
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    @property
    def norm_bound(self) -> float:
        """The L2 bound of a secure upload."""
        return self.clip

    @property
    def noises(self) -> tuple[int, ...]:
        """Each server's noise on each secure upload of a client, in units of the norm bound / 4096."""
        return (self.noise,) * self.uploads_per_client

    @property
    def popularity_power(self) -> float:
        """Under noise: an item of popularity c weighs c^power in an upload."""
        return 0.0

    def secured(self, guarantee: Guarantee, clients: int) -> Self:  # noqa: ARG002
        """The method under secure aggregation in rounds of this many clients, with nothing left open but `clip`."""
        uploads = self.uploads_per_client or 20
        return replace(self, uploads="secure", uploads_per_client=uploads, noise=guarantee.noise(uploads))

    @classmethod
    def affordable(cls, clients: int, n_items: int, delta: float) -> float | None:  # noqa: ARG003
        """The epsilon of a federation of this size that names none; None: no noise."""
        return None

    @classmethod
    def made(cls, settings: Mapping[str, Any]) -> Self:
        """The method of these settings, as a federation keeps them."""
        return cast("Self", from_configuration(cls, settings))

    @classmethod
    def announced(cls, settings: Mapping[str, Any], n_items: int, *, secure: bool) -> Self:
        """The method as a federation announces its settings; raises SettingError where they cannot be followed."""
        method = cls.made({**settings, "n_items": n_items})
        if (method.uploads == "secure") != secure:
            raise SettingError(f"uploads is {method.uploads}, and the federation announces otherwise.")
        return method

    def public_settings(self) -> dict[str, Any]:
        """The settings that a federation announces, as it names them."""
        return {name: part for name, part in configuration(self).items() if name not in self.owner_choices}

    @property
    def support(self) -> int:
        """How many users an item needs to be in more uploads than those of the first stage."""
        return 1

    @property
    def columns(self) -> int:
        """Numbers per item of a secure upload, which is filled up with zeros to as many rows as there are items."""
        return -(-len(wire.flatten(self.empty())) // self.n_items)

    def covering(self, broadcast: Any, stage: int) -> Self:  # noqa: ARG002
        """The method for the items that secure uploads of a stage cover. Default: all."""
        return self

    def write(self, broadcast: Any, rows: IntVector, *, round_number: int, version: int) -> bytes:
        """Rows of a broadcast as they are sent."""
        return wire.encode_rows(broadcast, rows, self.n_items, round_number=round_number, version=version)

    def read(self, content: bytes) -> wire.RowsMessage:
        """Rows of a broadcast from the wire, checked."""
        return wire.decode_rows(self.records.sent, self, content)

    def as_read(self, broadcast: Any) -> Any:
        """A broadcast as clients have it, where the wire rounds it."""
        return broadcast

    def most_bytes(self) -> int:
        """The longest broadcast, without the numbers of its rows."""
        return wire.size_of_rows(wire.zeros(self.records.sent, self))

    def max_rows(self) -> int:
        """The most items that an update names."""
        return self.n_items

    def stage(self, state: Any) -> int:  # noqa: ARG002
        """Which upload of a client's lifetime a round on this state asks for."""
        return 0

    def uploads_now(self, broadcast: Any) -> int | None:  # noqa: ARG002
        """The most uploads of a client as long as this is the broadcast; None: no other than its quota."""
        return None

    def progress(self, state: Any) -> dict[str, int]:  # noqa: ARG002
        """Figures for the operator of how far learning has come, by name."""
        return {}

    def learnt_from(self, state: Any) -> dict[str, Array]:  # noqa: ARG002
        """How many users a state was learnt from, and how many have each item, where that is known; for exports."""
        return {}

    def fold_in(self, client: Client, broadcast: Any) -> Array:
        """A user's factors from the full history. Hosts pass client.state only where it was learnt from exactly that
        history. Default: take part at home, sending nothing."""
        for number in range(0 if client.state else HOME_ROUNDS):
            client = replace(client, round=HOME + number)
            client = replace(client, state=self.client_update(client, broadcast).state)
        vector: Array = client.state.vector
        return vector

    def scores(self, broadcast: Any, factors: Array) -> FloatMatrix:
        """Users x items; -inf for what must not be recommended."""
        scores: FloatMatrix = factors @ broadcast.vectors.T
        return scores

    def check(self, broadcast: Any, update: Any) -> None:
        """Raise BadMessage where no honest client can have sent this. Form and bounds have been checked already."""

    def check_form(self, update: Any, broadcast: Any) -> None:  # noqa: ARG002
        """Raise BadMessage where an update has another form than one for this broadcast; None: it is too old."""
        for name in wire.indices(update):
            if (rows := len(getattr(update, name))) > self.max_rows():
                raise BadMessage(f"The update has {rows} rows; the task allows {self.max_rows()} at most.")

    def max_upload(self) -> int:
        """The bytes of the longest update."""
        kind = self.records.update
        axes = {axis for part in wire.arrays(kind) for axis in part.metadata["axes"] if isinstance(axis, str)}
        free = {axis: self.max_rows() for axis in axes if axis != "items" and not hasattr(self, axis)}
        return wire.size(wire.zeros(kind, self, **free))

    def shortened(self, update: Any, most_norm: float) -> Shortened:
        """An update whose rows have at most this norm, and how many were longer."""
        return shortened(update, most_norm)

    def check_step(self, before: Any, after: Any) -> None:
        """Raise BadMessage where the broadcast `after` a step must not be published."""

    def bounded(self, update: Any, limit: float) -> Any:
        """The update scaled down to a norm of at most `limit`. Default: all of its numbers alike."""
        rows = {name: part for name, part in wire.values(update).items() if part.dtype.kind == "f"}
        norm = float(np.sqrt(sum(float(np.square(part, dtype=np.float64).sum()) for part in rows.values())))
        if norm <= limit:
            return update
        return replace(update, **{name: (part * (limit / norm)).astype(part.dtype) for name, part in rows.items()})

    def grow(self, state: Any, n_items: int) -> Any:
        """The state for a larger catalogue. Default: rows of zeros."""
        return wire.extended(state, n_items)

    def started(self, state: Any) -> Any:
        """The state that a federation begins with, from the rows of a trained model; its other rows have grown."""
        return state

    def new_season(self, state: Any, begun: IntVector) -> Any:  # noqa: ARG002
        """The state of a new season, in which these items begin or return."""
        return state

    def new_plan(self, state: Any, before: tuple[int, ...], now: tuple[int, ...]) -> Any:  # noqa: ARG002
        """The state at the first stage of a season's secure uploads; `before` and `now` are the noises of both."""
        return state

    def exported(self, arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
        """The arrays of a broadcast as the model of this name keeps them, with its settings."""
        return {name: part for name, part in configuration(self).items() if name != "n_items"}, arrays

    def fit(self, train: Any, **options: Any) -> Any:
        """Simulate: a model that was learnt from the training part of a split. See `fr.FederatedModel`."""
        return import_module("federank.methods.federated_model").fit(self, train, **options)


def low_bias(biases: Array) -> float:
    """The bias that a new item starts with: a tenth of the items have a lower one."""
    return float(np.quantile(biases, LOW)) if len(biases) else 0.0


class ClientKernels(Protocol):
    """Compiled clients of a method, for hosts that simulate many: all users of a data set, with their states."""

    def __init__(self, method: Any, seed: int, histories: Profiles, choices: Choices) -> None: ...

    states: dict[str, Array]
    """What clients keep between rounds: a row for each."""

    def update(self, user: int, round_number: int, broadcast: Any) -> Any:
        """What one client sends in this round; its state moves."""
        ...

    def factors(self, broadcast: Any) -> Array:
        """The factors that each user is recommended to from."""
        ...


def kernels_of(method: FederatedMethod) -> type[ClientKernels] | None:
    """The compiled clients of a method; None where it has none."""
    module, _, name = method.kernels.partition(":")
    kernels: type[ClientKernels] | None = getattr(import_module(module), name) if module else None
    return kernels


# Configuration: the fields of a method as plain values, with the same bounds wherever they are read.


def configuration(method: FederatedMethod) -> dict[str, Any]:
    """The fields as JSON has them."""
    return asdict(method)


def from_configuration(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """The method of these fields; raises SettingError for an unknown name or a value out of bounds."""
    refuse_unknown(values, [part.name for part in fields(kind)], kind.__name__, "setting ")
    return kind(**values)
