"""First values: normal numbers, drawn like every other choice from (seed, user or item, column).

The server draws its items' factors and biases; each device draws its own vector and tells nobody. Two pairs of
uniform words make four normal numbers (Box and Muller, 1958). A table is drawn row by row by compiled code, or, by a
server that should start without compiling anything, whole columns at a time; the numbers are the same.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.compiling import compiled
from federank.models.rows import inlined
from federank.protocol.draws import ITEM_BIASES, ITEM_FACTORS, WORDS, words, words_wrap_around


@inlined
def normal_pair(first: Any, second: Any) -> Any:
    """Two independent normal numbers of mean 0 and deviation 1, from two random words."""
    # The half keeps the logarithm away from zero.
    radius = np.sqrt(-2.0 * np.log((np.float64(first) + 0.5) / WORDS))
    angle = 2.0 * np.pi * np.float64(second) / WORDS
    return radius * np.cos(angle), radius * np.sin(angle)


@compiled
def _fill(table: FloatMatrix, columns: int, seed: int, purpose: int, first_row: int, scale: float) -> None:
    for row in range(len(table)):
        for block in range((columns + 3) // 4):
            a, b, c, d = words(seed, first_row + row, purpose, 0, block)
            one, two = normal_pair(a, b)
            three, four = normal_pair(c, d)
            for position, value in enumerate((one, two, three, four)):
                if 4 * block + position < columns:
                    table[row, 4 * block + position] = np.float32(scale * value)


def normal_rows(
    rows: int, columns: int, *, seed: int, purpose: int, scale: float, width: int | None = None, first_row: int = 0
) -> FloatMatrix:
    """Normal numbers of mean 0 and deviation `scale`; rows are padded with zeros to `width`."""
    table = np.zeros((rows, width or columns), dtype=np.float32)
    _fill(table, columns, seed, purpose, first_row, scale)
    return table


def normal_columns(
    rows: int, columns: int, *, seed: int, purpose: int, scale: float, width: int | None = None
) -> FloatMatrix:
    """The numbers of `normal_rows`, by whole columns, with nothing to compile."""
    table = np.zeros((rows, width or columns), dtype=np.float32)
    for block in range((columns + 3) // 4):
        with words_wrap_around():
            a, b, c, d = words(seed, np.arange(rows, dtype=np.uint32), purpose, 0, block)
        drawn = np.column_stack((*normal_pair(a, b), *normal_pair(c, d)))
        first = 4 * block
        table[:, first : min(first + 4, columns)] = scale * drawn[:, : columns - first]
    return table


class Draw(Protocol):
    """`normal_rows` or `normal_columns`."""

    def __call__(
        self, rows: int, columns: int, *, seed: int, purpose: int, scale: float, width: int | None = None
    ) -> FloatMatrix:
        """A table of normal numbers."""
        ...


def first_items(
    n_items: int,
    factors: int,
    *,
    seed: int,
    scale: float,
    biases: Literal["normal", "zero"],
    width: int | None = None,
    draw: Draw = normal_rows,
) -> tuple[FloatMatrix, FloatVector]:
    """The item vectors and biases that a federation begins with, in a simulation and in the world."""
    vectors = draw(n_items, factors, seed=seed, purpose=ITEM_FACTORS, scale=scale, width=width)
    if biases == "zero":
        return vectors, np.zeros(n_items, dtype=np.float32)
    return vectors, draw(n_items, 1, seed=seed, purpose=ITEM_BIASES, scale=scale)[:, 0].copy()
