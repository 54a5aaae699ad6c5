"""The published model: what the server hands out, whole or only the rows that changed since a version.

Each row remembers the version that changed it last, so that "what is new since version V" is one comparison. A model is
never changed once it is published: a fold makes a new one, and devices that still work on an older one keep it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.protocol.messages import Broadcast, broadcast_of_ours, encode

CACHE_BYTES = 64 * 2**20
"""Room for encoded messages, so that devices that ask for the same rows are handed the same bytes."""


class Published(NamedTuple):
    """The shared model as of a version."""

    version: int
    vectors: FloatMatrix
    biases: FloatVector
    changed: LongVector  # per row: the version that changed it last

    def rows_since(self, have: int | None) -> IntVector:
        """The rows that a device needs that has version `have`; all of them where that says nothing."""
        if have is None or not 0 <= have <= self.version:
            return np.arange(len(self.biases), dtype=np.int32)
        return np.flatnonzero(self.changed > have).astype(np.int32)

    def followed_by(self, vectors: FloatMatrix, biases: FloatVector) -> Published:
        """The next version, after a fold."""
        differs = np.any(vectors != self.vectors, axis=1) | (biases != self.biases)
        changed = np.where(differs, self.version + 1, self.changed)
        return Published(self.version + 1, vectors, biases, changed)

    def broadcast(self, have: int | None, round_number: int) -> Broadcast:
        """What a device that has version `have` is sent in this round."""
        rows = self.rows_since(have)
        if len(rows) == len(self.biases):
            return Broadcast(round_number, self.version, rows, self.vectors, self.biases)
        return Broadcast(round_number, self.version, rows, self.vectors[rows], self.biases[rows])

    def after(self, changes: Broadcast) -> Published:
        """The model of a later version, from the rows that it changed."""
        vectors, biases, changed = self.vectors.copy(), self.biases.copy(), self.changed.copy()
        items = changes.items
        vectors[items], biases[items], changed[items] = changes.vectors, changes.biases, changes.version
        return Published(changes.version, vectors, biases, changed)


def whole_model(content: bytes, changed: bytes) -> Published:
    """A model that was stored whole."""
    stored = broadcast_of_ours(content)
    rows: LongVector = np.frombuffer(changed, dtype="<i8").astype(np.int64)
    return Published(stored.version, stored.vectors, stored.biases, rows)


class EncodedRows:
    """The messages that were made lately, by what was asked for."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
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
        content = encode(model.broadcast(have, round_number))
        self._kept[key] = content
        self._bytes += len(content)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return content
