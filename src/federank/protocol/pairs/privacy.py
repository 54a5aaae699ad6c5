"""What may be said of a run's noise: a differential-privacy figure, or why there is none.

A figure (accountant.py) is stated only for noise that hides all there is to see: on all rows, or on sums that nobody
drops out of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import LongVector
from federank.protocol.accountant import epsilon_of
from federank.protocol.pairs.recipes import FPLSettings, Recipe

_SEES = {
    "all-rows": "each device's Updates, linkable over rounds",
    "sums": "sums over all devices of a round, and nothing else",
}


def privacy_figure(settings: FPLSettings, recipe: Recipe, rounds_of_each: LongVector) -> dict[str, Any]:
    """What may be said of a run's noise: the figure of the person with the most rounds and the median, or why not."""
    about: dict[str, Any] = {"clip": settings.clip, "noise": settings.noise, "noise_on": settings.noise_on}
    reason = _no_figure(settings, recipe)
    if reason is not None:
        return about | {"epsilon": None, "reason": reason}
    taking_part = rounds_of_each[rounds_of_each > 0]
    most, median = int(taking_part.max(initial=0)), int(np.median(taking_part)) if len(taking_part) else 0
    return about | {
        "epsilon": epsilon_of(settings.noise, most, settings.delta),
        "epsilon_median": epsilon_of(settings.noise, median, settings.delta),
        "delta": settings.delta,
        "rounds": most,
        "against": _SEES[settings.noise_on],
    }


def _no_figure(settings: FPLSettings, recipe: Recipe) -> str | None:
    if not settings.noise:
        return "Updates are clipped, but nothing hides them."
    if settings.noise_on == "sums" and (recipe.online < 1 or recipe.dropout > 0 or len(recipe.trace)):
        return "Where devices are away or drop out, a sum has less noise than was planned."
    return None
