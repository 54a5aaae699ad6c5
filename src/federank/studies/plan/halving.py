"""Successive halving: most combinations of a grid show early that they will not win.

Every combination is trained for a tenth of the budget; the better third goes on to three times as many epochs, the
better third of those to three times as many again, until one is left or the budget is reached (Jamieson and
Talwalkar, 2016, with the factor 3 of Li et al., 2018). Whoever is behind by no more than chance may be goes on too: two
learning rates that are alike after two epochs may differ after twenty. What is left is trained and judged to the end,
as it would be without. Nothing is carried over from the shorter runs, so each of them is a run like any other, kept and
resumed.
"""

from __future__ import annotations

import math

FIRST = 0.1
"""The share of the budget that everything is tried for."""
FACTOR = 3
"""One in so many goes on, to so many times the epochs."""


def rungs(combinations: int, budget: int) -> list[tuple[int, int]]:
    """For each step before the last: how many epochs everything that is left is tried for, and how many go on."""
    steps, left, epochs = [], combinations, max(1, math.ceil(FIRST * budget))
    while left > 1 and epochs < budget:
        left = math.ceil(left / FACTOR)
        steps.append((epochs, left))
        epochs *= FACTOR
    return steps


def within_chance(best: float, value: float, trials: int) -> bool:
    """Whether a share of hits in so many trials may be behind the best by chance alone: two standard errors of counts.

    Errors, which are negative here because lower is better, and other values that are no shares: two percent.
    """
    if best < 0:
        return value >= 1.02 * best
    return best - value <= 2 * math.sqrt(best / trials)
