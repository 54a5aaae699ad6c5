"""First values of vectors where ratings are learnt: uniform numbers of mean zero, drawn like every other choice.

Whole columns at a time, with nothing to compile: a server and a device start with it. The numbers are those that the
engines draw row by row (engines/ratings/federation.py; a test compares).
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix
from federank.protocol.draws import WORDS, words, words_wrap_around


def uniform_rows(rows: int, columns: int, *, seed: int, purpose: int, span: float, first_row: int = 0) -> FloatMatrix:
    """Uniform numbers in a range of width `span` around zero; each is named by its row and column."""
    table = np.zeros((rows, columns), dtype=np.float32)
    numbers = np.arange(first_row, first_row + rows, dtype=np.uint32)
    for first in range(0, columns, 4):
        with words_wrap_around():
            drawn = np.column_stack(words(seed, numbers, purpose, 0, first // 4)).astype(np.float64)
        table[:, first : first + 4] = (span * (drawn / WORDS - 0.5))[:, : columns - first]
    return table
