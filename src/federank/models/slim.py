"""SLIM (Ning and Karypis, 2011): the few item-item weights that explain everybody's history, by coordinate descent.

    w = argmin 1/2 |x_j - X w|^2 + l2/2 |w|^2 + l1 |w|_1     with w >= 0 and w_j = 0, for each item j by itself

X is users x items of ones, G = X'X how often items go together. One weight, all others standing still, is best at

    w_k = max(0, (G_kj - sum over i != k of G_ki w_i - l1) / (G_kk + l2))

and a weight whose item never goes with j is 0. So only the items that do are looked at: all of them once, then those
with a weight until nothing moves, then all again; done when the look at all moves nothing. What is left to explain
(G_kj - sum G_ki w_i) is kept up to date, so a weight that stays costs nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from federank.arrays import FloatVector, IntVector, LongVector, RealVector
from federank.compiling import compiled

_LOOKS = 1_000
"""The most looks at one item's weights; a handful is what it takes."""


def items_together(histories: csr_array) -> csr_array:
    """G: how many people have both of two items."""
    ones = csr_array(histories, dtype=np.float32)
    together = csr_array(ones.T @ ones)
    together.sort_indices()
    return together


@compiled(allocates=False)
def explain_item(
    item: int,
    starts: LongVector,
    others: IntVector,
    counts: FloatVector,
    diagonal: FloatVector,
    l1: float,
    l2: float,
    tolerance: float,
    left: RealVector,
    weights: RealVector,
    marks: IntVector,
) -> None:
    """The weights of the items that go with this one, in `weights`; `left`, `marks` are room, as long as the catalogue.

    `starts`, `others` and `counts` are G row by row. Of `weights` only the entries of this item's row count.
    """
    begin, end = starts[item], starts[item + 1]
    for place in range(begin, end):
        other = others[place]
        left[other], weights[other], marks[other] = counts[place], 0.0, item
    marks[item] = -1
    everything = True
    for _ in range(_LOOKS):
        moved = 0.0
        for place in range(begin, end):
            other = others[place]
            held = weights[other]
            if other == item or (held == 0.0 and not everything):
                continue
            best = max(0.0, (left[other] + diagonal[other] * held - l1) / (diagonal[other] + l2))
            change = best - held
            if change != 0.0:
                weights[other] = best
                moved = max(moved, abs(change))
                for position in range(starts[other], starts[other + 1]):
                    third = others[position]
                    if marks[third] == item:
                        left[third] -= change * counts[position]
        if moved <= tolerance:
            if everything:
                return
            everything = True
        else:
            everything = False


def weights_of(
    together: csr_array, span: range, l1: float, l2: float, tolerance: float
) -> list[tuple[IntVector, FloatVector]]:
    """For each of these items, the items that speak for it and how much."""
    starts, others = together.indptr.astype(np.int64), together.indices.astype(np.int32)
    counts, diagonal = together.data.astype(np.float32), together.diagonal().astype(np.float32)
    room = np.zeros(len(diagonal)), np.zeros(len(diagonal)), np.full(len(diagonal), -1, dtype=np.int32)
    found = []
    for item in span:
        explain_item(item, starts, others, counts, diagonal, l1, l2, tolerance, *room)
        row = others[starts[item] : starts[item + 1]]
        values = np.where(row == item, 0.0, room[1][row])
        kept = values > 0
        found.append((row[kept], values[kept].astype(np.float32)))
    return found
