"""Clipping and noise, and the differential-privacy guarantee of a run.

Epsilon (accountant.py) is stated only for noise that covers everything an adversary sees: noise on all rows, or on
sums that no client drops out of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, LongVector
from federank._numerics.compiling import compiled
from federank.federation.rng import NOISE, SERVER, normal_pair, words
from federank.methods.fpl.kernels import Run, ShardSum, new_buffers, play_clients, workspace_for_sum
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.settings import FPLSettings, Recipe, choose_clients
from federank.privacy.accountant import epsilon_of

_SEES = {
    "all-rows": "each client's updates, linkable over rounds",
    "sums": "sums over all clients of a round, and nothing else",
}


def privacy_figure(settings: FPLSettings, recipe: Recipe, rounds_of_each: LongVector) -> dict[str, Any]:
    """Epsilon of the user with the most rounds and of the median user, or the reason why there is none."""
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
        return "Updates are clipped, but have no noise."
    if settings.noise_on == "sums" and (recipe.online < 1 or recipe.dropout > 0 or len(recipe.trace)):
        return "If clients are offline or drop out, a sum has less noise than planned."
    return None


# Clipping and noise wrap transmission and leave its maths unchanged.


def clip_and_noise(recipe: Recipe, user: int, round_number: int, update: FPLUpdate, n_items: int) -> FPLUpdate:
    """The update as sent: clipped and noised, if the recipe says so."""
    if recipe.clip > 0:
        update = clipped(update, recipe.clip)
    if recipe.deviation > 0:
        update = with_noise(on_all_rows(update, n_items), recipe.deviation, recipe.seed, user, round_number)
    return update


def clipped(update: FPLUpdate, clip: float) -> FPLUpdate:
    """Scale an update down to this norm."""
    numbers = np.concatenate((update.vectors.ravel(), update.biases), dtype=np.float64)
    length = np.sqrt(numbers @ numbers)
    if length <= clip:
        return update
    scale = np.float32(clip / length)
    return FPLUpdate(update.items, scale * update.vectors, scale * update.biases)


def on_all_rows(update: FPLUpdate, n_items: int) -> FPLUpdate:
    """The same gradients, with rows of zeros for all other items."""
    vectors = np.zeros((n_items, update.vectors.shape[1]), dtype=np.float32)
    biases = np.zeros(n_items, dtype=np.float32)
    vectors[update.items], biases[update.items] = update.vectors, update.biases
    return FPLUpdate(np.arange(n_items, dtype=np.int32), vectors, biases)


def with_noise(update: FPLUpdate, deviation: float, seed: int, user: int, round_number: int) -> FPLUpdate:
    """Add Gaussian noise to every number of an update."""
    noise = np.empty((len(update.items), update.vectors.shape[1] + 1), dtype=np.float32)
    fill_with_noise(noise, seed, user, round_number)
    noise *= np.float32(deviation)
    return FPLUpdate(update.items, update.vectors + noise[:, :-1], update.biases + noise[:, -1])


@compiled
def fill_with_noise(noise: FloatMatrix, seed: int, user: int, round_number: int) -> None:
    """Standard normal numbers, drawn for one user and round."""
    flat = noise.reshape(-1)
    for block in range((len(flat) + 3) // 4):
        a, b, c, d = words(seed, user, NOISE, round_number, block)
        one, two = normal_pair(a, b)
        three, four = normal_pair(c, d)
        for lane, value in enumerate((one, two, three, four)):
            if 4 * block + lane < len(flat):
                flat[4 * block + lane] = np.float32(value)


# Rounds with clipped, noisy or weighted updates, compiled.


def play_noised(federation: Any, rounds: int) -> None:
    """Play this many rounds with a server that adds the updates."""
    _play_on(federation, rounds, adds=True)
    federation.round_number += rounds


def noised_sum(federation: Any, rounds: int = 1) -> tuple[FloatMatrix, FloatVector] | None:
    """The sum of the updates of the next round, not yet aggregated; None if there is none."""
    sums, answers = _play_on(federation, rounds, adds=False)
    return (sums[:, :-1], sums[:, -1]) if answers else None


def _play_on(federation: Any, rounds: int, adds: bool) -> tuple[FloatMatrix, int]:
    n_items, width = federation.item_vectors.shape
    sums = np.empty((n_items, federation.recipe.factors + 1), dtype=np.float32)
    own = workspace_for_sum(n_items, width)
    return sums, _play(federation.run, own, sums, adds, federation.round_number, rounds)


@compiled
def _play(run: Run, own: ShardSum, sums: FloatMatrix, adds: bool, first_round: int, rounds: int) -> int:
    """Play rounds; the server `adds` each sum, or `sums` keeps the last one. Returns the number of updates."""
    recipe, _, Q, b, P, width = run
    n_items, factors, answers = len(b), recipe.factors, 0
    noise = np.empty((n_items, factors + 1), np.float32)
    chosen, marks = np.empty(len(P), np.int32), np.zeros(len(P), np.int64)
    buffers = new_buffers(len(width))
    for r in range(first_round, first_round + rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        sums[:] = 0.0
        answers = 0
        total = 0.0
        for k in range(m):
            rows = play_clients(run, r, chosen[k : k + 1], buffers, own)
            weight = recipe.weights[chosen[k]] if len(recipe.weights) > 0 else 1.0
            _add_clipped(own, rows, recipe.clip, weight, factors, sums)
            if rows > 0:  # a client that drops out sends neither row nor noise
                answers += 1
                total += weight
        if recipe.deviation > 0:
            fill_with_noise(noise, recipe.seed, SERVER, r)
            scale = np.float32(recipe.deviation * np.sqrt(answers))
            for item in range(n_items):
                for column in range(factors + 1):
                    sums[item, column] += scale * noise[item, column]
        if len(recipe.weights) > 0 and answers > 0:
            sums *= np.float32(1.0 / total)
        if adds:
            for item in range(n_items):
                for column in range(factors):
                    Q[item, column] += recipe.learning_rate * sums[item, column]
                b[item] += recipe.learning_rate * sums[item, factors]
    return answers


@compiled
def _add_clipped(own: ShardSum, rows: int, clip: float, weight: float, factors: int, sums: FloatMatrix) -> None:
    """Add one client's update to the sum, and clear its buffer."""
    squares = 0.0
    for position in range(rows):
        item = own.touched[position]
        squares += np.float64(own.biases[item]) ** 2
        for column in range(factors):
            squares += np.float64(own.vectors[item, column]) ** 2
    length = np.sqrt(squares)
    scale = np.float32(weight * clip / length) if 0.0 < clip < length else np.float32(weight)
    for position in range(rows):
        item = own.touched[position]
        own.stamps[item] = 0
        sums[item, factors] += scale * own.biases[item]
        for column in range(factors):
            sums[item, column] += scale * own.vectors[item, column]
