"""The client's half of Frugal on the interface (federation/method.py): its vector in closed form, and few uploads.

    client_update     the vector that explains the shared profile best, and one number per item, weighted and clipped
    fold_in           the same from the full history; it is never sent

Where items need a minimum support, those without a weight in the model have none. The first upload carries counts, and
so does any other while no item is supported, or where a secure round asks for counts. Others cover the supported items.
Nothing is kept between rounds, and all items are named, so that what is named says nothing.

`PrivateFrugal` is what clients of a federation with differential privacy send: the parts of private.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.checks import check_int, check_positive, setting
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.client import MOST_MESSAGES
from federank.federation.method import Aggregate, Client, ClientResult, FederatedMethod, Records
from federank.federation.wire import Array, array
from federank.methods.frugal.method import (
    FrugalUpdate,
    count_unit,
    counts_of,
    covered,
    covered_items,
    dense,
    is_count,
    message_norm,
    rows_of,
    user_weight,
)
from federank.methods.frugal.objective import Objective, gram_matrix, residuals, solve_user
from federank.methods.frugal.private import Directions, directions_at_home, message_parts
from federank.methods.frugal.wire import decode_frugal_broadcast, frugal_broadcast_bytes
from federank.secagg.config import PRIVATE, SPECTRAL
from federank.secagg.ring import C_INT

_NO_VECTOR: FloatVector = np.zeros(0, dtype=np.float32)
_UPWARDS = 1 + 2.0**-40
"""A count is an integer in a secure sum; this much more, so that no rounding takes one away."""


@dataclass(frozen=True, eq=False)
class FrugalModel:
    """What clients have: item vectors, how much each item counts (0: it is not supported), and lambda."""

    vectors: Array = array("items", "factors")
    weights: Array = array("items", minimum=0)
    regulariser: Array = array(1, dtype="f8", minimum=0)

    @cached_property
    def gram(self) -> RealMatrix:
        """Y'DY: once per version, for all clients."""
        return gram_matrix(np.ascontiguousarray(self.vectors), self.weights)

    @cached_property
    def directions(self) -> Directions:
        """What clients of a private federation look for."""
        return directions_at_home(self.vectors, self.weights)

    @cached_property
    def supported(self) -> FrugalModel:
        """The items that weigh something."""
        items = np.flatnonzero(self.weights)
        return FrugalModel(self.vectors[items], self.weights[items], self.regulariser)


@dataclass(eq=False, kw_only=True)
class FrugalSums(Aggregate):
    """Sums of updates: rows of items, and the square of the vector."""

    residuals: Array = array("items", "columns", dtype="f8")
    squares: Array = array("columns", "columns", dtype="f8")


@dataclass(eq=False, kw_only=True)
class ItemRows(Aggregate):
    """Sums of counts, or of private updates."""

    rows: Array = array("items", "directions", dtype="f8")


@dataclass(frozen=True, eq=False)
class PrivateParts:
    """A private update: the matrix row x pointed."""

    row: Array = array("covered", dtype="f8")
    pointed: Array = array("directions", dtype="f8")


@dataclass(frozen=True, kw_only=True)
class Frugal(FederatedMethod):
    """Frugal as clients run it."""

    name = "frugal"
    records = Records(FrugalModel, None, FrugalUpdate, FrugalSums, None)
    counts_uploads: ClassVar[bool] = True
    needs_unseen_items: ClassVar[bool] = False
    recipe: ClassVar[str] = SPECTRAL

    min_support: int = setting(1, 1, 10_000_000)
    """Items of fewer users are only in uploads of counts. 1: every item is in every upload."""
    alpha: float = setting(0.0, 0)
    """Confidence 1 + alpha that users like what they have."""
    unobserved_weight: float = setting(1.0, 0, 1)
    """Confidence that they dislike what they do not have."""
    activity: float = setting(0.0, 0, 1)
    """A user with n items weighs n^-activity."""

    @classmethod
    def announced(cls, settings: Mapping[str, Any], n_items: int, *, secure: bool) -> Self:
        """Without a clip, a secure federation takes private updates."""
        clip = settings.get("clip")
        kind: Any = PrivateFrugal if secure and clip is None else cls
        factors, uploads = settings.get("factors"), settings.get("messages")
        check_int("messages", uploads, 1, MOST_MESSAGES)
        if clip is not None:
            check_positive("clip", clip)
        names = ("alpha", "unobserved_weight", "activity")
        given = {name: settings.get(name) for name in names} | ({} if clip is None else {"clip": clip})
        kept = "secure" if secure else "plain"
        support = settings.get("min_support", 1)
        made: Self = kind(
            n_items=n_items, factors=factors, uploads=kept, uploads_per_client=uploads, min_support=support, **given
        )
        if made.factors > n_items:
            raise SettingError(f"factors is {factors}, but there are only {n_items:,} items.")
        return made

    def public_settings(self) -> dict[str, Any]:
        """The settings by the names of the federation's own."""
        clip = None if self.recipe == PRIVATE or not self.clip else self.clip
        activity = None if self.recipe == PRIVATE and not self.activity else self.activity  # the recipe knows of none
        names = ("factors", "alpha", "unobserved_weight", "min_support")
        more = {"messages": self.uploads_per_client, "clip": clip, "activity": activity}
        return {name: getattr(self, name) for name in names} | more

    @property
    def support(self) -> int:
        """Users that an item needs."""
        return self.min_support

    @property
    def objective(self) -> Objective:
        """What counts how much."""
        return Objective(np.float32(1 + self.alpha), np.float32(self.unobserved_weight))

    @property
    def columns(self) -> int:
        """A vector's numbers, and the constant 1."""
        return self.factors + 1

    def read(self, content: bytes) -> wire.RowsMessage:
        """Rows of the model, from bytes with a scale per row or as they are."""
        broadcast = decode_frugal_broadcast(content, self.factors, self.n_items)
        model = FrugalModel(rows_of(broadcast), broadcast.weights, np.array([broadcast.regulariser]))
        return wire.RowsMessage(broadcast.round_number, broadcast.version, broadcast.items, model)

    def most_bytes(self) -> int:
        """All rows as floats, and their numbers."""
        return frugal_broadcast_bytes(self.n_items, self.factors, all_rows=True, as_codes=False, weighted=True)

    def covering(self, broadcast: FrugalModel, stage: int) -> Self:
        """Uploads cover the supported items, but for those of counts; until there are any, all carry counts."""
        is_whole = self.min_support == 1 or self.is_counting(stage) or not broadcast.weights.any()
        return self if is_whole else replace(self, n_items=int(np.count_nonzero(broadcast.weights)))

    def is_counting(self, stage: int) -> bool:
        """Whether a stage of secure aggregation has one number per item of the catalogue."""
        return stage == 0 and self.min_support > 1

    def empty(self, stage: int = 0) -> Any:
        """Sums of counts, or of updates."""
        return wire.zeros(ItemRows, self, directions=1) if self.is_counting(stage) else super().empty(stage)

    def add(self, aggregate: Any, update: Any) -> None:
        """Add an update, or counts in units that are integers in a secure sum."""
        if is_count(update):
            aggregate.rows[:, 0] += update.strengths * (count_unit(self.n_items) * self.clip / C_INT * _UPWARDS)
            return
        message = dense(update)
        aggregate.residuals += message.residuals
        aggregate.squares += message.squares

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
        update = FrugalUpdate.of(strengths, vector, user_weight(self.activity, len(profile)))
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
        """The vector that explains the full history best, in closed form."""
        _, model, profile = self._covered(client, broadcast)
        return self._solved(model, profile)

    def scores(self, broadcast: FrugalModel, factors: Array) -> FloatMatrix:
        """-inf for items without a vector, which have no support or were hidden by the server."""
        scores = super().scores(broadcast, factors)
        scores[:, ~broadcast.vectors.any(axis=1)] = -np.inf
        return scores


@dataclass(frozen=True, kw_only=True)
class PrivateFrugal(Frugal):
    """Frugal under differential privacy: popularity first, then directions, each upload with its own noise."""

    records = Records(FrugalModel, None, PrivateParts, ItemRows, None)
    recipe: ClassVar[str] = PRIVATE

    clip: float = setting(1.0, 1, 1)
    """Updates are of length 1."""

    def public_settings(self) -> dict[str, Any]:
        """A federation with noise leaves weights of users open: all weigh the same."""
        return super().public_settings() | {"activity": None}

    @property
    def columns(self) -> int:
        """The directions that are looked for."""
        return self.factors - 1

    def is_counting(self, stage: int) -> bool:
        """Popularity comes first."""
        return stage == 0

    def empty(self, stage: int = 0) -> Any:
        """One column of popularity, or one for each direction."""
        return wire.zeros(ItemRows, self, directions=1 if stage == 0 else self.columns)

    def add(self, aggregate: Any, update: Any) -> None:
        """The update written out."""
        aggregate.rows += np.outer(update.row, update.pointed)

    def client_update(self, client: Client, broadcast: FrugalModel) -> ClientResult:
        """The parts of the stage that the round asks for."""
        if not client.stage:
            return ClientResult(PrivateParts(*message_parts(self.n_items, client.items, None)))
        items, model, profile = self._covered(client, broadcast)
        parts = message_parts(len(items), profile, model.directions)
        return ClientResult(PrivateParts(*parts), positives=items[profile])


CLIENTS = {"frugal": Frugal}
