"""Randomised response: a yes or no that its owner can always deny, and what many of them say together (Warner, 1965).

A device tells the truth with probability 3/4 and the opposite otherwise, so an answer is worth e^epsilon = 3 to whoever
reads it. Of n answers with a share y of yes, the share of true yes is

    (y - 1/4) / (3/4 - 1/4)      with a deviation of sqrt(y (1 - y) / n) / (3/4 - 1/4)
"""

from __future__ import annotations

import math
from typing import NamedTuple

TRUTH = 0.75
"""How often an answer is the truth."""
EPSILON = math.log(TRUTH / (1 - TRUTH))
ABSOLUTE, SQUARED = MEASURES = ("absolute", "squared")
"""Where ratings are predicted: whether an answer is about how far off one is, or about the square of that."""
_CONFIDENCE = 1.96  # deviations of a 95 % interval


class Estimate(NamedTuple):
    """A share of true yes, and its 95 % interval; the interval may reach beyond 0 and 1."""

    share: float
    low: float
    high: float


def answered(truth: bool, chance: float) -> bool:
    """What is said, by a draw from 0 to 1."""
    return truth if chance < TRUTH else not truth


def estimate(answers: int, yes: int) -> Estimate:
    """What so many answers, so many of them yes, say together."""
    said = yes / answers
    share = (said - (1 - TRUTH)) / (2 * TRUTH - 1)
    # One yes and one no more than there were: no interval is of width 0.
    smoothed = (yes + 1) / (answers + 2)
    far = _CONFIDENCE * math.sqrt(smoothed * (1 - smoothed) / answers) / (2 * TRUTH - 1)
    return Estimate(share, share - far, share + far)
