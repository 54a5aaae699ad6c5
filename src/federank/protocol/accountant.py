"""The accountant: what differential-privacy figure noise deserves, per person, over all their rounds.

In a round a person adds an Update of length at most C, and noise of deviation z C hides it. Somebody with any other
history in their place would have added another Update of length at most C: what the noise has to hide is a difference
of at most 2 C, so a round is a Gaussian mechanism of multiplier z / 2. Rounds are composed by their Renyi divergences
(dp-accounting), one after the other, each with what was published before. That the server picks devices at random is
not counted in anybody's favour, since the server knows whom it picked.

    epsilon at delta:  whatever is seen is at most e^epsilon times as likely, but for a probability of delta

A figure is stated only for noise that hides all there is to see: on all rows, or on sums that nobody drops out of.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from federank.arrays import LongVector
from federank.errors import SettingError
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
    if settings.noise_on == "sent-rows":
        return "Noise on the rows that are sent does not hide which rows are sent."
    if settings.noise_on == "sums" and (recipe.online < 1 or recipe.dropout > 0 or len(recipe.trace)):
        return "Where devices are away or drop out, a sum has less noise than was planned."
    return None


@cache
def epsilon_of(noise: float, rounds: int, delta: float) -> float:
    """Epsilon at delta after so many rounds with noise of so many times the clip."""
    if rounds == 0:
        return 0.0
    try:
        from dp_accounting import dp_event, rdp
    except ImportError:
        raise SettingError(
            "The figure of the noise is worked out by dp-accounting, which is not installed: "
            'pip install "federank[privacy]".'
        ) from None
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(noise / 2), rounds)
    return float(accountant.get_epsilon(delta))
