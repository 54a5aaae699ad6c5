"""FPL's messages: Broadcasts of item rows, Updates of gradients, and what never leaves a client."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.federation.wire import check_items, check_values, decode_parts, encode_parts

PARTS = ("items", "vectors", "biases")


class Broadcast(NamedTuple):
    """The server's message to a device: the shared model, or a part of it, as a round begins."""

    round_number: int
    version: int  # of the model; a round that was abandoned has not made one
    items: IntVector  # which item rows, ascending; all of them unless the device has the rest already
    vectors: FloatMatrix  # one row of factors per item
    biases: FloatVector


class Update(NamedTuple):
    """A device's message to the server: all that crosses the wire upwards."""

    items: IntVector  # which item rows, ascending, no repeats
    vectors: FloatMatrix  # one gradient row per item
    biases: FloatVector


class CheckedUpdate(Update):
    """An Update that was found to be of the right form when it arrived: no one need look again."""

    __slots__ = ()


def by_sign(update: Update) -> tuple[IntVector, IntVector]:
    """The items that an Update raises, which are positives to anyone who reads it, and the others that it names."""
    raised = update.biases > 0
    return update.items[raised], update.items[~raised]


@dataclass(eq=False)
class Private:
    """What never leaves a device. It is not a message: nothing in the protocol sends it."""

    user: int
    vector: FloatVector
    profile: (
        IntVector  # the items that positives are drawn from, ascending: the history, or what stands for it outwards
    )
    pi: float  # the probability that a positive item's gradient is sent
    allowed: np.ndarray[tuple[int], np.dtype[np.bool_]]  # which items of the profile may ever be sent
    triples: int  # how many pairs the device trains on in a round
    lifelong: bool = False  # what is allowed is always sent, whatever pi


def encode(message: Broadcast | Update) -> bytes:
    """The bytes of a message, as safetensors."""
    if not isinstance(message, Broadcast | Update):
        raise TypeError(f"only a Broadcast or an Update may cross the wire, not a {type(message).__name__}")
    arrays = {"items": message.items, "vectors": message.vectors, "biases": message.biases}
    if isinstance(message, Broadcast):
        return encode_parts(arrays, {"round": message.round_number, "version": message.version})
    return encode_parts(arrays)


def decode_update(content: bytes, factors: int, n_items: int) -> CheckedUpdate:
    """An Update from the wire, once it is sure to be one."""
    update = update_of_ours(content)
    check_update(update, factors, n_items)
    return update


def update_of_ours(content: bytes) -> CheckedUpdate:
    """An Update from bytes that `decode_update` has accepted before."""
    arrays, _ = decode_parts(content, "an Update", PARTS)
    return CheckedUpdate(arrays["items"], arrays["vectors"], arrays["biases"])


def decode_broadcast(content: bytes, factors: int, n_items: int) -> Broadcast:
    """A Broadcast from the wire, once it is sure to be one."""
    arrays, numbers = decode_parts(content, "a Broadcast", PARTS, ("round", "version"))
    broadcast = Broadcast(numbers["round"], numbers["version"], arrays["items"], arrays["vectors"], arrays["biases"])
    _check_rows("a Broadcast", broadcast, factors, n_items)
    return broadcast


def check_update(update: Update, factors: int, n_items: int) -> None:
    """Refuse an Update that is not of the form the protocol asks for."""
    _check_rows("an Update", update, factors, n_items)


def _check_rows(name: str, message: Broadcast | Update, factors: int, n_items: int) -> None:
    check_items(name, message.items, n_items)
    check_values(name, "vectors", message.vectors, (len(message.items), factors))
    check_values(name, "biases", message.biases, (len(message.items),))


@cache
def update_bytes(rows: int, factors: int) -> int:
    """How many bytes an Update of this many rows takes on the wire."""
    return len(encode(Update(*_blank_rows(rows, factors))))


@cache
def broadcast_bytes(rows: int, factors: int) -> int:
    """How many bytes a Broadcast of this many rows takes on the wire."""
    return len(encode(Broadcast(0, 0, *_blank_rows(rows, factors))))


def _blank_rows(rows: int, factors: int) -> tuple[IntVector, FloatMatrix, FloatVector]:
    return np.zeros(rows, np.int32), np.zeros((rows, factors), np.float32), np.zeros(rows, np.float32)


# Plausibility: what the equations of a pair (bpr.py) can give. Another Update is refused where it is readable.
#
# A client trains on T pairs. Each adds g to the bias of a positive item and subtracts it from a negative one, with g
# from 0 to 1. What the owner withholds is missing among the positives alone. So for any history and policy the biases
# add up to 0 at most, those above 0 to T at most, and those below 0 to -T at least.
#
# A malicious client can still choose T pairs. The defences around aggregation bound what those do.


SLACK = 1e-3
"""Of T: sums of 32-bit floats are not exact."""


def why_implausible(update: Update, triples: int) -> str | None:
    """Why no honest client can have sent this Update; None if one can have."""
    biases = update.biases.astype(np.float64)
    slack = SLACK * triples
    raised, lowered = float(biases[biases > 0].sum()), -float(biases[biases < 0].sum())
    if float(biases.sum()) > slack:
        return (
            "The biases of an Update cannot add up to more than 0: each pair takes from one item what it gives another."
        )
    if raised > triples + slack:
        return f"The biases of an Update cannot be raised by more than {triples} together: one for each pair."
    if lowered > triples + slack:
        return f"The biases of an Update cannot be lowered by more than {triples} together: one for each pair."
    return None


# Rows of an Update of bounded length, vector and bias together.


def shortened(update: Update, most_norm: float) -> Update:
    """The same Update with every row (vector and bias together) at most this long."""
    if is_short(update, most_norm):
        return update
    squared = squared_norms(update)
    long = squared > np.float64(most_norm) ** 2
    if not long.any():
        return update
    factor = np.ones(len(update.items), dtype=np.float64)
    factor[long] = most_norm / np.sqrt(squared[long])
    scale = factor.astype(np.float32)
    return update._replace(vectors=update.vectors * scale[:, None], biases=update.biases * scale)


def is_short(update: Update, most_norm: float) -> bool:
    """Whether no row can be too long, by the largest of all numbers: one look that settles nearly every Update."""
    if not len(update.items):
        return True
    largest = max(float(np.abs(update.vectors).max()), float(np.abs(update.biases).max()))
    return largest * math.sqrt(update.vectors.shape[1] + 1) < 0.999 * most_norm


def squared_norms(update: Update) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The squared length of each row, vector and bias together."""
    # In double precision: the square of a large float32 would overflow.
    vectors, biases = update.vectors.astype(np.float64), update.biases.astype(np.float64)
    squares: np.ndarray[tuple[int], np.dtype[np.float64]] = np.einsum("ij,ij->i", vectors, vectors) + biases * biases
    return squares
