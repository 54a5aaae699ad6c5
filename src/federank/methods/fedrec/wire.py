"""What crosses the wire when ratings are learnt, and what never does.

    RatingBroadcast   server -> device: V, and W for SVD++
    RatingUpdate      device -> server: gradients of the items a person has rated and of those sampled to hide them
    RatingPrivate     stays on the device: the person's vector, ratings, and how often it has taken part

An Update of SVD++ also has rows of W, and these are of rated items only, for no other has a gradient: the server
can read a person's rated items from them, whatever rho is. (The authors' simulation wrote W into a table that all
clients shared; see docs/fedrec.md.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank._numerics.rows import inlined
from federank.errors import BadMessage
from federank.federation.rng import ORDER, SELECT, SERVER, below, words
from federank.federation.wire import Array, check_items, check_values, decode_parts, encode_parts
from federank.methods.fedrec.settings import RatingRecipe, rate_after
from federank.secagg.ring import C_INT, in_units


def _no_items() -> IntVector:
    return np.zeros(0, dtype=np.int32)


class RatingBroadcast(NamedTuple):
    """The server's message to a device: the shared model as of a round."""

    round_number: int
    vectors: FloatMatrix  # V, one row per item
    implicit_vectors: FloatMatrix  # W, one row per item; no rows for PMF
    iteration: int | None = None  # where a server says it; else it follows from the round's number


class RatingUpdate(NamedTuple):
    """A device's message to the server: all that crosses the wire upwards."""

    items: IntVector  # rated and sampled items together, ascending, no repeats
    vectors: FloatMatrix  # one gradient row of V per item
    implicit_items: IntVector  # the items whose W has a gradient, ascending; none for PMF
    implicit_vectors: FloatMatrix  # one gradient row of W per item


@dataclass(eq=False)
class RatingPrivate:
    """What never leaves a device. It is not a message: nothing in the protocol sends it."""

    user: int
    vector: FloatVector
    items: IntVector  # what the person has rated, ascending
    ratings: FloatVector
    mean: np.float32  # of these ratings
    virtual: int  # how many items get a virtual rating in a round
    participations: int  # in how many rounds the device has taken part
    sampled: IntVector = field(
        default_factory=_no_items
    )  # what has ever been sent with a virtual rating, where that is remembered


def encode_rating_message(message: RatingBroadcast | RatingUpdate) -> bytes:
    """The bytes of a message, as safetensors; parts without rows are left out."""
    if not isinstance(message, RatingBroadcast | RatingUpdate):
        raise TypeError(f"only a Broadcast or an Update may cross the wire, not a {type(message).__name__}")
    arrays = {
        name: part
        for name, part in message._asdict().items()
        if name not in ("round_number", "iteration") and (len(part) or not name.startswith("implicit"))
    }
    return encode_parts(arrays, {"round": message.round_number} if isinstance(message, RatingBroadcast) else None)


def check_rating_update(update: RatingUpdate, factors: int, n_items: int, *, implicit: bool) -> None:
    """Refuse an Update that is not of the form the protocol asks for."""
    if len(update.implicit_items) and not implicit:
        raise BadMessage("An Update of PMF has rows of V only; this one has rows of W too.")
    for items, vectors in ((update.items, update.vectors), (update.implicit_items, update.implicit_vectors)):
        check_items("an Update", items, n_items)
        check_values("an Update", "vectors", vectors, (len(items), factors))


@cache
def rating_update_bytes(rows: int, implicit_rows: int, factors: int) -> int:
    """How many bytes an Update of this many rows takes on the wire."""
    rated = np.zeros(rows, np.int32), _blank_rows(rows, factors)
    implicit = np.zeros(implicit_rows, np.int32), _blank_rows(implicit_rows, factors)
    return len(encode_rating_message(RatingUpdate(*rated, *implicit)))


@cache
def rating_broadcast_bytes(n_items: int, factors: int, *, implicit: bool) -> int:
    """How many bytes the full model takes on the wire."""
    tables = _blank_rows(n_items, factors), _blank_rows(n_items if implicit else 0, factors)
    return len(encode_rating_message(RatingBroadcast(0, *tables)))


def _blank_rows(rows: int, factors: int) -> FloatMatrix:
    return np.zeros((rows, factors), np.float32)


# Ratings on the wire between a server and devices in the world: rows of the model down, Updates up.


_IMPLICIT = ("implicit_items", "implicit_vectors")


class RatingRows(NamedTuple):
    """Rows of the shared model as a server sends them."""

    round_number: int
    version: int
    iteration: int
    items: IntVector
    vectors: FloatMatrix
    heard: NDArray[np.int8]
    implicit_vectors: FloatMatrix  # one row per item too; none for PMF


def encode_rating_rows(rows: RatingRows) -> bytes:
    """The bytes of a Broadcast."""
    arrays: dict[str, Array] = {"items": rows.items, "vectors": rows.vectors, "heard": rows.heard}
    if len(rows.implicit_vectors):
        arrays["implicit_vectors"] = rows.implicit_vectors
    return encode_parts(arrays, {"round": rows.round_number, "version": rows.version, "iteration": rows.iteration})


def decode_rating_rows(content: bytes, factors: int, n_items: int, *, implicit: bool) -> RatingRows:
    """A Broadcast from the wire, once it is sure to be one."""
    parts, numbers_told = ("items", "vectors", "heard"), ("round", "version", "iteration")
    arrays, numbers = decode_parts(content, "a Broadcast", parts, numbers_told, _IMPLICIT[1:] if implicit else ())
    items, heard = arrays["items"], arrays["heard"]
    check_items("a Broadcast", items, n_items)
    shape = (len(items), factors)
    check_values("a Broadcast", "vectors", arrays["vectors"], shape)
    if heard.dtype != np.int8 or heard.shape != shape[:1] or not np.isin(heard, (0, 1)).all():
        raise BadMessage("The part heard of a Broadcast must be one 8-bit 0 or 1 for each item.")
    none = np.zeros((0, factors), dtype=np.float32)
    W = arrays.get("implicit_vectors", none)
    if implicit:
        check_values("a Broadcast", "implicit_vectors", W, shape)
    return RatingRows(numbers["round"], numbers["version"], numbers["iteration"], items, arrays["vectors"], heard, W)


def decode_rating_update(content: bytes, factors: int, n_items: int, *, implicit: bool) -> RatingUpdate:
    """An Update from the wire, once it is sure to be one."""
    update = rating_update_of_ours(content, factors)
    check_rating_update(update, factors, n_items, implicit=implicit)
    return update


def rating_update_of_ours(content: bytes, factors: int) -> RatingUpdate:
    """An Update from bytes that `decode_rating_update` has accepted before."""
    arrays, _ = decode_parts(content, "an Update", ("items", "vectors"), optional=_IMPLICIT)
    none = np.zeros(0, dtype=np.int32), np.zeros((0, factors), dtype=np.float32)
    implicit = (arrays.get(name, nothing) for name, nothing in zip(_IMPLICIT, none, strict=True))
    return RatingUpdate(arrays["items"], arrays["vectors"], *implicit)


@cache
def rating_rows_bytes(n_items: int, factors: int, *, implicit: bool) -> int:
    """How many bytes a Broadcast of this many rows takes on the wire."""
    table = np.zeros((n_items, factors), dtype=np.float32)
    items, heard = np.zeros(n_items, dtype=np.int32), np.zeros(n_items, dtype=np.int8)
    return len(encode_rating_rows(RatingRows(0, 0, 0, items, table, heard, table if implicit else table[:0])))


# Distribution, when ratings are learnt: who takes part, and what they are sent.


@inlined
def choose_one(seed: Any, round_number: Any, participants: Any) -> Any:
    """The position, among the participants, of the one client of a stochastic round."""
    word, _, _, _ = words(seed, SERVER, SELECT, round_number, 0)
    return below(word, len(participants))


@inlined
def draw_order(seed: Any, iteration: Any, participants: Any) -> Any:
    """The participants in an order that is drawn again for each iteration (Fisher and Yates)."""
    order = participants.copy()
    for last in range(len(order) - 1, 0, -1):
        word, _, _, _ = words(seed, SERVER, ORDER, iteration, last)
        position = below(word, last + 1)
        order[last], order[position] = order[position], order[last]
    return order


def choose_raters(recipe: RatingRecipe, round_number: int) -> IntVector:
    """The clients that take part in this round; without a federation each user once per iteration."""
    if recipe.batch:
        return recipe.participants
    iteration, position = divmod(round_number, recipe.rounds_per_epoch)
    if not recipe.federated:
        ordered: IntVector = draw_order(recipe.seed, iteration, recipe.participants)
        return ordered[position : position + 1]
    position = choose_one(recipe.seed, round_number, recipe.participants)
    return recipe.participants[position : position + 1]


def make_rating_broadcast(round_number: int, vectors: FloatMatrix, implicit_vectors: FloatMatrix) -> RatingBroadcast:
    """The whole shared model, as a copy that no later round can change."""
    return RatingBroadcast(round_number, vectors.copy(), implicit_vectors.copy())


# Aggregation, when ratings are learnt: the server steps each item by the gradients it was sent.


class GradientSums(NamedTuple):
    """A round's gradients, summed per item, and how many clients sent one for it."""

    vectors: FloatMatrix | RealMatrix
    counts: RealVector
    implicit_vectors: FloatMatrix | RealMatrix  # of W; no rows for PMF
    implicit_counts: RealVector


class ReportCounts(NamedTuple):
    """How often each item was reported lately: in the uploads of about one iteration."""

    uploads: float
    items: RealVector
    implicit_items: RealVector  # of W; no rows for PMF

    def after(self, sums: GradientSums, uploads: int, clients: int) -> ReportCounts:
        """The counts with a round's uploads; as many of the earlier ones are forgotten."""
        kept = max(0.0, 1.0 - uploads / clients)
        return ReportCounts(
            kept * self.uploads + uploads,
            kept * self.items + sums.counts,
            kept * self.implicit_items + sums.implicit_counts,
        )


@dataclass(eq=False)
class SharedFactors:
    """What the server holds between rounds: V, and W for SVD++ (no rows for PMF)."""

    vectors: FloatMatrix
    implicit_vectors: FloatMatrix
    round_number: int = 0

    def distribute(self, _recipe: RatingRecipe) -> RatingBroadcast:
        """The whole shared model, for anyone who takes part."""
        return make_rating_broadcast(self.round_number, self.vectors, self.implicit_vectors)

    def aggregate(self, recipe: RatingRecipe, updates: Iterable[RatingUpdate]) -> None:
        """Fold a round's Updates into the shared model: all of them, or none if one breaks the protocol."""
        self.step_by_means(recipe, self.summed(recipe, updates))

    def summed(self, recipe: RatingRecipe, updates: Iterable[RatingUpdate]) -> GradientSums:
        """A round's Updates, added up."""
        sums, implicit_sums = np.zeros_like(self.vectors), np.zeros_like(self.implicit_vectors)
        counts, implicit_counts = np.zeros(len(sums)), np.zeros(len(implicit_sums))
        for update in updates:
            check_rating_update(update, recipe.factors, len(sums), implicit=recipe.implicit)
            sums[update.items] += update.vectors
            counts[update.items] += 1
            implicit_sums[update.implicit_items] += update.implicit_vectors
            implicit_counts[update.implicit_items] += 1
        return GradientSums(sums, counts, implicit_sums, implicit_counts)

    def step_by_means(self, recipe: RatingRecipe, sums: GradientSums) -> None:
        """Step every item by the mean of its gradients; the round is an iteration, or one client's."""
        self._step(recipe, sums, sums.counts, sums.implicit_counts)

    def step_by_share(
        self, recipe: RatingRecipe, sums: GradientSums, counts: ReportCounts, clients: int, prior_count: float
    ) -> None:
        """Step every item by this round's share of an iteration; `counts` have the round in them."""
        per_iteration = clients / counts.uploads
        self._step(
            recipe,
            sums,
            np.maximum(per_iteration * counts.items, sums.counts) + prior_count,
            np.maximum(per_iteration * counts.implicit_items, sums.implicit_counts) + prior_count,
        )

    def _step(self, recipe: RatingRecipe, sums: GradientSums, among: RealVector, implicit_among: RealVector) -> None:
        rate = rate_after(recipe, self.round_number // recipe.rounds_per_epoch)
        self.vectors = self.vectors - rate * _divided(sums.vectors, among)
        self.implicit_vectors = self.implicit_vectors - rate * _divided(sums.implicit_vectors, implicit_among)
        self.round_number += 1


def _divided(sums: FloatMatrix | RealMatrix, among: RealVector) -> FloatMatrix:
    """Sums divided by counts; a count below one is taken for one."""
    shares: Any = (1 / np.maximum(among, 1.0)).astype(sums.dtype)
    divided: FloatMatrix = (sums * shares[:, None]).astype(np.float32)
    return divided


# Ratings as sums that no single server can open: a message that names every item, and a step that reads only sums.


STANDS_OUT = 8.0
"""Deviations of noise above which a count is taken to be one."""


def columns_of_gradients(factors: int, *, implicit: bool) -> int:
    """Numbers a row of a message: gradients, and a count."""
    return factors * (2 if implicit else 1) + 1


def dense_gradients(update: RatingUpdate, n_items: int, *, implicit: bool) -> RealVector:
    """An Update without virtual ratings as a message that names every item, row by row."""
    factors = update.vectors.shape[1]
    rows = np.zeros((n_items, columns_of_gradients(factors, implicit=implicit)))
    rows[update.items, :factors] = update.vectors
    if implicit:
        rows[update.implicit_items, factors:-1] = update.implicit_vectors
    rows[update.items, -1] = 1.0
    return rows.ravel()


def summed_gradients(total: IntVector, clip: float, noise: int, n_items: int, *, implicit: bool) -> GradientSums:
    """The sum of all messages as gradients and counts; those of items whose count does not stand out are zero.

    `total` is in integers, `noise` is the deviation of one server's noise on it.
    """
    sums = in_units(total, clip).reshape(n_items, -1)
    counts = sums[:, -1]
    deviation = math.sqrt(2) * noise * clip / C_INT
    stands_out: NDArray[np.bool_] = counts > STANDS_OUT * deviation
    kept = np.where(stands_out[:, None], sums, 0.0)
    gradients, counts = kept[:, :-1], kept[:, -1]
    if not implicit:
        return GradientSums(gradients, counts, gradients[:0], counts[:0])
    vectors, implicit_vectors = np.split(gradients, 2, axis=1)
    return GradientSums(vectors, counts, implicit_vectors, counts)


# What the equations of PMF in batch style can give: an Update that they cannot is a lie, and is refused.


SLACK = 1e-3
"""32-bit floats, and a device that adds in its own order; relative to the longest row."""


def why_implausible_ratings(update: RatingUpdate, vectors: FloatMatrix, regulariser: float) -> str | None:
    """Why no device can have sent this Update, in a sentence; `vectors` are all of V as devices were told them."""
    if not len(update.items):
        return "An Update must be that of some ratings; this one has no item."
    rows = update.vectors.astype(np.float64) - regulariser * vectors[update.items]
    lengths = np.linalg.norm(rows, axis=1)
    longest = int(np.argmax(lengths))
    if not lengths[longest]:
        return None
    direction = rows[longest] / lengths[longest]
    beside = np.linalg.norm(rows - np.outer(rows @ direction, direction), axis=1)
    if beside.max() > SLACK * (lengths[longest] + np.abs(update.vectors).max()):
        return "The rows of an Update must come from one person's vector; these do not."
    return None
