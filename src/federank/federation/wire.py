"""The one wire format: arrays by name, and integers beside them, as safetensors.

Every family's messages (messages.py, ratings/messages.py) are written and read through these few functions, on the
server and on the device alike, so a family says only which parts its messages have and what is right about them:

    encode_parts   arrays and numbers -> bytes; the same message is the same bytes, anyone who writes it
    decode_parts   bytes -> arrays and numbers, if the parts are those of the message that was expected
    check_items    item numbers as every family sends them: ascending, within the catalogue
    check_values   an array of finite 32-bit floats of the shape that the family asks for

What is wrong is told as a `BadMessage`, in a whole sentence about the message by its name: an Update, a Broadcast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import BadMessage

Array = np.ndarray[Any, np.dtype[Any]]
_ALIGNMENT = 8  # a header's length, so that the arrays behind it lie well in memory
_LONGEST_NUMBER = 15  # digits; what a browser counts exactly


class Parts(NamedTuple):
    """What a message holds."""

    arrays: dict[str, Array]
    numbers: dict[str, int]


def encode_parts(arrays: Mapping[str, Array], numbers: Mapping[str, int] | None = None) -> bytes:
    """The bytes of a message; its numbers are written with ten digits, so that they do not change its length."""
    content: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    if not numbers:
        return content
    # The library would write the numbers in any order; two servers are to write the same bytes.
    about = json.dumps({name: f"{numbers[name]:010d}" for name in sorted(numbers)}, separators=(",", ":")).encode()
    first = 8 + int.from_bytes(content[:8], "little")
    header = b'{"__metadata__":' + about + b"," + content[9:first].rstrip()
    header = header.ljust(-(-len(header) // _ALIGNMENT) * _ALIGNMENT)
    return b"".join((len(header).to_bytes(8, "little"), header, memoryview(content)[first:]))


def decode_parts(
    content: bytes, name: str, needed: Iterable[str], numbers: Iterable[str] = (), optional: Iterable[str] = ()
) -> Parts:
    """The parts of a message of this name ("an Update"), if they are these and no other; and its numbers.

    Parts that are `optional` may be there too.
    """
    try:
        arrays = load(content)
    except SafetensorError as reason:
        raise BadMessage(f"{_at_start(name)} is a safetensors message, and this is not one ({reason}).") from reason
    except (KeyError, AttributeError, TypeError, ValueError) as reason:  # numbers of a type that NumPy has not
        raise BadMessage(f"{_at_start(name)} holds numbers of a type that no message has ({reason!r}).") from reason
    if not set(needed) <= set(arrays) <= {*needed, *optional}:
        others = f", and may have {_listed(optional)}" if optional else ""
        raise BadMessage(f"{_at_start(name)} has the parts {_listed(needed)}{others}; found {_listed(arrays)[:200]}.")
    about = _about(content) if numbers else {}
    return Parts(arrays, {number: _whole(about.get(number), number, name) for number in numbers})


def check_items(name: str, items: IntVector, n_items: int) -> None:
    """Refuse item numbers that a message of this name may not hold."""
    if items.dtype != np.int32 or items.ndim != 1:
        raise BadMessage(
            f"The items of {name} must be a row of 32-bit integers; found {items.dtype} of shape {items.shape}."
        )
    if len(items) and (items[0] < 0 or items[-1] >= n_items or np.any(items[1:] <= items[:-1])):
        raise BadMessage(f"The items of {name} must ascend without repeats within 0 to {n_items - 1}.")


def check_values(name: str, part: str, values: Array, shape: tuple[int, ...]) -> None:
    """Refuse an array of numbers that a message of this name may not hold as this part."""
    if values.dtype != np.float32 or values.shape != shape:
        raise BadMessage(
            f"The {part} of {name} must be 32-bit floats of shape {shape}; found {values.dtype} of {values.shape}."
        )
    if not np.isfinite(values).all():
        raise BadMessage(f"The {part} of {name} hold values that are not finite numbers.")


def _about(content: bytes) -> dict[str, Any]:
    # Eight bytes of the header's length, then the header as JSON; `load` has checked both.
    about = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__")
    return about if isinstance(about, dict) else {}


def _whole(text: Any, number: str, name: str) -> int:
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise BadMessage(f"{_at_start(name)} says its {number} as an integer; found {str(text)[:40]!r}.")
    return int(text)


def _at_start(name: str) -> str:
    return name[0].upper() + name[1:]


def _listed(names: Iterable[str]) -> str:
    # Quoted, because a stranger may have named them.
    return ", ".join(map(repr, sorted(names))) or "none"


# What crosses the wire, and what never does.


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
