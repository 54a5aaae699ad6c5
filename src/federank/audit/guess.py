"""What an attack answers, whatever it was given.

An attack is a function of a view, which is all that a curious server has about some people (each family of methods has
its own: pairs/view.py, ratings/view.py, squares/view.py). Nothing of a device's private state is in a view, so no
attack can peek; an import contract holds attacks to that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector

BASELINE = "popularity"
"""The attack that needs no Update at all: what others gain is measured against it."""


class Guess(NamedTuple):
    """An attack's answer: how likely each item is somebody's, and how many of the first it claims to be theirs."""

    scores: FloatMatrix  # people x items, higher is likelier
    sizes: LongVector  # people


Attack = Callable[[Any], Guess]
"""Sees a view of its family and threat model, answers with a Guess."""


def claim(items: NDArray[np.bool_]) -> Guess:
    """The answer of an attack that names a set of items and tells nothing about the order of the others."""
    return Guess(items.astype(np.float32), items.sum(axis=1, dtype=np.int64))


def claim_typical(scores: FloatMatrix, typical_size: int) -> Guess:
    """The answer of an attack that only ranks: it claims as many items as a device has on average."""
    return Guess(scores, np.full(len(scores), typical_size, dtype=np.int64))


def standardised(scores: FloatMatrix) -> FloatMatrix:
    """Each person's scores with mean 0 and deviation 1; all zero where they are all the same."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation: FloatMatrix = centred.std(axis=1, keepdims=True)
    result: FloatMatrix = centred / np.where(deviation > 0, deviation, 1)
    return result
