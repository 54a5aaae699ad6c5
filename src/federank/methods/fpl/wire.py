"""FPL's messages: Broadcasts of item rows, Updates of gradients, and what never leaves a client."""

from __future__ import annotations

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
