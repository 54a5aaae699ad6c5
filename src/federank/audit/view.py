"""What an attack is given, and what it answers.

A `View` is all that a curious server has about some people: what it noted of their Updates over the whole run, one more
Update of each, and the public model. Nothing of a device's private state is in it, so no attack can peek.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector
from federank.protocol.messages import Broadcast, Update


class View(NamedTuple):
    """What the server knows: one row, or one Update, per person."""

    times_positive: NDArray[np.uint8]  # people x items: in how many Updates it came with a bias above zero
    seen_negative: NDArray[np.bool_]  # people x items: whether it ever came with a bias below zero
    negative_rows: LongVector  # people: rows with a bias below zero, over all Updates
    updates: list[Update]  # one more of each person, in answer to the Broadcast
    broadcast: Broadcast
    negative_regulariser: np.float32  # a public setting of the run
    typical_size: int  # interactions per device: public, since rounds per epoch are


class Guess(NamedTuple):
    """An attack's answer: how likely each item is somebody's, and how many of the first it claims to be theirs."""

    scores: FloatMatrix  # people x items, higher is likelier
    sizes: LongVector  # people


def claim(items: NDArray[np.bool_]) -> Guess:
    """The answer of an attack that names a set of items and tells nothing about the order of the others."""
    return Guess(items.astype(np.float32), items.sum(axis=1, dtype=np.int64))


def claim_typical(scores: FloatMatrix, view: View) -> Guess:
    """The answer of an attack that only ranks: it claims as many items as a device has on average."""
    return Guess(scores, np.full(len(scores), view.typical_size, dtype=np.int64))
