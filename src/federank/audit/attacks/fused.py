"""Fused: everything above in one fixed rule, the strongest attacker here.

 1. What was ever sent as a positive comes first: it is certain.
 2. What was ever sent as a negative comes last: it is excluded.
 3. In between, the recovered vector decides.

How many items it claims: never an excluded one, always the certain ones, and in all as many as it takes the person to
have. That number shows in the negatives: of N items that somebody does not have, m drawn rows leave about N e^(-m/N)
unseen. With the catalogue of I items the unseen ones are I - N + N e^(-m/N) many, which gives N, once a device has sent
as many negative rows as there are items; before that, a typical history's size is assumed.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import LongVector
from federank.audit.attacks.vector import vector_recovery
from federank.audit.view import Guess, View

_STEPS = 50


def fused(view: View) -> Guess:
    """Certain items, then the recovered vector's order among those not excluded."""
    scores = vector_recovery(view).scores
    lowest, highest = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    scores = (scores - lowest) / np.maximum(highest - lowest, np.finfo(np.float32).tiny)  # from 0 to 1
    certain = view.times_positive > 0
    scores[view.seen_negative] -= 2
    scores[certain] += 2
    n_certain = certain.sum(axis=1, dtype=np.int64)
    not_excluded = (~view.seen_negative).sum(axis=1, dtype=np.int64)
    return Guess(scores, np.clip(profile_sizes(view), n_certain, not_excluded))


def profile_sizes(view: View) -> LongVector:
    """How many items each person is taken to have."""
    n_items = view.seen_negative.shape[1]
    drawn = view.negative_rows.astype(np.float64)
    unseen = n_items - view.seen_negative.sum(axis=1)
    sizes = np.full(len(drawn), float(view.typical_size))
    much = drawn >= n_items
    missing = np.full(int(much.sum()), float(n_items))
    for _ in range(_STEPS):  # a fixed point: N = I - unseen + N e^(-m/N)
        missing = n_items - unseen[much] + missing * np.exp(-drawn[much] / np.maximum(missing, 1.0))
    sizes[much] = n_items - missing
    rounded: LongVector = np.rint(sizes).astype(np.int64)
    return rounded
