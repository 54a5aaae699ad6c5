"""Rounds with clipped, noisy or weighted Updates, compiled (protocol/pairs/noise.py, protocol/pairs/weights.py).

Each client's Update is summed apart, clipped, weighted, and added to the round's sum. Noise is then drawn once for the
sum, with the variance that the devices' own noise would add up to: the model has the same distribution as with noise
drawn device by device, as the reference engine does, but not the same numbers.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.compiling import compiled
from federank.engines.pairs.clients import room_for_sum
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Run, ShardSum, new_bench, play_clients
from federank.protocol.draws import SERVER
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.noise import fill_with_noise


def play_disguised(federation: Federation, rounds: int) -> None:
    """Play this many rounds of a server that adds what it gets."""
    _play_on(federation, rounds, adds=True)
    federation.round_number += rounds


def disguised_sum(federation: Federation, rounds: int = 1) -> tuple[FloatMatrix, FloatVector] | None:
    """The devices' part of the next round: the sum of their Updates, which is not folded in; None if none came."""
    sums, answers = _play_on(federation, rounds, adds=False)
    return (sums[:, :-1], sums[:, -1]) if answers else None


def _play_on(federation: Federation, rounds: int, adds: bool) -> tuple[FloatMatrix, int]:
    n_items, width = federation.item_vectors.shape
    sums = np.empty((n_items, federation.recipe.factors + 1), dtype=np.float32)
    own = room_for_sum(n_items, width)
    return sums, _play(federation.run, own, sums, adds, federation.round_number, rounds)


@compiled
def _play(run: Run, own: ShardSum, sums: FloatMatrix, adds: bool, first_round: int, rounds: int) -> int:
    """Rounds, each folded in where the server `adds`; `sums` is then the last one's, and the answer how many sent."""
    recipe, _, Q, b, P, width = run
    n_items, factors, answers = len(b), recipe.factors, 0
    noise = np.empty((n_items, factors + 1), np.float32)
    chosen, marks = np.empty(len(P), np.int32), np.zeros(len(P), np.int64)
    bench = new_bench(len(width))
    for r in range(first_round, first_round + rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        sums[:] = 0.0
        answers = 0
        total = 0.0
        for k in range(m):
            rows = play_clients(run, r, chosen[k : k + 1], bench, own)
            weight = recipe.weights[chosen[k]] if len(recipe.weights) > 0 else 1.0
            _add_clipped(own, rows, recipe.clip, weight, factors, sums)
            if rows > 0:  # a device that drops out sends no row, and no noise
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
    """Add one client's Update to the sum, and forget it."""
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
