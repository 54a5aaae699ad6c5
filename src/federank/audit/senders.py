"""People compared by what they have sent: whoever sends alike has alike.

Linked Updates give a server everybody's sent items, a data set like any other, and the oldest recommender does the
rest: a person's unknown items are those that similar people have sent, each weighted by how alike (cosine) they are.
The person themselves does not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank.arrays import FloatMatrix, IntVector


class Senders:
    """Everybody's sent items, as far as they are followed: what to compare a person with."""

    def __init__(self, times_positive: NDArray[np.uint8], rows: IntVector) -> None:
        self._rows = rows
        sent = sparse.csr_matrix(times_positive[rows] > 0, dtype=np.float32)
        norms = np.sqrt(np.asarray(sent.sum(axis=1)).ravel())
        self._alike = sparse.diags(1 / np.maximum(norms, 1)).astype(np.float32) @ sent

    def scores(self, times_positive: NDArray[np.uint8], rows: IntVector) -> FloatMatrix:
        """What those send who send like these people, who are rows of the same notes."""
        sent = sparse.csr_matrix(times_positive > 0, dtype=np.float32)
        likeness = np.asarray((sent @ self._alike.T).todense())
        likeness[rows[:, None] == self._rows[None, :]] = 0
        scores: FloatMatrix = np.asarray(likeness @ self._alike, dtype=np.float32)
        return scores
