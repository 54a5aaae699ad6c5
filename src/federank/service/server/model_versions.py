"""The published model: what the server hands out, in full or only the rows that changed since a version.

A model is tables with one row for each item, what is true of all of it, and the state of its server step. Each row
remembers the version that changed it last, so that "what is new since version V" is one comparison. A model is never
changed once it is published: a server step makes a new one, and clients that still work on an older one keep it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealMatrix
from federank.federation.server import Content, Published, read_stored
from federank.federation.wire import Array, encode_parts

CACHE_BYTES = 64 * 2**20
"""Memory for encoded messages, so that clients that ask for the same rows are handed the same bytes."""


def stored_content(content: Content) -> bytes:
    """All of a content as bytes, with the state of the next server step: anyone who has it can go on."""
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
    return Published(0, np.zeros(content.n_items, dtype=np.int64), content)


def full_model(version: int, stored: bytes, changed: bytes) -> Published:
    """A model that was stored in full."""
    _, tables, overall = read_stored(stored)
    rows: LongVector = np.frombuffer(changed, dtype="<i8").astype(np.int64)
    return Published(version, rows, Content(tables, overall))


class EncodedRows:
    """The messages that were made lately, by what was asked for; `encode` is the served's."""

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


# Signals: what the newest version did to the model, so that an operator sees a push or a broken step; its extent.


SHOWN_ROWS = 5


class Signals(NamedTuple):
    """How far the model went from one version to the next, apart from rotation and scale.

    A server step may return the same model in another basis, or longer because there are more users. Neither changes a
    recommendation, so the newer factors are first aligned with the older ones (Procrustes).
    """

    drift: float = 0.0  # of all rows together: 0 for the same subspace, 1 for nothing in common
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
    norms = [np.square(part, dtype=np.float64).sum(axis=1).max(initial=0.0) for part in parts]
    return Extent(longest_row=float(np.sqrt(max(norms))))


def signals_of(before: Published, after: Published) -> Signals:
    """What happened between two versions; nothing is said of catalogues of different sizes."""
    if len(before.changed) != len(after.changed):
        return Signals()
    old = rows_of(before).astype(np.float64)
    new = aligned(rows_of(after).astype(np.float64), old)
    moves, lengths = np.linalg.norm(new - old, axis=1), np.linalg.norm(old, axis=1)
    mean = float(lengths.mean()) or 1.0
    farthest = np.argsort(-moves, kind="stable")[:SHOWN_ROWS]
    return Signals(
        drift=float(np.linalg.norm(moves)) / (float(np.linalg.norm(lengths)) or 1.0),
        largest_move=float(moves.max(initial=0.0)) / mean,
        rows=tuple((int(row), float(moves[row]) / mean) for row in farthest if moves[row] > 0),
    )


def aligned(rows: RealMatrix, old: RealMatrix) -> RealMatrix:
    """The rows, rotated and scaled to be as near as they can be to the old ones; as they are if either diverged."""
    if not (np.isfinite(rows).all() and np.isfinite(old).all()):
        return rows
    left, singular, right = np.linalg.svd(rows.T @ old)
    scale = float(singular.sum()) / (float(np.square(rows).sum()) or 1.0)
    turned: RealMatrix = scale * (rows @ (left @ right))
    return turned


def rows_of(model: Published) -> FloatMatrix:
    """Vectors, and biases beside them where the method has them."""
    tables = model.content.tables
    named = [tables[name] for name in ("vectors", "biases") if name in tables] or list(tables.values())
    return np.hstack([np.reshape(table, (len(table), -1)) for table in named])
