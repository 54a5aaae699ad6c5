"""Wire format: arrays by name, and integers beside them, as safetensors; and records that declare their arrays.

    encode_parts   arrays and numbers -> bytes; the same message has the same bytes
    decode_parts   bytes -> arrays and numbers, if the parts are those of the expected message
    array          declares an array of a record: axes, type and bounds
    encode, decode           a record's bytes, checked when they are read
    encode_rows, decode_rows the rows of a broadcast that a client lacks
    flatten, unflatten       the vector that secure aggregation sums

What is wrong with a message is a `BadMessage`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import Field, field, fields, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from federank._numerics.arrays import IntVector, RealVector
from federank.errors import BadMessage

Array = np.ndarray[Any, np.dtype[Any]]
_ALIGNMENT = 8  # a header's length, so that the arrays behind it are aligned
_LONGEST_NUMBER = 15  # digits; what a browser counts exactly


class Parts(NamedTuple):
    """What a message holds."""

    arrays: dict[str, Array]
    numbers: dict[str, int]


def encode_parts(arrays: Mapping[str, Array], numbers: Mapping[str, int] | None = None) -> bytes:
    """The bytes of a message; numbers are padded to ten digits, so that they do not change its length."""
    content: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    if not numbers:
        return content
    # Sorted by name: the library's order is arbitrary, and two servers must write the same bytes.
    about = json.dumps({name: f"{numbers[name]:010d}" for name in sorted(numbers)}, separators=(",", ":")).encode()
    first = 8 + int.from_bytes(content[:8], "little")
    header = b'{"__metadata__":' + about + b"," + content[9:first].rstrip()
    header = header.ljust(-(-len(header) // _ALIGNMENT) * _ALIGNMENT)
    return b"".join((len(header).to_bytes(8, "little"), header, memoryview(content)[first:]))


def decode_parts(
    content: bytes, name: str, needed: Iterable[str], numbers: Iterable[str] = (), optional: Iterable[str] = ()
) -> Parts:
    """The parts and numbers of a message called `name` ("an Update"), if they are exactly these.

    Parts that are `optional` may be present too.
    """
    try:
        arrays = load(content)
    except SafetensorError as reason:
        raise BadMessage(f"{_at_start(name)} is a safetensors message, and this is not one ({reason}).") from reason
    except (KeyError, AttributeError, TypeError, ValueError) as reason:  # a data type that NumPy lacks
        raise BadMessage(f"{_at_start(name)} holds numbers of a type that no message has ({reason!r}).") from reason
    if not set(needed) <= set(arrays) <= {*needed, *optional}:
        others = f", and may have {_listed(optional)}" if optional else ""
        raise BadMessage(f"{_at_start(name)} has the parts {_listed(needed)}{others}; found {_listed(arrays)[:200]}.")
    about = _about(content) if numbers else {}
    return Parts(arrays, {number: _integer(about.get(number), number, name) for number in numbers})


def check_items(name: str, items: IntVector, n_items: int) -> None:
    """Refuse invalid item numbers in a message called `name`."""
    if items.dtype != np.int32 or items.ndim != 1:
        raise BadMessage(
            f"The items of {name} must be a row of 32-bit integers; found {items.dtype} of shape {items.shape}."
        )
    if len(items) and (items[0] < 0 or items[-1] >= n_items or np.any(items[1:] <= items[:-1])):
        raise BadMessage(f"The items of {name} must ascend without repeats within 0 to {n_items - 1}.")


def check_values(name: str, part: str, values: Array, shape: tuple[int, ...]) -> None:
    """Refuse an invalid array of numbers in a message called `name`."""
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


def _integer(text: Any, number: str, name: str) -> int:
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise BadMessage(f"{_at_start(name)} says its {number} as an integer; found {str(text)[:40]!r}.")
    return int(text)


def _at_start(name: str) -> str:
    return name[0].upper() + name[1:]


def _listed(names: Iterable[str]) -> str:
    # Quoted, because a client may have chosen them.
    return ", ".join(map(repr, sorted(names))) or "none"


# Records: dataclasses whose fields are declared arrays. Encoding, validation, sizes, row deltas, growth and the vector
# of secure aggregation follow from the declaration.
#
#     vectors: Array = array("items", "factors")      # a table: one row per item of the catalogue
#     items:   Array = array("rows", dtype="index")   # ascending item numbers; "rows" is free, at most n_items
#     scale:   Array = array(1, minimum=0, maximum=1)
#
# An axis is "items", the name of a number of the method, an integer, or any other name, which is free. An empty array
# (an axis is 0) is not sent: optional arrays need no flag.

DTYPES = {"f4": np.float32, "f8": np.float64, "i1": np.int8, "i4": np.int32, "i8": np.int64, "index": np.int32}


def array(*axes: str | int, dtype: str = "f4", minimum: float | None = None, maximum: float | None = None) -> Any:
    """A field of a message, a state or an aggregate; bounds are checked when it is read."""
    return field(default=None, metadata={"axes": axes, "dtype": dtype, "minimum": minimum, "maximum": maximum})


def arrays(record: Any) -> tuple[Field[Any], ...]:
    """The declared arrays of a record or of its type."""
    return _arrays(record if isinstance(record, type) else type(record))


@cache
def _arrays(kind: type[Any]) -> tuple[Field[Any], ...]:
    return tuple(part for part in fields(kind) if "axes" in part.metadata)


def tables(record: Any) -> tuple[str, ...]:
    """The names of the arrays with one row per item: row deltas and growth follow from them."""
    return tuple(part.name for part in arrays(record) if part.metadata["axes"][:1] == ("items",))


def indices(record: Any) -> tuple[str, ...]:
    """The names of the arrays that name items."""
    return tuple(part.name for part in arrays(record) if part.metadata["dtype"] == "index")


def values(record: Any) -> dict[str, Array]:
    """The arrays of a record by name."""
    return {part.name: getattr(record, part.name) for part in arrays(record)}


def zeros(kind: type[Any], method: Any, **free: int) -> Any:
    """A record of zeros: an empty aggregate, or a message to measure. `free` gives the sizes of free axes."""
    sizes = {"items": method.n_items, **free}
    return kind(**{part.name: np.zeros(_shape(part, method, sizes), _dtype(part)) for part in arrays(kind)})


def checked(record: Any, kind: type[Any], method: Any, **free: int) -> Any:
    """Check and cast the record's arrays as declared; raises `BadMessage` if one is wrong.

    `free` fixes axes: items=20 takes twenty rows of a table.
    """
    if not isinstance(record, kind):
        raise BadMessage(f"A {kind.__name__} is needed; found a {type(record).__name__}.")
    return kind(**_checked({n: np.asarray(v) for n, v in values(record).items()}, kind, method, free, cast=True))


def from_arrays(kind: type[Any], method: Any, parts: Mapping[str, Array], **free: int) -> Any:
    """A record from arrays by name, checked; missing arrays are empty."""
    unknown = sorted(set(parts) - {part.name for part in arrays(kind)})
    if unknown:
        raise BadMessage(f"{kind.__name__} has no array {unknown[0][:80]!r}.")
    return kind(**_checked(dict(parts), kind, method, free, cast=False))


def encode(record: Any) -> bytes:
    """The bytes of a message. The same message has the same bytes, on every machine."""
    return encode_parts(_sent(record))


def decode(kind: type[Any], method: Any, content: bytes) -> Any:
    """A message from the wire, checked."""
    parts = decode_parts(content, f"a {kind.__name__}", (), optional=[part.name for part in arrays(kind)]).arrays
    return from_arrays(kind, method, parts)


def decode_again(kind: type[Any], method: Any, content: bytes) -> Any:
    """Decode a message that `decode` has accepted before."""
    parts: dict[str, Array] = load(content)
    return kind(**parts) if len(parts) == len(arrays(kind)) else from_arrays(kind, method, parts)


def size(record: Any) -> int:
    """The size of a message on the wire."""
    return _size(tuple((name, part.dtype.str, part.shape) for name, part in _sent(record).items()), ())


def size_of_rows(record: Any, rows: int | None = None) -> int:
    """The size of a broadcast on the wire (`encode_rows`), with all rows or this many."""
    shapes = {name: (part.dtype.str, part.shape) for name, part in _sent(record).items()}
    if rows not in (None, len(getattr(record, tables(record)[0]))):
        for name in tables(record):
            shapes[name] = (shapes[name][0], (rows, *shapes[name][1][1:]))
        shapes["items"] = ("<i4", (rows,))
    return _size(
        tuple(
            (name, *part) for name, part in shapes.items() if name == "items" or rows != 0 or name not in tables(record)
        ),
        ("round", "version"),
    )


@cache
def _size(parts: tuple[tuple[str, str, tuple[int, ...]], ...], numbers: tuple[str, ...]) -> int:
    return len(encode_parts({name: np.zeros(shape, dtype) for name, dtype, shape in parts}, dict.fromkeys(numbers, 0)))


def read_only(record: Any) -> Any:
    """A read-only copy: what a server sends, so that no client writes to its arrays."""
    copies = {name: part.copy() for name, part in values(record).items()}
    for part in copies.values():
        part.flags.writeable = False
    return replace(record, **copies)


def _sent(record: Any) -> dict[str, Array]:
    return {name: part for name, part in values(record).items() if part.size}


def _dtype(part: Field[Any]) -> type[Any]:
    return DTYPES[part.metadata["dtype"]]


def _shape(part: Field[Any], method: Any, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        axis if isinstance(axis, int) else sizes[axis] if axis in sizes else int(getattr(method, axis))
        for axis in part.metadata["axes"]
    )


def _checked(
    parts: dict[str, Array], kind: type[Any], method: Any, free: Mapping[str, int], *, cast: bool
) -> dict[str, Array]:
    sizes = {"items": method.n_items, **free}
    for part in arrays(kind):  # the first array with a free axis defines its length
        for axis, length in zip(
            part.metadata["axes"], parts[part.name].shape if part.name in parts else (), strict=False
        ):
            if isinstance(axis, str) and not hasattr(method, axis):
                sizes.setdefault(axis, length)
    right = {}
    for part in arrays(kind):
        name, dtype = f"{kind.__name__}.{part.name}", _dtype(part)
        unknown = {axis: 0 for axis in part.metadata["axes"] if isinstance(axis, str) and not hasattr(method, axis)}
        needed = _shape(part, method, unknown | sizes)
        value = parts.get(part.name, np.zeros(needed, dtype) if 0 in needed else None)
        if value is not None and cast and value.dtype.kind in _CASTS[np.dtype(dtype).kind]:
            value = _cast(name, value, dtype)
        if value is None or value.shape != needed or value.dtype != dtype:
            what = "nothing" if value is None else f"{value.dtype} of shape {value.shape}"
            raise BadMessage(f"{name} must be {np.dtype(dtype)} of shape {needed}; found {what}.")
        _check_values(name, part, value, method.n_items)
        right[part.name] = value
    return right


_CASTS = {"f": "fiub", "i": "iub"}


def _cast(name: str, value: Array, dtype: type[Any]) -> Array:
    with np.errstate(over="ignore"):
        made = value.astype(dtype, copy=False)
    if made.dtype.kind == "i" and not np.array_equal(made, value):
        raise BadMessage(f"{name} has integers that are too large for {np.dtype(dtype)}.")
    return made


def _check_values(name: str, part: Field[Any], value: Array, n_items: int) -> None:
    low, high = part.metadata["minimum"], part.metadata["maximum"]
    if not np.isfinite(value).all():
        raise BadMessage(f"{name} has values that are not finite numbers.")
    if (low is not None and (value < low).any()) or (high is not None and (value > high).any()):
        raise BadMessage(f"{name} has values that are not within {low} to {high}.")
    if part.metadata["dtype"] == "index":
        check_items(name, value, n_items)


# Rows of tables: what changed since a version, and how clients and growing catalogues apply it.


class RowsMessage(NamedTuple):
    """A broadcast, or part of one, as sent."""

    round: int
    version: int
    items: IntVector  # which rows of the tables
    part: Any  # the record with these rows alone


def changed(before: Any, after: Any) -> NDArray[np.bool_]:
    """Which rows differ in any table."""
    differs: NDArray[np.bool_] = np.zeros(len(getattr(after, tables(after)[0])), dtype=np.bool_)
    for name in tables(after):
        different = getattr(before, name) != getattr(after, name)
        differs |= different.reshape(len(different), -1).any(axis=1)
    return differs


def rows_of(record: Any, items: IntVector) -> Any:
    """The same record with these rows alone."""
    return replace(record, **{name: getattr(record, name)[items] for name in tables(record)})


def extended(record: Any, n_items: int) -> Any:
    """The same record for a larger catalogue, with new rows of zeros."""
    return replace(record, **{name: _with_zeros(getattr(record, name), n_items) for name in tables(record)})


def _with_zeros(table: Array, rows: int) -> Array:
    return np.concatenate((table, np.zeros((rows - len(table), *table.shape[1:]), table.dtype)))


def encode_rows(record: Any, items: IntVector, n_items: int, *, round_number: int, version: int) -> bytes:
    """Encode a broadcast's rows; a full broadcast names no items."""
    is_full = len(items) == n_items
    parts = _sent(record if is_full else rows_of(record, items))
    return encode_parts(parts if is_full else parts | {"items": items}, {"round": round_number, "version": version})


def decode_rows(kind: type[Any], method: Any, content: bytes) -> RowsMessage:
    """Decode and check rows of a broadcast."""
    names = [part.name for part in arrays(kind)]
    parts, numbers = decode_parts(content, f"a {kind.__name__}", (), ("round", "version"), [*names, "items"])
    items = parts.pop("items", np.arange(method.n_items, dtype=np.int32))
    check_items(f"a {kind.__name__}", items, method.n_items)
    part = from_arrays(kind, method, parts, items=len(items))
    return RowsMessage(numbers["round"], numbers["version"], items, part)


# Vectors: what secure aggregation sums and clips.


def flatten(aggregate: Any) -> RealVector:
    """All numbers of an aggregate as one vector: the tables side by side, row by row, then the other arrays."""
    named = tables(aggregate)
    side = [np.reshape(getattr(aggregate, name), (len(getattr(aggregate, name)), -1)) for name in named]
    rest = [np.ravel(part) for name, part in values(aggregate).items() if name not in named]
    vector: RealVector = np.concatenate([np.hstack(side).ravel() if side else np.zeros(0), *rest]).astype(np.float64)
    return vector


def unflatten(aggregate: Any, vector: RealVector) -> Any:
    """Fill an empty aggregate from a vector."""
    named = [getattr(aggregate, name) for name in tables(aggregate)]
    columns = [int(np.prod(table.shape[1:])) for table in named]
    rows = len(named[0]) if named else 0
    head, rest = vector[: rows * sum(columns)].reshape(rows, sum(columns)), vector[rows * sum(columns) :]
    for table, part in zip(named, np.split(head, np.cumsum(columns)[:-1], axis=1), strict=True):
        table[...] = part.reshape(table.shape)
    for name, part in values(aggregate).items():
        if name not in tables(aggregate):
            part[...], rest = rest[: part.size].reshape(part.shape), rest[part.size :]
    return aggregate
