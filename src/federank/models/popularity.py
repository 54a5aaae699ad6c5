"""Scores that know nothing about the person: how popular an item is, and nothing at all.

Both are floors to stand other methods on: one that learns tastes must beat the first, and one that learns anything
must beat the second.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector


def popularity_scores(popularity: LongVector) -> FloatVector:
    """Each item's share of all interactions; equally popular items have equal scores."""
    return (popularity / max(int(popularity.sum()), 1)).astype(np.float32)


def random_scores(seed: int, users: IntVector, n_items: int) -> FloatMatrix:
    """Scores in [0, 1) that depend on the seed and the user alone, one row per user.

    Each user has a bit generator of their own, keyed by (seed, user), so it does not matter who else is asked
    about. The upper 24 bits of each word are all that a float32 holds.
    """
    words = (np.random.PCG64(np.random.SeedSequence((seed, int(user)))).random_raw(n_items) for user in users)
    scores = np.empty((len(users), n_items), dtype=np.float32)
    for row, word in enumerate(words):
        scores[row] = (np.asarray(word) >> np.uint64(40)) * np.float32(2.0**-24)
    return scores
