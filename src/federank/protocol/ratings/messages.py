"""What crosses the wire when ratings are learnt, and what never does.

    RatingBroadcast   server -> device: V, and W for SVD++
    RatingUpdate      device -> server: gradients of the items a person has rated and of those sampled to hide them
    RatingPrivate     stays on the device: the person's vector, ratings, and how often it has taken part

An Update of SVD++ also has rows of W, and these are of rated items only, for no other has a gradient: the server
can read a person's rated items from them, whatever rho is. (The authors' simulation wrote W into a table that all
clients shared; see docs/fedrec.md.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import BadMessage
from federank.protocol.wire import check_items, check_values, encode_parts


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
    """How many bytes the whole model takes on the wire."""
    tables = _blank_rows(n_items, factors), _blank_rows(n_items if implicit else 0, factors)
    return len(encode_rating_message(RatingBroadcast(0, *tables)))


def _blank_rows(rows: int, factors: int) -> FloatMatrix:
    return np.zeros((rows, factors), np.float32)
