"""The server's part: a sum with the noise of both servers becomes the next model.

    first    how popular each item is, c, of at most 1; D = c^power, and the direction q of popularity. Directions to
             look in are drawn at random, long where a history is likely to be.
    later    A = C V with noise. Rows of little popularity are mostly noise, and are shrunk as Wiener's filter does.
             Nystrom's formula gives C in the span of A, C ~ A (V'A)^-1 A' = U diag(sigma^2) U', as in server_steps.py;
             what noise alone would make of V'A is the least that its eigenvalues may be.

A person's scores are D^-1 (U f U' + q q' / 2) D p with f = 1 - lambda / sigma and lambda = shrinkage x sigma_F: of the
smallest direction, which is mostly noise, a tenth is left. Popularity counts half, since it is known better than tastes
are, and would drown them. As vectors that devices solve with (models/squares.py, with weights D^2 and a pull of 1):

    Y = D^-1 [U sqrt(f / (1 - f)), q]

Where noise is strong, few directions are looked for, and what all rounds have told is read together (joined.py): then
lambda is a share of the sigma in the middle, since half of the directions are mostly noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank.protocol.draws import HELPER, ITEM_FACTORS, SERVER, SUM_NOISE, words, words_wrap_around
from federank.protocol.initial import normal_columns
from federank.protocol.squares.private.joined import ALIKE, Heard, heard_also, sketch_of_heard
from federank.protocol.squares.private.message import directions_of
from federank.protocol.squares.private.plan import PrivatePlan
from federank.protocol.sums.noise import noise_table, rounded_noise
from federank.protocol.sums.rounding import C_INT, centred, in_ring, in_units

PULL = 1.0
CONCENTRATION = 10.0
"""Signal is in few directions: in those that matter it is ten times what it is on average."""
_LEAST_POPULARITY = 1e-3
_LEAST_FILTER = 0.02


def noise_of(plan: PrivatePlan, seed: int, round_number: int, length: int, server: int) -> NDArray[np.int64]:
    """One server's noise on a round's sum, from named draws: in the service it is the operating system's."""
    if plan.deviations[round_number] == 0:
        return np.zeros(length, dtype=np.int64)
    with words_wrap_around():
        counters = np.arange(length, dtype=np.uint32)
        drawn = words(np.uint32(seed), np.uint32(server), SUM_NOISE, np.uint32(round_number), counters)
    a, b, c, d = (word.astype(np.uint64) for word in drawn)
    shift = np.uint64(32)
    bits = np.column_stack(((a << shift) | b, (c << shift) | d))
    return rounded_noise(noise_table(float(plan.deviations[round_number])), bits)


def with_both_noises(plan: PrivatePlan, seed: int, round_number: int, total: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The sum as it is published: modulo 2^32, with the noise of the leader and of the helper on it."""
    noisy = total
    for server in (SERVER, HELPER):
        noisy = noisy + in_ring(noise_of(plan, seed, round_number, len(total), server))
    return noisy


def values_of(total: NDArray[np.uint32], columns: int) -> RealMatrix:
    """A sum in the ring, as rows of numbers in units of a message's length."""
    values: RealMatrix = in_units(centred(total), 1.0).reshape(-1, columns)
    return values


class _Space:
    """What follows from how popular items are: the weights D, the direction q, and where signal is expected."""

    def __init__(self, popularity: RealVector, power: float) -> None:
        self.scales: RealVector = popularity**power
        popular = self.scales * popularity
        self.popular: RealVector = popular / np.linalg.norm(popular)
        expected = popularity * self.scales**2
        self.expected: RealVector = expected / expected.sum()

    def without_popular(self, matrix: RealMatrix) -> RealMatrix:
        left: RealMatrix = matrix - np.outer(self.popular, self.popular @ matrix)
        return left

    def vectors(self, directions: RealMatrix) -> FloatMatrix:
        placed = np.column_stack((directions, self.popular)) / self.scales[:, None]
        return placed.astype(np.float32)

    def weights(self) -> FloatVector:
        return (self.scales**2).astype(np.float32)


def fold_popularity(
    plan: PrivatePlan, seed: int, summed: RealVector, cohorts: int = 1
) -> tuple[RealVector, FloatVector, FloatMatrix]:
    """After the first round: popularity of each item, the weights, and vectors to look with.

    `summed` may be of several cohorts' first rounds, each with its noise (cohorts.py).
    """
    noise = plan.noise(0) * np.sqrt(cohorts)
    top = max(float(summed.max()), noise, 1 / C_INT)
    popularity = np.maximum(summed, max(noise, _LEAST_POPULARITY * top)) / top
    space = _Space(popularity, plan.power)
    drawn = normal_columns(len(summed), plan.factors - 1, seed=seed, purpose=ITEM_FACTORS, scale=1.0)
    likely: RealMatrix = drawn.astype(np.float64) * np.sqrt(space.expected)[:, None]
    directions, _ = np.linalg.qr(space.without_popular(likely))
    return popularity, space.weights(), space.vectors(directions)


def fold_histories(
    plan: PrivatePlan,
    round_number: int,
    shrinkage: float,
    popularity: RealVector,
    told: FloatMatrix,
    sums: RealMatrix,
    heard: Heard,
) -> tuple[FloatMatrix, RealMatrix, Heard]:
    """After a later round: the vectors of the next model, what people's items have in common, and what was heard.

    `told` are the vectors as devices had them.
    """
    space, noise = _Space(popularity, plan.power), plan.noise(round_number)
    known = directions_of(told, space.weights())
    seen = space.without_popular(sums)
    if not plan.joined:
        sketch = _sketch_of(space, known.wanted, seen, noise)
    else:
        heard = heard_also(heard, known.wanted, seen, noise)
        sketch = sketch_of_heard(heard, space.expected)
        if round_number + 1 < len(plan.deviations):
            left = np.linalg.svd(sketch, full_matrices=False)[0]
            return space.vectors(left * np.sqrt(ALIKE / (1 - ALIKE))), sketch, heard
    return vectors_of_sketch(plan, shrinkage, popularity, sketch), sketch, heard


def _sketch_of(space: _Space, wanted: RealMatrix, seen: RealMatrix, noise: float) -> RealMatrix:
    """What people's items have in common, as the sums of one round tell it: items x directions, C ~ S S'."""
    seen = seen * _kept_of_rows(space.expected, seen, noise)[:, None]
    inside = wanted.T @ seen
    values, turned = np.linalg.eigh((inside + inside.T) / 2)
    # Noise alone gives eigenvalues of V'A of up to about its deviation times the root of their number.
    least = max(noise * np.sqrt(len(values)), _LEAST_POPULARITY * values[-1], 1e-12)
    sketch: RealMatrix = seen @ (turned / np.sqrt(np.maximum(values, least)))
    return sketch


def vectors_of_sketch(plan: PrivatePlan, shrinkage: float, popularity: RealVector, sketch: RealMatrix) -> FloatMatrix:
    """The vectors of a model from what people's items have in common."""
    left, sigma, _ = np.linalg.svd(sketch, full_matrices=False)
    pivot = sigma[(len(sigma) - 1) // 2] if plan.joined else sigma[-1]
    kept = np.clip(1 - shrinkage * pivot / np.maximum(sigma, 1e-12), _LEAST_FILTER, 1 - _LEAST_FILTER)
    return _Space(popularity, plan.power).vectors(left * np.sqrt(kept / (1 - kept)))


def moved(plan: PrivatePlan, before: RealVector, after: RealVector, sketch: RealMatrix) -> RealMatrix:
    """The same sketch where items have another popularity than before: with the weights that follow from it."""
    now = _Space(after, plan.power)
    return now.without_popular(sketch * (now.scales / before**plan.power)[:, None])


def _kept_of_rows(expected: RealVector, seen: RealMatrix, noise: float) -> RealVector:
    """Wiener's factor of each row: signal / (signal + noise), by how much signal an item's popularity lets expect."""
    if noise == 0:
        return np.ones(len(expected))
    energy = float((seen**2).sum())
    signal = max(energy - seen.size * noise**2, _LEAST_POPULARITY * energy)
    each = CONCENTRATION * expected * signal / seen.shape[1]
    kept: RealVector = each / (each + noise**2)
    return kept
