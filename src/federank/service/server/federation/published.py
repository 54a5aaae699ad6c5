"""The published model: what the server hands out, whole or only the rows that changed since a version.

A model is tables with one row for each item, and whatever else its family's fold has to remember. Each row remembers
the version that changed it last, so that "what is new since version V" is one comparison. A model is never changed once
it is published: a fold makes a new one, and devices that still work on an older one keep it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load

from federank.arrays import FloatMatrix, IntVector, LongVector
from federank.protocol.wire import Array, encode_parts

CACHE_BYTES = 64 * 2**20
"""Room for encoded messages, so that devices that ask for the same rows are handed the same bytes."""


class Published(NamedTuple):
    """The shared model as of a version."""

    version: int
    tables: Mapping[str, Array]  # one row per item in each; `vectors` is always among them
    changed: LongVector  # per row: the version that changed it last
    state: Mapping[str, Array]  # what the next fold remembers of the last; only the leader has it

    @property
    def vectors(self) -> FloatMatrix:
        """The item vectors."""
        return self.tables["vectors"]

    def rows_since(self, have: int | None) -> IntVector:
        """The rows that a device needs that has version `have`; all of them where that says nothing."""
        if have is None or not 0 <= have <= self.version:
            return np.arange(len(self.changed), dtype=np.int32)
        return np.flatnonzero(self.changed > have).astype(np.int32)

    def rows(self, rows: IntVector) -> dict[str, Array]:
        """The tables cut down to some rows."""
        whole = len(rows) == len(self.changed)
        return {name: table if whole else table[rows] for name, table in self.tables.items()}

    def followed_by(self, tables: Mapping[str, Array], state: Mapping[str, Array]) -> Published:
        """The next version, after a fold."""
        differs = np.zeros(len(self.changed), dtype=np.bool_)
        for name, table in tables.items():
            different = table != self.tables[name]
            differs |= different if different.ndim == 1 else different.any(axis=1)
        return Published(self.version + 1, tables, np.where(differs, self.version + 1, self.changed), state)

    def stored(self, rows: IntVector, round_number: int) -> bytes:
        """Some rows as the store keeps them."""
        return encode_parts({"items": rows, **self.rows(rows)}, {"round": round_number, "version": self.version})

    def after(self, version: int, stored: bytes) -> Published:
        """A later version, from the rows that it changed."""
        parts = load(stored)
        items, changed = parts.pop("items"), self.changed.copy()
        tables = {name: table.copy() for name, table in self.tables.items()}
        for name, rows in parts.items():
            tables[name][items] = rows
        changed[items] = version
        return Published(version, tables, changed, {})


def first_model(tables: Mapping[str, Array], state: Mapping[str, Array]) -> Published:
    """What a federation begins with: version 0."""
    return Published(0, tables, np.zeros(len(tables["vectors"]), dtype=np.int64), state)


def whole_model(version: int, stored: bytes, changed: bytes) -> Published:
    """A model that was stored whole."""
    tables = load(stored)
    del tables["items"]
    rows: LongVector = np.frombuffer(changed, dtype="<i8").astype(np.int64)
    return Published(version, tables, rows, {})


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
