"""What may be said of a run's noise: a differential-privacy figure, or why there is none.

A figure (accountant.py) is stated only for noise that hides all there is to see: on all rows, or on sums that no one
drops out of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, LongVector
from federank._numerics.compiling import compiled
from federank.federation.rng import NOISE, normal_pair, words
from federank.methods.fpl.settings import FPLSettings, Recipe
from federank.methods.fpl.wire import Update
from federank.privacy.accountant import epsilon_of

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


# Clipping and noise: a disguise that goes around transmission and leaves its maths alone.


def clip_and_noise(recipe: Recipe, user: int, round_number: int, update: Update, n_items: int) -> Update:
    """The Update as it is sent: clipped and noisy, where the recipe asks for it."""
    if recipe.clip > 0:
        update = clipped(update, recipe.clip)
    if recipe.deviation > 0:
        update = with_noise(on_all_rows(update, n_items), recipe.deviation, recipe.seed, user, round_number)
    return update


def clipped(update: Update, clip: float) -> Update:
    """The same direction, at most this long."""
    numbers = np.concatenate((update.vectors.ravel(), update.biases), dtype=np.float64)
    length = np.sqrt(numbers @ numbers)
    if length <= clip:
        return update
    scale = np.float32(clip / length)
    return Update(update.items, scale * update.vectors, scale * update.biases)


def on_all_rows(update: Update, n_items: int) -> Update:
    """The same gradients, with a row of zeros for every other item."""
    vectors = np.zeros((n_items, update.vectors.shape[1]), dtype=np.float32)
    biases = np.zeros(n_items, dtype=np.float32)
    vectors[update.items], biases[update.items] = update.vectors, update.biases
    return Update(np.arange(n_items, dtype=np.int32), vectors, biases)


def with_noise(update: Update, deviation: float, seed: int, user: int, round_number: int) -> Update:
    """Every number of it with a normal one added."""
    noise = np.empty((len(update.items), update.vectors.shape[1] + 1), dtype=np.float32)
    fill_with_noise(noise, seed, user, round_number)
    noise *= np.float32(deviation)
    return Update(update.items, update.vectors + noise[:, :-1], update.biases + noise[:, -1])


@compiled
def fill_with_noise(noise: FloatMatrix, seed: int, user: int, round_number: int) -> None:
    """Normal numbers of mean 0 and deviation 1, drawn for one user and round."""
    flat = noise.reshape(-1)
    for block in range((len(flat) + 3) // 4):
        a, b, c, d = words(seed, user, NOISE, round_number, block)
        one, two = normal_pair(a, b)
        three, four = normal_pair(c, d)
        for lane, value in enumerate((one, two, three, four)):
            if 4 * block + lane < len(flat):
                flat[4 * block + lane] = np.float32(value)
