"""Signals: what the newest version did to the model, so that an operator sees a push or a broken fold; its extent.

Every worker works them out from two versions that it has, so they need no table. Rows are those of the catalogue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix
from federank.service.server.federation.published import Published

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
