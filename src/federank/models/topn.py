"""The best N of a row of scores, without what the person already has.

Ties are broken by the item's number, smaller first, so that a list never depends on how it was computed. A score
that is not a number is never recommended.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, IntMatrix, IntVector
from federank.data.interactions import Profiles


def top_n(scores: FloatMatrix, users: IntVector, seen: Profiles, n: int) -> tuple[IntMatrix, FloatMatrix]:
    """The n best items of each row, best first, and their scores; -1 and -inf where fewer are left.

    Row k of `scores` (users x items) belongs to `users[k]`, whose items in `seen` are left out.
    """
    items = np.full((len(users), n), -1, dtype=np.int32)
    best = np.full((len(users), n), -np.inf, dtype=np.float32)
    for row, user in enumerate(users):
        values = np.where(np.isnan(scores[row]), -np.inf, scores[row])
        values[seen.of(int(user))] = -np.inf
        order = np.lexsort((np.arange(len(values)), -values))[:n]
        order = order[values[order] > -np.inf]
        items[row, : len(order)] = order
        best[row, : len(order)] = values[order]
    return items, best
