"""The published model: what the server hands out, whole or only the rows that changed since a version.

A model is tables with one row for each item, what is true of it as a whole, and whatever else its family's fold has to
remember. Each row remembers the version that changed it last, so that "what is new since version V" is one comparison.
A model is never changed once it is published: a fold makes a new one, and devices that still work on an older one keep
it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.federation.wire import Array, encode_parts

LOW = 0.1
"""New items start where this share of the items is below them."""
CACHE_BYTES = 64 * 2**20
"""Room for encoded messages, so that devices that ask for the same rows are handed the same bytes."""


_NOTHING: Mapping[str, Array] = MappingProxyType({})
_OVERALL = "overall."  # marks in the store what is no table


class Content(NamedTuple):
    """What a model consists of: what a federation begins with, and what a fold makes of it."""

    tables: Mapping[str, Array]  # one row per item in each; `vectors` is always among them
    overall: Mapping[str, Array] = _NOTHING  # what is told of the model as a whole, whichever rows are sent
    state: Mapping[str, Array] = _NOTHING  # what the next fold remembers of this one; only the leader reads it


def lowest_rows(content: Content, n_items: int) -> Content:
    """The same content for a catalogue of `n_items`: rows that it lacks start low, so that they are never first.

    A new item has the bias that a tenth of the items stay below, and no vector; where a family has no biases, no vector
    is a score of zero.
    """
    more = n_items - len(content.tables["vectors"])
    if more <= 0:
        return content
    tables: dict[str, Array] = {}
    for name, table in content.tables.items():
        low = np.zeros((more, *table.shape[1:]), dtype=table.dtype)
        if name == "biases":
            low[:] = lowest_bias(table)
        elif name == "weights":
            low[:] = 1
        tables[name] = np.concatenate((table, low))
    return content._replace(tables=tables)


def lowest_bias(biases: FloatVector) -> float:
    """The bias that an item no one knows yet starts with: a tenth of the items have a lower one."""
    return float(np.quantile(biases, LOW)) if len(biases) else 0.0


class Published(NamedTuple):
    """The shared model as of a version."""

    version: int
    changed: LongVector  # per row: the version that changed it last
    content: Content

    @property
    def vectors(self) -> FloatMatrix:
        """The item vectors."""
        return self.content.tables["vectors"]

    def rows_since(self, have: int | None) -> IntVector:
        """The rows that a device needs that has version `have`; all of them where that says nothing."""
        if have is None or not 0 <= have <= self.version:
            return np.arange(len(self.changed), dtype=np.int32)
        return np.flatnonzero(self.changed > have).astype(np.int32)

    def rows(self, rows: IntVector) -> dict[str, Array]:
        """The tables cut down to some rows."""
        whole = len(rows) == len(self.changed)
        return {name: table if whole else table[rows] for name, table in self.content.tables.items()}

    def followed_by(self, content: Content) -> Published:
        """The next version, after a fold."""
        differs = np.zeros(len(self.changed), dtype=np.bool_)
        for name, table in content.tables.items():
            different = table != self.content.tables[name]
            differs |= different if different.ndim == 1 else different.any(axis=1)
        return Published(self.version + 1, np.where(differs, self.version + 1, self.changed), content)

    def extended(self, content: Content) -> Published:
        """The next version, with rows for items that were added; those that were there stay as they are."""
        more = len(content.tables["vectors"]) - len(self.changed)
        changed = np.concatenate((self.changed, np.full(more, self.version + 1, dtype=np.int64)))
        return Published(self.version + 1, changed, content)

    def stored(self, rows: IntVector, round_number: int) -> bytes:
        """Some rows as the store keeps them."""
        overall = {_OVERALL + name: value for name, value in self.content.overall.items()}
        parts = {"items": rows, **self.rows(rows), **overall}
        return encode_parts(parts, {"round": round_number, "version": self.version})

    def after(self, version: int, stored: bytes) -> Published:
        """A later version, from the rows that it changed."""
        items, rows, overall = _read(stored)
        tables, changed = {name: table.copy() for name, table in self.content.tables.items()}, self.changed.copy()
        for name in tables:
            tables[name][items] = rows[name]
        changed[items] = version
        return Published(version, changed, Content(tables, overall))


def stored_content(content: Content) -> bytes:
    """All of a content as bytes, with what the next fold remembers: anyone who has it can fold on."""
    parts = {f"tables.{name}": value for name, value in content.tables.items()}
    parts |= {f"overall.{name}": value for name, value in content.overall.items()}
    return encode_parts(parts | {f"state.{name}": value for name, value in content.state.items()})


def content_from(stored: bytes) -> Content:
    """A content from the bytes of `stored_content`."""
    parts: dict[str, dict[str, Array]] = {"tables": {}, "overall": {}, "state": {}}
    for name, value in load(stored).items():
        kind, _, own = name.partition(".")
        parts[kind][own] = value
    return Content(parts["tables"], parts["overall"], parts["state"])


def first_model(content: Content) -> Published:
    """What a federation begins with: version 0."""
    return Published(0, np.zeros(len(content.tables["vectors"]), dtype=np.int64), content)


def full_model(version: int, stored: bytes, changed: bytes) -> Published:
    """A model that was stored whole."""
    _, tables, overall = _read(stored)
    rows: LongVector = np.frombuffer(changed, dtype="<i8").astype(np.int64)
    return Published(version, rows, Content(tables, overall))


def _read(stored: bytes) -> tuple[IntVector, dict[str, Array], dict[str, Array]]:
    parts = load(stored)
    items = parts.pop("items")
    overall = {name.removeprefix(_OVERALL): parts.pop(name) for name in list(parts) if name.startswith(_OVERALL)}
    return items, parts, overall


class EncodedRows:
    """The messages that were made lately, by what was asked for; `encode` is the family's."""

    def __init__(self, encode: Callable[[Published, IntVector, int], bytes], most_bytes: int = CACHE_BYTES) -> None:
        self._encode = encode
        self._kept: OrderedDict[tuple[int | None, int, int], bytes] = OrderedDict()
        self._bytes = 0
        self._most_bytes = most_bytes

    def since(self, model: Published, have: int | None, round_number: int) -> bytes:
        """The Broadcast of the rows that changed since `have`."""
        if have is not None and not 0 <= have <= model.version:
            have = None
        key = (have, model.version, round_number)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        content = self._encode(model, model.rows_since(have), round_number)
        self._kept[key] = content
        self._bytes += len(content)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return content


# Signals: what the newest version did to the model, so that an operator sees a push or a broken fold; its extent.


SHOWN_ROWS = 5


class Signals(NamedTuple):
    """How far the model went from one version to the next."""

    drift: float = 0.0  # of all rows together, as a share of their length
    largest_move: float = 0.0  # of the one row that moved farthest, as a share of the mean row's length
    rows: tuple[tuple[int, float], ...] = ()  # those that moved farthest, and how far


class Extent(NamedTuple):
    """Whether every value of a model is a finite number, and how long its longest row is."""

    is_finite: bool = True
    longest_row: float = 0.0


def extent_of(model: Published) -> Extent:
    """The extent of a published model: of its vectors with their biases, and of W where SVD++ has one."""
    content = model.content
    values = [*content.tables.values(), *content.overall.values()]
    if not all(np.isfinite(part).all() for part in values):
        return Extent(is_finite=False)
    parts = [rows_of(model), *(content.tables[name] for name in ("implicit",) if name in content.tables)]
    squares = [np.square(part, dtype=np.float64).sum(axis=1).max(initial=0.0) for part in parts]
    return Extent(longest_row=float(np.sqrt(max(squares))))


def signals_of(before: Published, after: Published) -> Signals:
    """What happened between two versions; nothing is said of catalogues of different sizes."""
    if len(before.changed) != len(after.changed):
        return Signals()
    old, new = rows_of(before), rows_of(after)
    moves = np.sqrt(np.square(new - old, dtype=np.float64).sum(axis=1))
    lengths = np.sqrt(np.square(old, dtype=np.float64).sum(axis=1))
    mean = float(lengths.mean()) or 1.0
    farthest = np.argsort(-moves, kind="stable")[:SHOWN_ROWS]
    whole = float(np.sqrt(np.square(lengths).sum())) or 1.0
    return Signals(
        drift=float(np.sqrt(np.square(moves).sum())) / whole,
        largest_move=float(moves.max(initial=0.0)) / mean,
        rows=tuple((int(row), float(moves[row]) / mean) for row in farthest if moves[row] > 0),
    )


def rows_of(model: Published) -> FloatMatrix:
    """Vectors, and biases beside them where the method has them."""
    biases = model.content.tables.get("biases")
    return model.vectors if biases is None else np.column_stack((model.vectors, biases))
