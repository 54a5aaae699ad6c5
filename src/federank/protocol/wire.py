"""The one wire format: arrays by name, and whole numbers beside them, as safetensors.

Every family's messages (messages.py, ratings/messages.py) are written and read through these few functions, on the
server and on the device alike, so a family says only which parts its messages have and what is right about them:

    encode_parts   arrays and numbers -> bytes; the same message is the same bytes, whoever writes it
    decode_parts   bytes -> arrays and numbers, if the parts are those of the message that was expected
    check_items    item numbers as every family sends them: ascending, within the catalogue
    check_values   an array of finite 32-bit floats of the shape that the family asks for

What is wrong is told as a `BadMessage`, in a whole sentence about the message by its name: an Update, a Broadcast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from federank.arrays import IntVector
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
        raise BadMessage(f"{_at_start(name)} says its {number} as a whole number; found {str(text)[:40]!r}.")
    return int(text)


def _at_start(name: str) -> str:
    return name[0].upper() + name[1:]


def _listed(names: Iterable[str]) -> str:
    # Quoted, because a stranger may have named them.
    return ", ".join(map(repr, sorted(names))) or "none"
