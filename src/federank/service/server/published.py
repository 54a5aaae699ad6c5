"""The published model: what the server hands out, whole or only the rows that changed since a version.

Each row remembers the version that changed it last, so that "what is new since version V" is one comparison. A model is
never changed once it is published: a fold makes a new one, and devices that still work on an older one keep it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load, save

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector

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


def encode_rows(model: Published, rows: IntVector, round_number: int) -> bytes:
    """Some rows of the model as a Broadcast on the wire."""
    whole = len(rows) == len(model.biases)
    arrays = {
        "items": rows,
        "vectors": np.ascontiguousarray(model.vectors if whole else model.vectors[rows]),
        "biases": np.ascontiguousarray(model.biases if whole else model.biases[rows]),
    }
    about = {"round": f"{round_number:010d}", "version": f"{model.version:010d}"}
    content: bytes = save(arrays, metadata=about)
    return content


def apply_rows(model: Published, version: int, content: bytes) -> Published:
    """The model of a later version, from the rows that it changed."""
    arrays: dict[str, Any] = load(content)
    vectors, biases, changed = model.vectors.copy(), model.biases.copy(), model.changed.copy()
    items = arrays["items"]
    vectors[items], biases[items], changed[items] = arrays["vectors"], arrays["biases"], version
    return Published(version, vectors, biases, changed)


def whole_model(version: int, content: bytes, changed: bytes) -> Published:
    """A model that was stored whole."""
    arrays: dict[str, Any] = load(content)
    rows: LongVector = np.frombuffer(changed, dtype="<i8").astype(np.int64)
    return Published(version, arrays["vectors"], arrays["biases"], rows)


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
        content = encode_rows(model, model.rows_since(have), round_number)
        self._kept[key] = content
        self._bytes += len(content)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return content
