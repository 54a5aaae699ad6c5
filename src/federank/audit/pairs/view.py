"""What a curious server of pair-wise learning knows about some people.

    View        of single Updates: what was noted over the whole run (or seen in one Update alone), the latest Update
    SumsView    of sums over cohorts: how a person's cohorts differ from the others'

Both hold the public model, and what is public about policies. `Lessons` are what the attacker has learnt from devices
of its own (attacks/learned.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector, RealVector
from federank.audit.knowledge import KnownPolicies
from federank.protocol.messages import Broadcast, Update


class Lessons(NamedTuple):
    """A logistic regression: what each feature of a (person, item) says about ownership."""

    centres: RealVector
    scales: RealVector
    weights: RealVector
    intercept: float


class PairsView(NamedTuple):
    """What the server knows from single Updates: one row, or one Update, per person."""

    times_positive: NDArray[np.uint8]  # people x items: in how many Updates it came with a bias above zero
    seen_negative: NDArray[np.bool_]  # people x items: whether it ever came with a bias below zero
    negative_rows: LongVector  # people: rows with a bias below zero, over all Updates
    updates: list[Update]  # one more of each person, in answer to the Broadcast
    vectors: FloatMatrix  # people x factors: each one's own vector, recovered from that Update
    broadcast: Broadcast
    typical_size: int  # interactions per device: public, since rounds per epoch are
    policies: KnownPolicies
    neighbours: FloatMatrix | None = None  # people x items: what those send who send alike; none where nobody is linked
    lessons: Lessons | None = None  # what the attacker's own devices have taught it
    lessons_held_back: Lessons | None = None  # the same about items that were never sent


class SumsView(NamedTuple):
    """What the server knows from sums: a person's cohorts against all cohorts, one row per person."""

    differences: FloatMatrix  # people x items: bias sums where they took part less all others', by chance's deviation
    vectors: FloatMatrix  # people x factors: a person's own vector, as far as differences of sums give it
    broadcast: Broadcast
    typical_size: int
    policies: KnownPolicies
    lessons: Lessons | None = None
    lessons_held_back: Lessons | None = None


AnyView = PairsView | SumsView
