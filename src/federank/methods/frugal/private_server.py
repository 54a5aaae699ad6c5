"""The server's part: a sum with the noise of both servers becomes the next model.

    first    how popular each item is, c, of at most 1; D = c^power, and the direction q of popularity. Directions to
             look in are drawn at random, long where a history is likely to be.
    later    A = C V with noise. Rows of little popularity are mostly noise, and are shrunk as Wiener's filter does.
             Nystrom's formula gives C in the span of A, C ~ A (V'A)^-1 A' = U diag(sigma^2) U', as in server_update.py;
             what noise alone would make of V'A is the least that its eigenvalues may be.

A user's scores are D^-1 (U f U' + q q' / 2) D p with f = 1 - lambda / sigma and lambda = shrinkage x sigma_F: of the
smallest direction, which is mostly noise, a tenth is left. Popularity counts half, since it is known better than tastes
are, and would drown them. As vectors that clients solve with (objective.py, with weights D^2 and regularisation 1):

    Y = D^-1 [U sqrt(f / (1 - f)), q]

Where noise is strong, few directions are estimated, from the sums of all rounds together (`RoundBuffer`). Lambda is
then a share of the median sigma, since half of the directions are mostly noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank.federation.rng import ITEM_FACTORS, normal_rows
from federank.methods.frugal.bounds import capped_items, hold_back, private_tastes, without_jumps
from federank.methods.frugal.private_messages import directions_of
from federank.methods.frugal.private_plan import PrivatePlan, guarantee_of, planned
from federank.privacy.accountant import mu_for
from federank.secagg.ring import C_INT, centred, in_units

# Few directions under much noise: all later rounds are read together.


CONCENTRATION = 4.0
"""Signal is in few items: in those that matter it is four times what popularity lets expect."""
ALIKE = 0.25
"""Until the last round each direction counts so much in scores: messages are to look in all of them alike."""
_LEAST = 1e-3


class RoundBuffer(NamedTuple):
    """What rounds have asked and were answered, both in units of their noise."""

    asked: RealMatrix  # items x directions, orthogonal: B diag(s)
    answered: RealMatrix  # items x directions: C B diag(s), with noise of deviation 1

    def stored(self) -> RealMatrix:
        """Both, side by side."""
        return np.hstack(self)


def received_from(stored: RealMatrix) -> RoundBuffer:
    """What `stored` gave; nothing yet where there are no columns, or zeros."""
    asked, answered = np.hsplit(stored, 2)
    used = np.einsum("ij,ij->j", asked, asked) > 0
    return RoundBuffer(asked[:, used], answered[:, used])


def received_also(received: RoundBuffer, asked: RealMatrix, answered: RealMatrix, noise: float) -> RoundBuffer:
    """One more round; as many directions are kept as it asked in."""
    directions = asked.shape[1]
    unit = np.sqrt(directions) / np.linalg.norm(asked) / noise  # messages are of length 1, however long V is
    left, s, right = np.linalg.svd(np.hstack((received.asked, unit * asked)), full_matrices=False)
    together = np.hstack((received.answered, answered / noise)) @ right.T
    return RoundBuffer((left * s)[:, :directions], together[:, :directions])


def sketch_of_received(received: RoundBuffer, expected: RealVector) -> RealMatrix:
    """What users' items have in common, as all rounds together tell it: items x directions, C ~ S S'."""
    s = np.linalg.norm(received.asked, axis=0)
    sides, seen, noise = received.asked / s, received.answered / s, 1 / s
    turned = _strongest(sides.T @ seen)[1]
    sides, seen = sides @ turned, seen @ turned
    seen = _shrunk(seen, np.sqrt((turned**2).T @ noise**2), expected)
    values, turned = _strongest(sides.T @ seen)
    least = max(float(np.linalg.norm(noise)), _LEAST * values[-1], 1e-12)
    sketch: RealMatrix = seen @ (turned / np.sqrt(np.maximum(values, least)))
    return sketch


def _strongest(inside: RealMatrix) -> tuple[RealVector, RealMatrix]:
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    return values, vectors


def _shrunk(seen: RealMatrix, noise: RealVector, expected: RealVector) -> RealMatrix:
    """Wiener's filter: each number times signal / (signal + noise) of its column and its item."""
    energy = np.einsum("ij,ij->j", seen, seen)
    signal = np.maximum(energy - len(seen) * noise**2, _LEAST * energy)
    each = CONCENTRATION * np.outer(expected, signal)
    kept: RealMatrix = seen * (each / (each + noise**2))
    return kept


REGULARISATION = 1.0
FOLD_CONCENTRATION = 10.0
"""Signal is in few directions: in those that matter it is ten times what it is on average."""
_LEAST_POPULARITY = 1e-3
_LEAST_FILTER = 0.02


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


def noisy_counts(summed: RealVector, messages: int) -> RealVector:
    """How many users have each item, from noisy sums of p / sqrt(n): a user with n items has sqrt(n) in all of them."""
    counts: RealVector = summed * max(float(summed.sum()) / messages, 1.0)
    return counts


def fold_popularity(
    plan: PrivatePlan, seed: int, summed: RealVector, cohorts: int = 1
) -> tuple[RealVector, FloatVector, FloatMatrix]:
    """After the first round: popularity of each item, the weights, and vectors to look with.

    `summed` may be of several cohorts' first rounds, each with its noise (`fold_of_cohort`).
    """
    noise = plan.noise(0) * np.sqrt(cohorts)
    top = max(float(summed.max()), noise, 1 / C_INT)
    popularity = np.maximum(summed, max(noise, _LEAST_POPULARITY * top)) / top
    space = _Space(popularity, plan.power)
    drawn = normal_rows(len(summed), plan.factors - 1, seed=seed, purpose=ITEM_FACTORS, scale=1.0)
    likely: RealMatrix = drawn.astype(np.float64) * np.sqrt(space.expected)[:, None]
    directions, _ = np.linalg.qr(space.without_popular(likely))
    return popularity, space.weights(), space.vectors(directions)


def fold_histories(
    plan: PrivatePlan,
    round_number: int,
    shrinkage: float,
    popularity: RealVector,
    sent_vectors: FloatMatrix,
    sums: RealMatrix,
    received: RoundBuffer,
) -> tuple[FloatMatrix, RealMatrix, RoundBuffer]:
    """After a later round: the vectors of the next model, what users' items have in common, and what was received.

    `sent_vectors` are the vectors as clients had them.
    """
    space, noise = _Space(popularity, plan.power), plan.noise(round_number)
    known = directions_of(sent_vectors, space.weights())
    seen = space.without_popular(sums)
    if not plan.joined:
        sketch = _sketch_of(space, known.wanted, seen, noise)
    else:
        received = received_also(received, known.wanted, seen, noise)
        sketch = sketch_of_received(received, space.expected)
        if round_number + 1 < len(plan.deviations):
            left = np.linalg.svd(sketch, full_matrices=False)[0]
            return space.vectors(left * np.sqrt(ALIKE / (1 - ALIKE))), sketch, received
    return vectors_of_sketch(plan, shrinkage, popularity, sketch), sketch, received


def _sketch_of(space: _Space, wanted: RealMatrix, seen: RealMatrix, noise: float) -> RealMatrix:
    """What users' items have in common, as the sums of one round tell it: items x directions, C ~ S S'."""
    seen = seen * _kept_of_rows(space.expected, seen, noise)[:, None]
    inside = wanted.T @ seen
    values, turned = np.linalg.eigh((inside + inside.T) / 2)
    # Noise alone gives eigenvalues of V'A of up to about its deviation times the root of their number.
    least = max(noise * np.sqrt(len(values)), _LEAST_POPULARITY * values[-1], 1e-12)
    sketch: RealMatrix = seen @ (turned / np.sqrt(np.maximum(values, least)))
    return sketch


def vectors_of_sketch(plan: PrivatePlan, shrinkage: float, popularity: RealVector, sketch: RealMatrix) -> FloatMatrix:
    """The vectors of a model from what users' items have in common."""
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
    each = FOLD_CONCENTRATION * expected * signal / seen.shape[1]
    kept: RealVector = each / (each + noise**2)
    return kept


# Cohorts, one after the other: how a federation in the world plays a plan that a simulation plays once.


class PrivateModel(NamedTuple):
    """A model that was learnt from sums with noise, and what the next fold remembers."""

    vectors: FloatMatrix  # items x factors: D^-1 [V, q]
    weights: FloatVector  # D^2
    popularity: RealVector  # of at most 1; zeros before the first fold
    summed: RealVector  # popularity as all cohorts together have reported it
    earlier: RealMatrix  # what earlier cohorts' items have in common, items x directions; no columns for the first one
    newest: RealMatrix  # the same after the newest fold
    received: RoundBuffer  # this cohort's rounds, where they are read together; no columns elsewhere
    capped: int = 0  # items that the newest fold's exposure cap has shortened


def fold_of_cohort(
    plan: PrivatePlan,
    seed: int,
    shrinkage: float,
    folds: int,
    model: PrivateModel,
    sent_vectors: FloatMatrix,
    sums: RealMatrix,
    most_shown: float = 1.0,
    rounds: int = 1,
    is_calm: bool = False,
) -> PrivateModel:
    """The model after one more fold; `folds` have been before, and `sent_vectors` are the vectors as clients had them.

    At the first stage `sums` are those of all cohorts' first rounds together, of which there were `rounds`.
    No item is shown to a larger share of users than `most_shown`, as soon as there is more than popularity to show.
    Once the season `is_calm`, items whose predicted audience jumps are hidden.
    """
    stage = folds % len(plan.deviations)
    if stage == 0:
        after = _after_popularity(plan, seed, shrinkage, rounds, model, sums[:, 0])
    else:
        after = _after_histories(plan, stage, shrinkage, model, sent_vectors, sums)
    if folds == 0 or most_shown >= 1:
        return after
    tastes = private_tastes(after.vectors, after.weights)
    held = hold_back(after.vectors, tastes, most_shown)
    shown = without_jumps(sent_vectors, private_tastes(sent_vectors, model.weights), held, tastes) if is_calm else held
    return after._replace(vectors=shown, capped=capped_items(after.vectors, held))


def _after_histories(
    plan: PrivatePlan,
    stage: int,
    shrinkage: float,
    model: PrivateModel,
    sent_vectors: FloatMatrix,
    sums: RealMatrix,
) -> PrivateModel:
    if model.earlier.shape[1]:
        wanted = directions_of(sent_vectors, model.weights).wanted
        sums = sums + model.earlier @ (model.earlier.T @ wanted)
    folded = fold_histories(plan, stage, shrinkage, model.popularity, sent_vectors, sums, model.received)
    vectors, newest, received = folded
    return model._replace(vectors=vectors, newest=newest, received=received)


def _after_popularity(
    plan: PrivatePlan, seed: int, shrinkage: float, rounds: int, model: PrivateModel, summed: RealVector
) -> PrivateModel:
    popularity, weights, vectors = fold_popularity(plan, seed, summed, rounds)
    earlier = model.newest
    if earlier.shape[1]:
        earlier = moved(plan, model.popularity, popularity, earlier)
        vectors = vectors_of_sketch(plan, shrinkage, popularity, earlier)
    nothing = received_from(earlier[:, :0])
    return PrivateModel(vectors, weights, popularity, summed, earlier, earlier, nothing)


# What accuracy to expect under a guarantee: read off federations that were measured.


Curve = tuple[tuple[float, float], ...]
"""Signals, and the share of P@10 that was kept there, against Frugal without noise on the same data."""

CITIES: Curve = (
    *((16.0, 0.365), (30.4, 0.476), (56.8, 0.619), (103.8, 0.719)),  # 2,624 users, 1,500 places, epsilon 1, 2, 4, 8
    *((160.0, 0.783), (304.0, 0.864), (567.0, 0.920), (1037.0, 0.951)),  # 26,229 users
    *((534.0, 0.915), (1012.0, 0.947), (1891.0, 0.962), (3458.0, 0.964)),  # 87,422 users
    *((1603.0, 0.960), (3037.0, 0.966), (5672.0, 0.964), (10375.0, 0.964)),  # 262,260 users, one seed
)
FILMS: Curve = (
    *((5.6, 0.568), (10.6, 0.731), (19.9, 0.768), (36.3, 0.815)),  # MovieLens 100K, epsilon 1, 2, 4, 8
    *((23.6, 0.919), (44.7, 0.944), (83.6, 0.975), (152.8, 0.985)),  # MovieLens 1M
)
ITALY: Curve = ((2.01, 0.227), (3.80, 0.439), (7.10, 0.572), (12.98, 0.652))  # 1,353 users, 25,498 venues
AMAZON: Curve = ((2.34, 0.005), (4.43, 0.016), (8.27, 0.080), (15.12, 0.275))  # 1,835 users, 34,526 items
"""Test parts, means of three seeds, noise of both servers: the study `privacy-price` (docs/results)."""
MEASURED_MESSAGES = 5
"""Of each user in all of them."""
_COST = 0.1
_ROUNDED = 0.005
"""Signals are noted to so much of themselves."""


class Forecast(NamedTuple):
    """A guarantee for a federation of a size, and what follows."""

    people: int
    items: int
    epsilon: float
    delta: float
    messages: int
    bound: int  # the length of a message in integers
    sigma: float  # one server's noise, if all messages had the same
    sigmas: tuple[float, ...]  # as the messages really get it
    factors: int
    bytes_up: int  # the largest message
    kept_cities: float | None  # the share of P@10 without noise to expect, as in cities: tastes matter much
    kept_films: float | None  # the same, as on MovieLens: popularity explains much
    kept_italy: float | None  # the same, as in Italy: few users, many items
    kept_amazon: float | None  # the same, as on Amazon: few users, many items, and hardly anything is popular
    measured_messages: int  # how many everyone sent where these shares were measured
    affordable: float | None  # the smallest epsilon that costs less than a tenth, as in cities


def forecast(people: int, items: int, epsilon: float, delta: float, messages: int) -> Forecast:
    """What a guarantee takes and costs in a federation of this size."""
    mu = mu_for(epsilon, delta)
    plan = planned(mu, messages, people, items, None)
    signal = people * mu / math.sqrt(items)
    return Forecast(
        people=people,
        items=items,
        epsilon=guarantee_of(plan, messages, delta) or epsilon,
        delta=delta,
        messages=messages,
        bound=C_INT,
        sigma=math.sqrt(messages) / mu,
        sigmas=plan.sigmas(messages),
        factors=plan.factors,
        bytes_up=4 * items * (plan.factors - 1),
        kept_cities=kept_at(CITIES, signal),
        kept_films=kept_at(FILMS, signal),
        kept_italy=_kept_within(ITALY, signal),
        kept_amazon=_kept_within(AMAZON, signal),
        measured_messages=MEASURED_MESSAGES,
        affordable=affordable(people, items, delta),
    )


def kept_at(curve: Curve, signal: float) -> float | None:
    """The share of P@10 that federations of this signal kept, between those that were measured; never falling.

    Below the smallest signal nothing was measured: None; above the largest it is the last share.
    """
    if signal < min(curve)[0] * (1 - _ROUNDED):
        return None
    pools: list[tuple[list[float], list[float]]] = []
    for place, kept in sorted(curve):
        pools.append(([math.log(place)], [kept]))
        while len(pools) > 1 and np.mean(pools[-2][1]) > np.mean(pools[-1][1]):
            places, shares = pools.pop()
            pools[-1] = pools[-1][0] + places, pools[-1][1] + shares
    middles = [float(np.mean(places)) for places, _ in pools]
    return float(np.interp(math.log(signal), middles, [float(np.mean(shares)) for _, shares in pools]))


def _kept_within(curve: Curve, signal: float) -> float | None:
    """The same for a curve that ends long before it is flat, and says nothing of larger signals."""
    return kept_at(curve, signal) if signal <= max(curve)[0] * (1 + _ROUNDED) else None


def affordable(people: int, items: int, delta: float = 1e-6) -> float | None:
    """The smallest epsilon that costs less than a tenth, as in cities; None where none up to 16 does."""
    for epsilon in (0.1 * 1.1**step for step in range(54)):
        kept = kept_at(CITIES, people * mu_for(epsilon, delta) / math.sqrt(items))
        if kept is not None and kept >= 1 - _COST:
            return float(epsilon)
    return None
