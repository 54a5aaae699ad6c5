"""Frugal on the interface (federation/method.py): a handful of uploads per client; the server solves from their sums.

    client_update     the vector that explains the shared profile best, and one number per item, weighted and clipped
    server_update     from the sums S and H of a round: the item vectors that solve the problem for all users
    fold_in           a user's vector from the full history; it is never sent

With a minimum support of 2 or more, no item has a weight at first. A client's first upload carries counts, and so does
any other while no item is supported, or where a secure round asks for counts (its stage). An item is supported once the
counts name `min_support` users of it; fewer than 50 supported items make no model. Other uploads cover the supported
items. Clients keep nothing between rounds, and all items are named, so that what is named says nothing.

Clients come when they come, so a cohort is whoever uploads in a round. Its sums are scaled to all users: to the
enrolled clients and, where the federation began with a trained model, to the users whom that model was learnt from.
Once as many uploads have come as there are users, new ones replace as much as they add (server_update.py).

Under secure aggregation without a clip, uploads are those of `PrivateFrugal` (private.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.checks import check_int, check_range, setting
from federank.errors import BadMessage, ModelError, SettingError
from federank.federation import wire
from federank.federation.defences import Defences, Shortened
from federank.federation.method import (
    MOST_MESSAGES,
    Client,
    ClientResult,
    DataSummary,
    FederatedMethod,
    Records,
    from_configuration,
)
from federank.federation.wire import Array
from federank.methods.frugal.bounds import FRUGAL_DEFENCES, USUAL_SPECTRAL
from federank.methods.frugal.item_weights import most_bytes, no_weights
from federank.methods.frugal.objective import residuals, solve_user
from federank.methods.frugal.private_server import affordable
from federank.methods.frugal.protocol import (
    check_frugal_update,
    count_unit,
    counts_of,
    covered,
    covered_items,
    dense,
    is_count,
    message_norm,
    published,
    user_weight,
)
from federank.methods.frugal.records import (
    RIDGE,
    FrugalModel,
    FrugalSums,
    FrugalUpdate,
    ItemRows,
    ServerState,
    SummedMessages,
    with_item_weights,
    without_ridge,
)
from federank.methods.frugal.server_update import (
    FEWEST_ITEMS,
    LEAST_WEIGHT,
    first_regulariser,
    first_vectors,
    item_weights,
    ridge_of,
    stepped,
    with_support,
)
from federank.methods.frugal.settings import DEFAULT_MIN_SUPPORT, DEFAULT_RATE, FrugalRules, Step, factors_for
from federank.methods.frugal.wire import decode_model, encode_model, model_bytes, update_bytes, why_implausible_frugal
from federank.secagg.ring import C_INT, SPECTRAL

if TYPE_CHECKING:
    from federank.federation.server import Guarantee

_NO_VECTOR: FloatVector = np.zeros(0, dtype=np.float32)
_UPWARDS = 1 + 2.0**-40
"""A count is an integer in a secure sum; this much more, so that no rounding takes one away."""


@dataclass(frozen=True, kw_only=True)
class Frugal(FrugalRules, FederatedMethod):
    """Frugal: few uploads per client, and a server that solves from their sums."""

    name = "frugal"
    records = Records(ServerState, FrugalModel, FrugalUpdate, FrugalSums, None)
    counts_uploads: ClassVar[bool] = True
    needs_unseen_items: ClassVar[bool] = False
    recipe: ClassVar[str] = SPECTRAL
    quota: ClassVar[str] = "messages"
    filled_in: ClassVar[tuple[str, ...]] = ("n_items", "uploads", "noise", "uploads_per_client")
    defences: ClassVar[Defences] = FRUGAL_DEFENCES

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_rules()
        object.__setattr__(self, "uploads_per_client", self.messages)

    @classmethod
    def made(cls, settings: Mapping[str, Any]) -> Self:
        """Under secure aggregation without a clip: the private form."""
        from federank.methods.frugal.private import PrivateFrugal  # made from this class

        is_private = settings.get("uploads") == "secure" and settings.get("clip") is None
        made: Self = from_configuration(PrivateFrugal if is_private else Frugal, settings)
        return made

    @classmethod
    def announced(cls, settings: Mapping[str, Any], n_items: int, *, secure: bool) -> Self:
        """The part of the settings that clients receive; all of it must be there."""
        known = {name: settings.get(name) for name in ANNOUNCED} | {"min_support": settings.get("min_support", 1)}
        known["item_weights"] = settings.get("item_weights", "none")
        check_int("messages", known["messages"], 1, MOST_MESSAGES)
        check_int("factors", known["factors"], 1, 1024)
        check_range("activity", known["activity"], 0, 1)  # type: ignore[arg-type]
        method = cls.made({**known, "n_items": n_items, "uploads": "secure" if secure else "plain"})
        method.refuse_factors()
        return method

    def public_settings(self) -> dict[str, Any]:
        """The settings that clients need; lambda and the weights of items come with each broadcast."""
        names = ANNOUNCED if self.item_weights == "none" else (*ANNOUNCED, "item_weights")
        return {name: getattr(self, name) for name in names}

    def resolve(self, data: DataSummary) -> Self:
        """The method for this catalogue. How many users there will be is not known."""
        if self.min_support > 1 and data.n_items < FEWEST_ITEMS:
            raise SettingError(
                f"The catalogue has {data.n_items:,} items. With a min_support of {self.min_support}, at least "
                f"{FEWEST_ITEMS} items with that many users are needed; ask for a min_support of 1."
            )
        method = replace(
            self,
            n_items=data.n_items,
            factors=factors_for(self, None, data.n_items),
            shrinkage=self.shrinkage_used,
            activity=self.user_weight_exponent,
            popularity=self.item_weight_exponent,
        )
        method.refuse_factors()
        return method

    def refuse_factors(self) -> None:
        """Refuse vectors of more numbers than there are items."""
        if self.factors > self.n_items:
            raise SettingError(f"factors is {self.factors}, but there are only {self.n_items:,} items; ask for fewer.")

    def secured(self, guarantee: Guarantee, clients: int) -> Self:
        """With a clip, uploads are clipped, and all get the same noise; without one they are private."""
        if not self.clip:
            from federank.methods.frugal.private import private_form  # made from this class

            private: Self = private_form(self, guarantee, clients)
            return private
        support = self.min_support
        if guarantee.has_noise:
            if support not in (1, DEFAULT_MIN_SUPPORT):
                raise SettingError(
                    f"min_support is {support}, but with a clip and noise the counts of rare items are noise, and "
                    "every item is in every upload; leave min_support out, or the clip."
                )
            support = 1
        if guarantee.has_noise and self.item_weights == "ridge":
            raise SettingError("item_weights is ridge, which needs sums without noise; leave it out, or the noise.")
        usual = USUAL_SPECTRAL if self.step == "spectral" else 1.0
        return replace(
            self,
            uploads="secure",
            min_support=support,
            noise=guarantee.noise(self.messages),
            most_shown=usual if self.most_shown is None else self.most_shown,
        )

    @classmethod
    def affordable(cls, clients: int, n_items: int, delta: float) -> float | None:
        """The smallest epsilon that costs less than a tenth of the accuracy, as measured."""
        return affordable(clients, n_items, delta)

    @property
    def support(self) -> int:
        """Users that an item needs."""
        return self.min_support

    @property
    def kept(self) -> int:
        """Columns of the sums that item-item weights follow from: a vector and the constant 1 for each round."""
        return self.messages * self.columns if self.item_weights == "ridge" else 0

    @property
    def sketched(self) -> int:
        """Columns of the sketch."""
        return self.factors if self.step == "spectral" else 0

    @property
    def moments(self) -> int:
        """Columns of Adam's moments."""
        return self.factors if self.step == "adam" else 0

    @property
    def solved(self) -> int:
        """Rows of the mean of H."""
        return self.factors if self.step == "solve" else 0

    @property
    def columns(self) -> int:
        """A vector's numbers, and the constant 1."""
        return self.factors + 1

    def read(self, content: bytes) -> wire.RowsMessage:
        """Rows of the model, from bytes with a scale per row or as they are."""
        message = decode_model(content, self.factors, self.n_items)
        if message.part.item_weights is not None and self.item_weights == "none":
            raise BadMessage("The broadcast has item-item weights, and the federation announces none.")
        return message

    def write(self, broadcast: FrugalModel, rows: IntVector, *, round_number: int, version: int) -> bytes:
        """Rows of the model, as bytes with a scale per row or as they are."""
        return encode_model(
            broadcast, rows, as_codes=self.encoding == "int8", round_number=round_number, version=version
        )

    def as_read(self, broadcast: FrugalModel) -> FrugalModel:
        """Vectors as they are read from bytes; item-item weights with those of newer items."""
        read: FrugalModel = with_item_weights(broadcast, broadcast.item_weights)
        return replace(read, vectors=published(self, broadcast.vectors))

    def most_bytes(self) -> int:
        """All rows as floats, and their numbers."""
        near = most_bytes(self.n_items) if self.item_weights == "ridge" else 0
        return near + model_bytes(self.n_items, self.factors, all_rows=True, as_codes=False, weighted=True)

    def covering(self, broadcast: FrugalModel, stage: int) -> Self:
        """Uploads cover the supported items, but for those of counts; until there are any, all carry counts."""
        is_whole = self.min_support == 1 or self.is_counting(stage) or not broadcast.weights.any()
        return self if is_whole else replace(self, n_items=int(np.count_nonzero(broadcast.weights)))

    def is_counting(self, stage: int) -> bool:
        """Whether a stage of secure aggregation has one number per item of the catalogue."""
        return self.uploads == "secure" and stage == 0 and self.min_support > 1

    def empty(self, stage: int = 0) -> Any:
        """Sums of counts, or of updates."""
        return wire.zeros(ItemRows, self, directions=1) if self.is_counting(stage) else super().empty(stage)

    def add(self, aggregate: Any, update: Any) -> None:
        """Add an update, or counts: in a secure sum in units that are integers there."""
        if is_count(update) and self.uploads == "secure":
            aggregate.rows[:, 0] += update.strengths * (self._count_unit * _UPWARDS)
            return
        if is_count(update):
            aggregate.counts = update.strengths + (0.0 if aggregate.counts is None else aggregate.counts)
            aggregate.counters += 1
            return
        message = dense(update)
        aggregate.residuals += message.residuals
        aggregate.squares += message.squares

    @property
    def _count_unit(self) -> float:
        return count_unit(self.n_items) * self.norm_bound / C_INT

    def bounded(self, update: FrugalUpdate, limit: float) -> FrugalUpdate:
        """The update with a scale at which all of its numbers, written out, have at most this norm. Counts stay."""
        if is_count(update):
            return update
        scale = min(float(update.scale[0]), limit / message_norm(update.strengths, update.vector))
        return FrugalUpdate.of(update.strengths, update.vector, scale)

    def client_update(self, client: Client, broadcast: FrugalModel) -> ClientResult:
        """Counts, or the client's vector and how strongly each supported item should move towards it."""
        has_counts = not client.sent or not broadcast.weights.any() if client.stage is None else client.stage == 0
        if has_counts and self.min_support > 1:
            return ClientResult(FrugalUpdate.of(counts_of(self.n_items, client.items), _NO_VECTOR, 1.0))
        items, model, profile = self._covered(client, broadcast)
        vector = self._solved(model, profile)
        strengths = residuals(self.objective, model.vectors, vector, profile)
        update = FrugalUpdate.of(strengths, vector, user_weight(self.activity or 0.0, len(profile)))
        return ClientResult(self.bounded(update, self.clip) if self.clip else update, positives=items[profile])

    def _covered(self, client: Client, broadcast: FrugalModel) -> tuple[IntVector, FrugalModel, IntVector]:
        """The items that an upload covers, their rows, and which of them the client has."""
        items = covered_items(self.min_support, broadcast.weights)
        model = broadcast.supported if self.min_support > 1 else broadcast
        return items, model, covered(items, client.items)

    def _solved(self, model: FrugalModel, profile: IntVector) -> FloatVector:
        return solve_user(
            self.objective, float(model.regulariser[0]), model.vectors, model.weights, model.gram, profile
        )

    def fold_in(self, client: Client, broadcast: FrugalModel) -> FloatVector:
        """The vector that explains the full history best, in closed form. With item-item weights it ends with the
        history itself, which they are applied to."""
        _, model, profile = self._covered(client, broadcast)
        vector = self._solved(model, profile)
        if broadcast.item_weights is None:
            return vector
        history = np.zeros(self.n_items, dtype=np.float32)
        history[client.items] = 1
        return np.concatenate((vector, history))

    def scores(self, broadcast: FrugalModel, factors: Array) -> FloatMatrix:
        """-inf for items without a vector, which have no support or were hidden by the server."""
        scores = super().scores(broadcast, factors[:, : self.factors])
        if broadcast.item_weights is not None and factors.shape[1] > self.factors:
            scores = broadcast.item_weights.scores(factors[:, self.factors :], scores)
        scores[:, ~broadcast.vectors.any(axis=1)] = -np.inf
        return scores

    # The server.

    def initial_state(self) -> ServerState:
        """Vectors drawn from the seed; without supported items, where items need support."""
        state: ServerState = without_ridge(ServerState, self)
        state = replace(state, regulariser=np.array([first_regulariser(self)]))
        if self.min_support > 1:
            return state
        vectors = first_vectors(self, self.n_items, self.initial_scale)
        return replace(state, vectors=vectors, weights=np.ones(self.n_items, dtype=np.float32))

    def broadcast(self, state: ServerState) -> FrugalModel:
        """Vectors, weights and lambda; and item-item weights."""
        return FrugalModel(**{part.name: getattr(state, part.name) for part in wire.arrays(FrugalModel)})

    def stage(self, state: ServerState) -> int:
        """0: counts; 1: the supported items."""
        return int(state.asks[0])

    def server_update(self, state: ServerState, aggregate: Any) -> ServerState:
        """Counts decide which items are supported; other uploads lead to the next vectors."""
        if not aggregate.count:
            return state
        if self.is_counting(self.stage(state)):
            counts, counters = aggregate.rows[:, 0] / self._count_unit, aggregate.count
        else:
            counts, counters = aggregate.counts, aggregate.counters
        if others := aggregate.count - counters:
            sums = SummedMessages(aggregate.residuals, aggregate.squares, others)
            state = stepped(self, state, sums, max(1, int(state.before[0]) + aggregate.enrolled))
            if self.kept and state.seen.any():
                state = with_item_weights(state, ridge_of(self, state))
        else:
            state = replace(state, folds=state.folds + 1)
        if counters:
            state = replace(state, counted=state.counted + counts, counters=state.counters + counters)
            state = with_support(self, state)
        return replace(state, asks=np.array([self._next_stage(state)]))

    def _next_stage(self, state: ServerState) -> int:
        """Every `messages`-th secure round asks for counts, and so does each while no item is supported."""
        folds = int(state.folds[0])
        is_due = folds > 0 and folds % self.messages == 0
        return int(self.uploads == "secure" and self.min_support > 1 and state.weights.any() and not is_due)

    def check_form(self, update: FrugalUpdate, broadcast: FrugalModel | None) -> None:
        """Refuse an update that covers other items than those that are supported."""
        if self.min_support == 1:
            check_frugal_update(update, self.factors, self.n_items)
            return
        rows = None if broadcast is None else int(np.count_nonzero(broadcast.weights))
        if rows == 0 and not is_count(update):
            raise BadMessage("No item is supported yet, so uploads carry counts; this one does not.")
        covered = min(len(update.strengths), self.n_items) if rows is None else rows
        check_frugal_update(update, *((0, self.n_items) if is_count(update) else (self.factors, covered)))

    def max_upload(self) -> int:
        """An update of all items."""
        return update_bytes(self.n_items, self.factors)

    def shortened(self, update: FrugalUpdate, most_norm: float) -> Shortened:
        """The update with at most this norm of all of its numbers. Counts stay."""
        if is_count(update) or float(update.scale[0]) * message_norm(update.strengths, update.vector) <= most_norm:
            return Shortened(update, 0)
        return Shortened(self.bounded(update, most_norm), 1)

    def check(self, broadcast: FrugalModel, update: FrugalUpdate) -> None:
        """Refuse what no history gives with this model."""
        if is_count(update):
            return
        items = covered_items(self.min_support, broadcast.weights)
        vectors, weights = broadcast.vectors[items], broadcast.weights[items]
        regulariser = float(broadcast.regulariser[0])
        why = why_implausible_frugal(self, update, vectors, weights, broadcast.product, regulariser)
        if why is not None:
            raise BadMessage(why)

    def uploads_now(self, broadcast: FrugalModel) -> int | None:
        """One, until items are supported: no client's counts come twice."""
        return 1 if self.min_support > 1 and not broadcast.weights.any() else None

    def progress(self, state: ServerState) -> dict[str, int]:
        """How many items are supported, of how many, and how many clients' counts say so."""
        if self.min_support == 1:
            return {}
        return {
            "supported_items": int(np.count_nonzero(state.weights)),
            "items": self.n_items,
            "supported_items_needed": FEWEST_ITEMS,
            "counted_clients": int(state.counters[0]),
        }

    # Catalogues that grow, seasons, trained models.

    def grow(self, state: Any, n_items: int) -> Any:
        """New items have no users yet; where items need no support, they count in uploads."""
        larger = wire.extended(state, n_items)
        larger.weights[len(state.weights) :] = self.min_support == 1
        return larger

    def new_season(self, state: Any, begun: IntVector) -> Any:
        """Clients count again, and items that begin have no users yet."""
        state = replace(state, began=state.folds)
        if self.min_support == 1:
            return state
        vectors, weights = state.vectors.copy(), state.weights.copy()
        vectors[begun], weights[begun] = 0, 0
        nothing = {"counted": np.zeros(self.n_items), "counters": np.zeros(1)}
        return replace(state, vectors=vectors, weights=weights, **nothing)

    def new_plan(self, state: Any, before: tuple[int, ...], now: tuple[int, ...]) -> Any:  # noqa: ARG002
        """Counts come first."""
        return replace(state, asks=np.array([0]))

    def learnt_from(self, state: Any) -> dict[str, Array]:
        """Uploads, and users of each item."""
        return {"people": state.received, "people_with_item": state.counts}

    def started(self, state: ServerState) -> ServerState:
        """A trained model, with what its users have uploaded. Its own minimum support may have been another."""
        if self.step != "spectral":
            raise SettingError("A federation that starts from a trained model needs alpha 0 and damping 1.")
        is_new = (state.counts == 0) & ~state.vectors.any(axis=1)
        weights = np.where(is_new, item_weights(state.counts, self.popularity or 0.0), state.weights)
        if self.min_support > 1:
            supported = (state.counts >= self.min_support) & (weights > 0)
            weights = np.where(supported, np.maximum(weights, LEAST_WEIGHT), 0)
            if supported.sum() < FEWEST_ITEMS:
                raise ModelError(
                    f"Of the model's items, {int(supported.sum()):,} have {self.min_support} users or more, and at "
                    f"least {FEWEST_ITEMS} are needed; start from a model of more users, or ask for a smaller "
                    "min_support."
                )
            rows = {name: getattr(state, name).copy() for name in ("vectors", "sketch", "counts")}
            for part in rows.values():
                part[weights == 0] = 0
            state = replace(state, **rows)
        state = replace(state, weights=weights.astype(np.float32))
        return replace(state, asks=np.array([self._next_stage(state)]))

    def exported(self, arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
        """The arrays of the recommender of this name: vectors as clients read them."""
        settings = {name: getattr(self, name) for name in FrugalRules.__dataclass_fields__}
        vectors = published(self, arrays["vectors"])
        shared = {"item_vectors": vectors, "item_weights": arrays["weights"], "regulariser": arrays["regulariser"]}
        if self.item_weights == "ridge":
            near = FrugalModel(**arrays).item_weights or no_weights(len(vectors))
            shared |= {RIDGE + name: part for name, part in wire.values(near).items()}
        return settings, shared


ANNOUNCED = ("factors", "messages", "alpha", "unobserved_weight", "activity", "clip", "min_support")
"""Settings that clients receive."""


@dataclass(frozen=True, kw_only=True)
class FCF(Frugal):
    """Federated collaborative filtering (Ammad-ud-din et al., 2019): the same client; the server steps with Adam."""

    name = "fcf"
    learning_rate: float = setting(DEFAULT_RATE, positive=True)
    """Learning rate of the server (Adam)."""
    beta1: float = setting(0.9, fraction=True, paper=True)
    """Adam: decay of the first moment."""
    beta2: float = setting(0.999, fraction=True, paper=True)
    """Adam: decay of the second moment."""

    @property
    def step(self) -> Step:
        """A step against the gradient."""
        return "adam"
