"""Signals: what the newest version did to the model, so that an operator sees a push or a broken fold.

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
