"""Who is most alike: the k nearest rows of a table of ones and zeros, by cosine.

A row is a user with their items, or an item with its users. Two rows that share c of their n_a and n_b entries
have the similarity

    c / (sqrt(n_a n_b) + shrinkage)

which is the cosine where shrinkage is 0; a larger shrinkage trusts few shared entries less.

1. For each row, walk over its entries, and over whoever else has each entry: that counts c for all rows that
   share anything, and touches no other. No rows x rows table is ever made.
2. Keep the k most similar in a heap with the worst on top, then sort it best first. Of equals the smaller number
   stays, so that the answer does not depend on the order of the work. A row is not its own neighbour.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from scipy.sparse import csr_array

from federank.arrays import FloatMatrix, FloatVector, IntMatrix, IntVector, LongVector
from federank.compiling import compiled
from federank.data.interactions import Profiles

NOBODY = -1
_ROWS_AT_A_TIME = 64
_STRETCHES = 256


class Neighbours(NamedTuple):
    """The nearest rows of each row, best first; where a row has fewer than k, the rest is -1 with similarity 0."""

    rows: IntMatrix
    similarities: FloatMatrix

    def matrix(self) -> csr_array:
        """Similarities as a sparse matrix: entry (a, b) is there if b is one of the k nearest of a."""
        is_there = self.rows != NOBODY
        starts = np.concatenate(([0], np.cumsum(is_there.sum(axis=1))))
        shape = (len(self.rows), len(self.rows))
        return csr_array((self.similarities[is_there], self.rows[is_there], starts), shape=shape)


def nearest(profiles: Profiles, owners: Profiles, k: int, shrinkage: float = 0.0) -> Neighbours:
    """The k nearest of each row of `profiles`; `owners` is the same table transposed."""
    count = len(profiles.starts) - 1
    width = min(k, max(count - 1, 0))
    rows = np.full((count, width), NOBODY, dtype=np.int32)
    similarities = np.full((count, width), -1, dtype=np.float32)  # an empty place is worse than anyone
    if width:
        _nearest(profiles.starts, profiles.items, owners.starts, owners.items, float(shrinkage), rows, similarities)
    return Neighbours(rows, np.maximum(similarities, 0))


@compiled(parallel=True)
def _nearest(
    starts: LongVector,
    entries: IntVector,
    owner_starts: LongVector,
    owners: IntVector,
    shrinkage: float,
    rows: IntMatrix,
    similarities: FloatMatrix,
) -> None:
    count = len(starts) - 1
    # Rows in a stretch share one array of counts, as long as the table: few stretches, but more than there are cores.
    together = max(_ROWS_AT_A_TIME, -(-count // _STRETCHES))
    for stretch in numba.prange(-(-count // together)):
        shared = np.zeros(count, dtype=np.int32)
        met = np.empty(count, dtype=np.int32)
        for row in range(stretch * together, min(count, (stretch + 1) * together)):
            n_met = _count_shared(row, starts, entries, owner_starts, owners, shared, met)
            size = float(starts[row + 1] - starts[row])
            for other in met[:n_met]:
                if other != row:
                    both = np.sqrt(size * float(starts[other + 1] - starts[other]))
                    _offer(rows[row], similarities[row], other, np.float32(shared[other] / (both + shrinkage)))
                shared[other] = 0
            _best_first(rows[row], similarities[row])


@compiled
def _count_shared(
    row: int,
    starts: LongVector,
    entries: IntVector,
    owner_starts: LongVector,
    owners: IntVector,
    shared: IntVector,
    met: IntVector,
) -> int:
    """Count into `shared` how many entries each other row has in common with this one; list who was met."""
    n_met = 0
    for entry in entries[starts[row] : starts[row + 1]]:
        for other in owners[owner_starts[entry] : owner_starts[entry + 1]]:
            if shared[other] == 0:
                met[n_met] = other
                n_met += 1
            shared[other] += 1
    return n_met


@compiled
def _offer(rows: IntVector, similarities: FloatVector, candidate: int, similarity: np.float32) -> None:
    """Let a candidate take the place of the worst one kept, if it is better."""
    if _worse(rows[0], similarities[0], candidate, similarity):
        rows[0], similarities[0] = candidate, similarity
        _sink(rows, similarities, len(rows))


@compiled
def _best_first(rows: IntVector, similarities: FloatVector) -> None:
    """Sort a heap: the worst goes to the end, again and again."""
    for last in range(len(rows) - 1, 0, -1):
        rows[0], rows[last] = rows[last], rows[0]
        similarities[0], similarities[last] = similarities[last], similarities[0]
        _sink(rows, similarities, last)


@compiled
def _sink(rows: IntVector, similarities: FloatVector, size: int) -> None:
    """Bring the worst of a heap back to its top, after something else was put there."""
    parent, child = 0, 1
    while child < size:
        if child + 1 < size and _worse(rows[child + 1], similarities[child + 1], rows[child], similarities[child]):
            child += 1
        if not _worse(rows[child], similarities[child], rows[parent], similarities[parent]):
            return
        rows[parent], rows[child] = rows[child], rows[parent]
        similarities[parent], similarities[child] = similarities[child], similarities[parent]
        parent, child = child, 2 * child + 1


@compiled
def _worse(row: int, similarity: np.float32, other: int, other_similarity: np.float32) -> bool:
    """Whether a row is a worse neighbour than another: less similar, or as similar with a greater number."""
    return bool(similarity < other_similarity or (similarity == other_similarity and row > other))
