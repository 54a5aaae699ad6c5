"""Item-item ridge regression from the sums of all of a federation's uploads: no client sends anything for it.

Low rank limits Frugal on large catalogues. The sums A_t = C B_t of all low-rank uploads together give the
co-occurrences C of items by Nystrom's formula (co_occurrences), with a higher rank than the model's. For each item j
the server takes its nearest items N by the cosine of their rows, and solves

    w_j = (C[N, N] + diag(lambda_i))^-1 C[N, j]      C_ij = min(max(e_ij, 0), c_i, c_j), C_ii = c_i
    lambda_i = (.3 + 50 o^4) sqrt(c_i mean c)           o = (n / users)^2 / m, of n interactions and m items

o is how many items two users share by chance. Where it is above 1 (MovieLens), co-occurrences say more of popularity
than of taste, and W is hardly more than co-occurrences over lambda; in sparse data it is nearly unregularised.

A client scores p W plus the low-rank scores, whose root mean square per factor is 6 times that of W per item. W is
published as bytes with one scale per target (item_weights.py). docs/frugal.md has where the constants come from.

Rounds of clipped uploads weigh their users differently, so B_s'A_t and (B_t'A_s)' differ. Eigenvalues below .03 of the
largest difference are dropped: their directions are of the rounds, not of the items.

Where one item may be shown to a share of users only (`most_shown`), the weights of targets are made smaller until no
more users would see them, by the mean and deviation of their scores (held_back).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix, RealVector
from federank.methods.frugal.bounds import LEAST_ITEMS, LIST, shown_from
from federank.methods.frugal.item_weights import MEAN_NEIGHBOURS, MOST_NEIGHBOURS, ItemWeights, no_weights, starts_of
from federank.methods.frugal.protocol import LEVELS

MOST_RANK = 384
REGULARISATION, SHARED_REGULARISATION, SHARED_POWER = 0.3, 50.0, 4
LOW_RANK_PART = 6.0
DISAGREEMENT = 0.03
_DROPPED = 1e-6
_MOST_REGULARISATION = 1e6  # beyond that W keeps its directions
_LEAST_COSINE = 1e-6
_LITTLE = 1e-15
_HALVINGS = 20
_SAMPLE, _MARGIN = 256, 1.5
_MOST_CELLS = 2**25  # cosines at a time


class Block(NamedTuple):
    """What one round's sums say of co-occurrences: A = C B, for the items that its uploads covered."""

    seen: RealMatrix  # A
    through: RealMatrix  # B


def co_occurrences(
    blocks: list[Block], least: float = 0.0, most_rank: int | None = None, disagreement: float = 0.0
) -> RealMatrix:
    """Z with C ~ Z Z', from all blocks together; `least` is the eigenvalue below which there is nothing but noise.

    So is what lies below the part `disagreement` of the largest difference between what two rounds say.
    """
    scales = [1 / np.sqrt(max(float(np.sum(block.through * block.seen)), 1e-30)) for block in blocks]
    inside = np.block(
        [
            [mine * other * (one.through.T @ two.seen) for other, two in zip(scales, blocks, strict=True)]
            for mine, one in zip(scales, blocks, strict=True)
        ]
    )
    if disagreement > 0:
        least = max(least, disagreement * float(np.linalg.norm(inside - inside.T, 2)) / 2)
    values, turned = np.linalg.eigh((inside + inside.T) / 2)
    kept = values > max(_DROPPED * max(float(values[-1]), 0.0), least)
    if most_rank is not None:
        kept[:-most_rank] = False
    parts = np.split(turned[:, kept] / np.sqrt(values[kept]), np.cumsum([block.seen.shape[1] for block in blocks])[:-1])
    factors = np.zeros((len(blocks[0].seen), int(kept.sum())))
    for scale, block, part in zip(scales, blocks, parts, strict=True):
        factors += block.seen @ (scale * part)
    return factors


def strength_of(n_items: int, interactions: float, users: float) -> float:
    """Lambda in units of the counts of users: .3 + 50 o^4, o being how many items two users share by chance."""
    overlap = (interactions / max(users, 1.0)) ** 2 / n_items
    return float(min(REGULARISATION + SHARED_REGULARISATION * overlap**SHARED_POWER, _MOST_REGULARISATION))


def ridge_weights(factors: FloatMatrix, counts: RealVector, strength: float, wanted_norm: float) -> ItemWeights:
    """The weights of all items, with the Frobenius norm that is wanted, from Z and the (weighted) counts of users."""
    n_items = len(factors)
    neighbours = nearest(factors)
    counts = np.maximum(counts, 1e-12)
    regularisation = strength * np.sqrt(counts * counts.mean())
    starts = starts_of([len(own) for own in neighbours])
    codes, scales, norm = np.zeros(starts[-1], dtype=np.int8), np.zeros(n_items, dtype=np.float32), 0.0
    for item, own in enumerate(neighbours):
        if not len(own):
            continue
        some = np.append(own, item)
        near = factors[some]
        bound = np.minimum.outer(counts[some], counts[some])
        together = np.clip((near @ near.T).astype(np.float64), 0.0, bound)
        sides = together[:-1, :-1]
        sides[np.diag_indices(len(own))] = counts[own] + regularisation[own]
        solved = np.linalg.solve(sides, together[:-1, -1])
        norm += float(solved @ solved)
        largest = float(np.abs(solved).max())
        if largest > 0:
            scales[item] = largest / LEVELS
            codes[starts[item] : starts[item + 1]] = np.rint(solved * (LEVELS / largest)).astype(np.int8)
    if norm > 0 and wanted_norm > 0:
        scales *= np.float32(wanted_norm / np.sqrt(norm))
    flat = np.concatenate(neighbours) if starts[-1] else np.zeros(0, dtype=np.int32)
    return ItemWeights(starts, flat, codes, scales)


def nearest(rows: FloatMatrix) -> list[IntVector]:
    """Of each item the nearest ones by cosine, ascending: at most 256, and 64 on average."""
    n_items = len(rows)
    unit = rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32(1e-12))[:, None]
    wanted = MEAN_NEIGHBOURS * n_items
    least = _first_bound(unit)
    close = _above(unit, least)
    while len(close.cosines) < wanted and least > _LEAST_COSINE:  # the sample was an exception
        least = max(least / 2, _LEAST_COSINE)
        close = _above(unit, least)
    targets, items, cosines = close
    if len(cosines) > wanted:
        largest = np.argpartition(-cosines, wanted - 1)[:wanted]
        targets, items = targets[largest], items[largest]
    by_target = np.lexsort((items, targets))
    return np.split(items[by_target], np.cumsum(np.bincount(targets, minlength=n_items))[:-1])


class Neighbours(NamedTuple):
    """Items that are near each other."""

    targets: IntVector
    items: IntVector
    cosines: FloatVector


def _first_bound(unit: FloatMatrix) -> float:
    """A cosine that half as many again as are wanted exceed, by a sample of the items."""
    if len(unit) <= _SAMPLE:
        return _LEAST_COSINE
    sample = np.arange(0, len(unit), len(unit) // _SAMPLE)
    cosines = _of_targets(unit, sample, _LEAST_COSINE).cosines
    wanted = int(_MARGIN * MEAN_NEIGHBOURS * len(sample))
    return float(-np.partition(-cosines, wanted)[wanted]) if len(cosines) > wanted else _LEAST_COSINE


def _above(unit: FloatMatrix, least: float) -> Neighbours:
    """Of each item the nearest ones with this cosine or more, at most 256."""
    size = max(1, _MOST_CELLS // len(unit))
    blocks = (np.arange(first, min(first + size, len(unit))) for first in range(0, len(unit), size))
    columns = zip(*(_of_targets(unit, block, least) for block in blocks), strict=True)
    return Neighbours(*(np.concatenate(parts) for parts in columns))


def _of_targets(unit: FloatMatrix, targets: NDArray[np.intp], least: float) -> Neighbours:
    likeness = unit[targets] @ unit.T
    likeness[np.arange(len(targets)), targets] = -1.0
    cells = np.flatnonzero(likeness >= least)
    rows, cosines = cells // len(unit), likeness.ravel()[cells]
    ends = np.cumsum(np.bincount(rows, minlength=len(targets)))
    largest = np.concatenate([_largest(cosines, *span) for span in zip((0, *ends[:-1]), ends, strict=True)])
    cells, rows = cells[largest], rows[largest]
    return Neighbours(targets[rows].astype(np.int32), (cells % len(unit)).astype(np.int32), cosines[largest])


def _largest(cosines: FloatVector, first: int, last: int) -> NDArray[np.intp]:
    """The places of the largest numbers of a stretch."""
    if last - first <= MOST_NEIGHBOURS:
        return np.arange(first, last)
    return first + np.argpartition(-cosines[first:last], MOST_NEIGHBOURS - 1)[:MOST_NEIGHBOURS]


def low_rank_norm(vectors: FloatMatrix, weights: FloatVector, regulariser: float) -> float:
    """The Frobenius norm of the map from a profile to its low-rank scores: D Y (Y'DY + lambda I)^-1 Y'."""
    placed, weighted = vectors.astype(np.float64), vectors * weights[:, None].astype(np.float64)
    sides = placed.T @ weighted + regulariser * np.eye(placed.shape[1])
    inverse = np.linalg.inv(sides)
    return float(np.sqrt(max(np.trace(inverse @ (weighted.T @ weighted) @ inverse @ (placed.T @ placed)), 0.0)))


def through_model(vectors: FloatMatrix, weights: FloatVector, regulariser: float) -> RealMatrix:
    """B: how clients with this model see their items, x = B'p."""
    weighted = vectors.astype(np.float64) * weights[:, None]
    sides = vectors.T.astype(np.float64) @ weighted + regulariser * np.eye(vectors.shape[1])
    return np.linalg.solve(sides, weighted.T).T.astype(np.float64)


class Exposure(NamedTuple):
    """The model beside which weights are published, and to how large a share of users an item may be shown."""

    vectors: RealMatrix  # Y
    through: RealMatrix  # B
    most: float


def held_back(
    weights: ItemWeights, factors: RealMatrix, counts: RealVector, weight: float, exposure: Exposure
) -> ItemWeights:
    """The weights, smaller for targets that a larger share of users would be shown than may be.

    Scores are M'p with M = B Y' + s W. With C = Z Z' and c the (weighted) counts of users, who weigh `weight` together,
    their mean is M'c and their mean square the diagonal of M'CM, both over `weight`. s is found by halving.
    """
    from scipy.special import ndtri  # a server that bounds nothing need not load it

    vectors, through, most = exposure
    n_items = len(counts)
    if n_items < LEAST_ITEMS or n_items * most < 2 * LIST:
        return weights
    means = vectors @ (through.T @ counts) / weight, weights.scales * (weights.code_matrix.T @ counts) / weight
    low_rank = vectors @ (through.T @ factors)
    sparse = weights.scales[:, None] * (weights.code_matrix.T @ factors)
    squares, mixed, own = (
        np.einsum("ij,ij->i", one, two) / weight
        for one, two in ((low_rank, low_rank), (low_rank, sparse), (sparse, sparse))
    )

    def spread(kept: RealVector) -> tuple[RealVector, RealVector]:
        mean = means[0] + kept * means[1]
        return mean, np.sqrt(np.maximum(squares + 2 * kept * mixed + kept**2 * own - mean**2, _LITTLE))

    deviations = float(-ndtri(most))
    low, high = np.zeros(n_items), np.ones(n_items)
    mean, deviation = spread(high)
    shown_above = shown_from(mean, deviation, most)
    is_far = mean + deviations * deviation > shown_above
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mean, deviation = spread(middle)
        too_far = mean + deviations * deviation > shown_above
        low, high = np.where(too_far, low, middle), np.where(too_far, middle, high)
    return replace(weights, scales=(weights.scales * np.where(is_far, low, 1.0)).astype(np.float32))


def from_sums(
    seen: FloatMatrix,
    through: FloatMatrix,
    factors: int,
    interactions: float,
    users: float,
    low_rank: float,
    exposure: Exposure | None = None,
) -> ItemWeights:
    """The weights from the sums that a server has kept: of each round A and the counts of items, and B.

    `low_rank` is the Frobenius norm of the map to low-rank scores, which come as they are.
    """
    blocks, counts = [], np.zeros(len(seen))
    for first in range(0, seen.shape[1], factors + 1):
        here, last = slice(first, first + factors), first + factors
        if seen[:, here].any():
            blocks.append(Block(seen[:, here].astype(np.float64), through[:, here].astype(np.float64)))
            counts = seen[:, last].astype(np.float64)
    if not blocks:
        return no_weights(len(seen))
    together = co_occurrences(blocks, most_rank=MOST_RANK, disagreement=DISAGREEMENT).astype(np.float32)
    strength = strength_of(len(seen), interactions, users)
    weights = ridge_weights(together, counts, strength, low_rank * np.sqrt(len(seen) / factors) / LOW_RANK_PART)
    if exposure is None:
        return weights
    weight = users * float(counts.sum()) / interactions  # of all users, who have 1 each in `interactions`
    return held_back(weights, together.astype(np.float64), counts, weight, exposure)
