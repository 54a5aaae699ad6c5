"""Defences around aggregation: bounds on what one server step may do to the model.

One upload does not show whether a client is malicious, and under secure aggregation no upload is seen. So the defences
compare the model before and after a server step:

1. a row moves at most as far as the quantile `move_quantile` of the moved rows;
2. afterwards a moved row is at most as long as the quantile `row_quantile` of all rows, and no bias is higher than that
   quantile.

An item that users like is at the bound together with many others; a pushed item cannot get above them. Cost and effect
are measured in audit/poisoning.py (docs/operating.md). Quantiles of a handful of items mean nothing, so a small
catalogue, or a step that moves few rows, is not bounded.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector
from federank.federation import wire

LEAST_ITEMS = 100
"""Minimum number of items for any bound."""
LEAST_MOVED = 20
"""Minimum number of moved rows for bounds on moves."""


class Defences(NamedTuple):
    """Bounds on a server step, as quantiles; 1: no bound."""

    row_quantile: float = 0.8
    move_quantile: float = 0.88

    @property
    def are_off(self) -> bool:
        """Whether nothing is bounded."""
        return self.row_quantile >= 1 and self.move_quantile >= 1


NO_DEFENCES = Defences(1.0, 1.0)


class Rows(NamedTuple):
    """The rows of a model: vectors, and biases if the method has them."""

    vectors: FloatMatrix
    biases: FloatVector | None = None


class Defended(NamedTuple):
    """The rows after a bounded step, and the number of bounded moves and rows."""

    rows: Rows
    held: int
    capped: int


def defend(defences: Defences, before: Rows, after: Rows) -> Defended:
    """Bound the rows after a step."""
    if defences.are_off or len(after.vectors) < LEAST_ITEMS:
        return Defended(after, 0, 0)
    moved = _moved(before, after)
    rows, held = bound_moves(before, after, moved, defences.move_quantile)
    rows, capped = cap_rows(rows, moved, defences.row_quantile)
    return Defended(rows, held, capped)


def bound_moves(before: Rows, after: Rows, moved: NDArray[np.bool_], quantile: float) -> tuple[Rows, int]:
    """Bound the moves by this quantile of the moved rows; also returns how many were longer."""
    if quantile >= 1 or np.count_nonzero(moved) < LEAST_MOVED:
        return after, 0
    moves = after.vectors - before.vectors
    squared = np.einsum("ij,ij->i", moves, moves)
    if after.biases is not None and before.biases is not None:
        squared = squared + np.square(after.biases - before.biases)
    lengths = np.sqrt(squared)
    most = np.quantile(lengths[moved], quantile)
    far = lengths > most
    if not far.any():
        return after, 0
    part = (most / lengths[far]).astype(np.float32)
    vectors = after.vectors.copy()
    vectors[far] = before.vectors[far] + part[:, None] * moves[far]
    biases = after.biases
    if biases is not None and before.biases is not None:
        biases = biases.copy()
        biases[far] = before.biases[far] + part * (biases[far] - before.biases[far])
    return Rows(vectors, biases), int(np.count_nonzero(far))


def cap_rows(rows: Rows, moved: NDArray[np.bool_], quantile: float) -> tuple[Rows, int]:
    """Bound moved rows, and their biases, by this quantile of the catalogue; also returns how many were larger."""
    if quantile >= 1:
        return rows, 0
    lengths = np.sqrt(np.einsum("ij,ij->i", rows.vectors, rows.vectors))
    known = lengths > 0  # rows of zeros are of unknown items
    if np.count_nonzero(known) < LEAST_ITEMS:
        return rows, 0
    longest = np.quantile(lengths[known], quantile)
    long = moved & (lengths > longest)
    vectors, biases, cut = rows.vectors, rows.biases, long
    if long.any():
        vectors = vectors.copy()
        vectors[long] *= (longest / lengths[long]).astype(np.float32)[:, None]
    if biases is not None:
        highest = np.quantile(biases, quantile)
        high = moved & (biases > highest)
        biases, cut = np.where(high, np.float32(highest), biases).astype(np.float32), long | high
    return Rows(vectors, biases), int(np.count_nonzero(cut))


def _moved(before: Rows, after: Rows) -> NDArray[np.bool_]:
    moved: NDArray[np.bool_] = (before.vectors != after.vectors).any(axis=1)
    if after.biases is not None and before.biases is not None:
        moved |= before.biases != after.biases
    return moved


# Rows of an upload with bounded norm.


class Shortened(NamedTuple):
    """An upload with bounded rows, and how many were too long."""

    update: Any
    rows: int


def shortened(update: Any, most_norm: float) -> Shortened:
    """Scale each item's numbers, as one row, down to a norm of at most `most_norm`.

    An array without items counts as one row.
    """
    named = {part.metadata["axes"][0] for part in wire.arrays(update) if part.metadata["dtype"] == "index"} | {"items"}
    groups: dict[str, list[tuple[str, wire.Array]]] = {}
    for part in wire.arrays(update):
        values, axis = getattr(update, part.name), part.metadata["axes"][:1]
        if values.dtype.kind == "f" and values.size:
            by_item = axis and axis[0] in named
            rows = values.reshape(len(values) if by_item else 1, -1)
            groups.setdefault(axis[0] if by_item else part.name, []).append((part.name, rows))
    changes: dict[str, wire.Array] = {}
    count = 0
    for parts in groups.values():
        largest = max(float(np.abs(rows).max()) for _, rows in parts)
        if largest * math.sqrt(sum(rows.shape[1] for _, rows in parts)) < 0.999 * most_norm:
            continue  # no row can be too long: true for nearly every upload
        # In double precision: the square of a large float32 would overflow.
        squared = sum(np.einsum("ij,ij->i", rows, rows, dtype=np.float64) for _, rows in parts)
        long = np.asarray(squared > np.float64(most_norm) ** 2)
        if long.any():
            scale = np.ones(len(long))
            scale[long] = most_norm / np.sqrt(np.asarray(squared)[long])
            for name, rows in parts:
                changes[name] = (rows * scale.astype(rows.dtype)[:, None]).reshape(getattr(update, name).shape)
            count += int(np.count_nonzero(long))
    return Shortened(replace(update, **changes) if changes else update, count)
