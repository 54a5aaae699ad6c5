"""What crosses the wire, and what never does.

    Broadcast   server -> device: the shared model, or the rows of it that changed
    Update      device -> server: gradients of some items
    Private     stays on the device: the person's factors, history and choice of what to share

The server's functions take Broadcasts and Updates and nothing else, so a profile or a user's factors cannot be
handed to them by accident; `encode` refuses anything that is not one of the two. On the wire both are safetensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import BadMessage as BadMessage


class Broadcast(NamedTuple):
    """The server's message to a device: the shared model as of a round."""

    round_number: int
    items: IntVector  # which item rows, ascending; all of them unless the device has the rest already
    vectors: FloatMatrix  # one row of factors per item
    biases: FloatVector


class Update(NamedTuple):
    """A device's message to the server: all that crosses the wire upwards."""

    items: IntVector  # which item rows, ascending, no repeats
    vectors: FloatMatrix  # one gradient row per item
    biases: FloatVector


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
    about = {"round": f"{message.round_number:010d}"} if isinstance(message, Broadcast) else None
    content: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=about)
    return content


def decode_update(content: bytes, factors: int, n_items: int) -> Update:
    """An Update from the wire, once it is sure to be one."""
    try:
        arrays = load(content)
    except SafetensorError as reason:
        raise BadMessage(f"The upload is not a safetensors message ({reason}).") from reason
    if set(arrays) != {"items", "vectors", "biases"}:
        raise BadMessage(f"The upload has the parts {sorted(arrays)}; items, vectors and biases are needed.")
    update = Update(arrays["items"], arrays["vectors"], arrays["biases"])
    check_update(update, factors, n_items)
    return update


def check_update(update: Update, factors: int, n_items: int) -> None:
    """Refuse an Update that is not of the form the protocol asks for."""
    items, vectors, biases = update
    if items.dtype != np.int32 or vectors.dtype != np.float32 or biases.dtype != np.float32:
        raise BadMessage(
            "An Update has 32-bit integers as items and 32-bit floats as vectors and biases; this one has not."
        )
    if items.ndim != 1 or biases.shape != items.shape or vectors.shape != (len(items), factors):
        raise BadMessage(
            f"An Update of {items.size} items needs vectors of shape ({items.size}, {factors}) and as many biases; "
            f"found {vectors.shape} and {biases.shape}."
        )
    if len(items) and (items[0] < 0 or items[-1] >= n_items or np.any(items[1:] <= items[:-1])):
        raise BadMessage(f"The items of an Update must ascend without repeats within 0 to {n_items - 1}.")
    if not (np.isfinite(vectors).all() and np.isfinite(biases).all()):
        raise BadMessage("An Update holds values that are not finite numbers.")


@cache
def update_bytes(rows: int, factors: int) -> int:
    """How many bytes an Update of this many rows takes on the wire."""
    return len(encode(Update(*_blank_rows(rows, factors))))


@cache
def broadcast_bytes(rows: int, factors: int) -> int:
    """How many bytes a Broadcast of this many rows takes on the wire."""
    return len(encode(Broadcast(0, *_blank_rows(rows, factors))))


def _blank_rows(rows: int, factors: int) -> tuple[IntVector, FloatMatrix, FloatVector]:
    return np.zeros(rows, np.int32), np.zeros((rows, factors), np.float32), np.zeros(rows, np.float32)
