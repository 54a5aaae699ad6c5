"""What an attack is given, and what it answers.

A `View` is all that a curious server has about some people. Which one depends on the threat model:

    View        of single Updates: what was noted over the whole run (or seen in one Update alone), the latest Update
    SumsView    of sums over cohorts: how a person's cohorts differ from the others'

Both hold the public model, and what is public about policies. Nothing of a device's private state is in them, so no
attack can peek. `Lessons` are what the attacker has learnt from devices of its own (attacks/learned.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector, RealVector
from federank.protocol.messages import Broadcast, Update


class KnownPolicies(NamedTuple):
    """What a server may know of each person's policy: its kind and its numbers, not what it does to which item."""

    liked: RealVector  # people: the probability that an item of theirs is ever sent as liked, where that is for life
    unliked: RealVector  # people: the same of an item they do not have; 0 where there are no decoys
    excluding: NDArray[np.bool_]  # people: whether their negatives are never items of their own


class Lessons(NamedTuple):
    """A logistic regression: what each feature of a (person, item) says about ownership."""

    centres: RealVector
    scales: RealVector
    weights: RealVector
    intercept: float


class View(NamedTuple):
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


AnyView = View | SumsView


class Guess(NamedTuple):
    """An attack's answer: how likely each item is somebody's, and how many of the first it claims to be theirs."""

    scores: FloatMatrix  # people x items, higher is likelier
    sizes: LongVector  # people


def claim(items: NDArray[np.bool_]) -> Guess:
    """The answer of an attack that names a set of items and tells nothing about the order of the others."""
    return Guess(items.astype(np.float32), items.sum(axis=1, dtype=np.int64))


def claim_typical(scores: FloatMatrix, view: AnyView) -> Guess:
    """The answer of an attack that only ranks: it claims as many items as a device has on average."""
    return Guess(scores, np.full(len(scores), view.typical_size, dtype=np.int64))


def standardised(scores: FloatMatrix) -> FloatMatrix:
    """Each person's scores with mean 0 and deviation 1; all zero where they are all the same."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation: FloatMatrix = centred.std(axis=1, keepdims=True)
    result: FloatMatrix = centred / np.where(deviation > 0, deviation, 1)
    return result
