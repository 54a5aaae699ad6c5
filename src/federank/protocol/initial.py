"""First values: normal numbers, drawn like every other choice from (seed, user or item, column).

The server draws its items' factors and biases; each device draws its own vector and tells nobody. Two pairs of
uniform words make four normal numbers (Box and Muller, 1958).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import FloatMatrix
from federank.compiling import compiled
from federank.models.rows import inlined
from federank.protocol.draws import WORDS, words


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
            for place, value in enumerate((one, two, three, four)):
                if 4 * block + place < columns:
                    table[row, 4 * block + place] = np.float32(scale * value)


def normal_rows(
    rows: int, columns: int, *, seed: int, purpose: int, scale: float, width: int | None = None, first_row: int = 0
) -> FloatMatrix:
    """Normal numbers of mean 0 and deviation `scale`; rows are padded with zeros to `width`."""
    table = np.zeros((rows, width or columns), dtype=np.float32)
    _fill(table, columns, seed, purpose, first_row, scale)
    return table
