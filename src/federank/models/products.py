"""Products of tall matrices, such as items x factors, on threads: rows in blocks of one size.

A product's last bits depend on how its rows are divided, so they are divided by their number and never by the threads
at hand: any number of threads gives the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatVector, RealMatrix
from federank.workers import at_once

_BLOCK = 512


def tall_product(tall: NDArray[np.floating], small: RealMatrix, threads: int = 1) -> RealMatrix:
    """Tall x small, in double precision."""
    product = np.empty((len(tall), small.shape[1]))

    def work(worker: int) -> None:
        for rows in _blocks(len(tall), worker, threads):
            np.matmul(tall[rows].astype(np.float64, copy=False), small, out=product[rows])

    at_once(work, threads)
    return product


def weighted_gram(tall: RealMatrix, weights: FloatVector, threads: int = 1) -> RealMatrix:
    """Tall' diag(weights) tall: blocks side by side, added up in their order."""
    width = tall.shape[1]
    parts = np.zeros((-(-len(tall) // _BLOCK), width, width))

    def work(worker: int) -> None:
        for rows in _blocks(len(tall), worker, threads):
            parts[rows.start // _BLOCK] = (tall[rows] * weights[rows, None]).T @ tall[rows]

    at_once(work, threads)
    gram: RealMatrix = parts.sum(axis=0)
    return gram


def _blocks(rows: int, worker: int, threads: int) -> list[slice]:
    """The blocks of one worker."""
    return [slice(start, start + _BLOCK) for start in range(worker * _BLOCK, rows, threads * _BLOCK)]
