"""Fused: everything above in one fixed rule, the strongest attacker here.

 1. What was ever sent as a positive comes first: it is certain.
 2. What was ever sent as a negative comes last: it is excluded.
 3. In between, the recovered vector decides.

How many items it claims: never an excluded one, always the certain ones, and in all as many as it takes the person to
have. That number shows in the negatives: of N items that somebody does not have, m drawn rows leave about N e^(-m/N)
unseen. With the catalogue of I items the unseen ones are I - N + N e^(-m/N) many, which gives N once a device has sent
three times as many negative rows as there are items. Before that it is too vague, and the attacker claims what is
certain; or, where nothing is, as many items as a device has on average.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import LongVector
from federank.audit.attacks.vector import vector_recovery
from federank.audit.view import Guess, View

_ENOUGH = 3
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
    sizes = profile_sizes(view, np.where(n_certain > 0, n_certain, view.typical_size))
    return Guess(scores, np.clip(sizes, n_certain, not_excluded))


def profile_sizes(view: View, otherwise: LongVector) -> LongVector:
    """How many items each person is taken to have: from the negatives where these are enough, or else as given."""
    n_items = view.seen_negative.shape[1]
    enough = view.negative_rows >= _ENOUGH * n_items
    drawn, seen = view.negative_rows[enough], view.seen_negative[enough].sum(axis=1)
    missing = seen.astype(np.float64)
    for _ in range(_STEPS):  # a fixed point: N = seen + N e^(-m/N)
        missing = seen + missing * np.exp(-drawn / missing)
    sizes = otherwise.copy()
    sizes[enough] = np.rint(n_items - missing)
    return sizes
