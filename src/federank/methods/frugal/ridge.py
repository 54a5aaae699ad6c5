"""Item-item ridge regression from the sums of all of a federation's uploads: no client sends anything for it.

Low rank limits Frugal on large catalogues. The sums A_t = C B_t of all low-rank uploads together give the
co-occurrences C of items by Nystrom's formula (co_occurrences), with a higher rank than the model's. For each item j
the server takes its nearest items N by the cosine of their rows, and solves

    w_j = (C[N, N] + diag(lambda_i))^-1 C[N, j]      C_ij = min(max(e_ij, 0), c_i, c_j), C_ii = c_i
    lambda_i = 1/4 (1 + 4 m / n) sqrt(c_i mean c)      m items, n interactions

A client scores p W plus .3 of the low-rank scores (their Frobenius norms compared). W is published as bytes with
one scale per target (docs/frugal.md has where its constants come from).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank.errors import ModelError

MOST_RANK = 384
MOST_NEIGHBOURS, MEAN_NEIGHBOURS = 256, 64
REGULARISATION, SPARSE_REGULARISATION = 0.25, 4.0
LOW_RANK_PART = 0.3
LEVELS = 127
_DROPPED = 1e-6
_BLOCK = 1024


class Block(NamedTuple):
    """What one round's sums say of co-occurrences: A = C B, for the items that its uploads covered."""

    seen: RealMatrix  # A
    through: RealMatrix  # B


class RidgeWeights(NamedTuple):
    """Sparse item-item weights: the weights of target j are scales[j] x codes[starts[j]:starts[j + 1]]."""

    starts: LongVector
    neighbours: IntVector
    codes: NDArray[np.int8]
    scales: FloatVector
    low_rank: np.float32  # how much of the low-rank score is added

    def scores(self, histories: Any, low_rank: FloatMatrix) -> FloatMatrix:
        """p W and a part of the low-rank scores, for a row of each user; what has no weights scores 0."""
        values = self.codes.astype(np.float32) * np.repeat(self.scales, np.diff(self.starts))
        n_items = len(self.scales)
        weights = sparse.csc_array((values, self.neighbours, self.starts), shape=(n_items, n_items))
        near = histories @ weights
        scores: FloatMatrix = (near.toarray() if sparse.issparse(near) else near) + self.low_rank * low_rank
        return scores.astype(np.float32)

    def placed(self, items: IntVector, n_items: int) -> RidgeWeights:
        """The same among the items of the full catalogue."""
        sizes, scales = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.float32)
        sizes[items], scales[items] = np.diff(self.starts), self.scales
        starts = np.concatenate(([0], np.cumsum(sizes)))
        return self._replace(starts=starts, neighbours=items[self.neighbours].astype(np.int32), scales=scales)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is published, by name."""
        parts = self._replace(low_rank=np.array([self.low_rank], dtype=np.float32))  # type: ignore[arg-type]
        return {f"ridge_{name}": np.asarray(value) for name, value in parts._asdict().items()}

    @classmethod
    def read(cls, arrays: dict[str, NDArray[Any]], n_items: int) -> RidgeWeights:
        """The weights among a model's arrays; raises where they are none for a catalogue of this size."""
        try:
            starts, neighbours, codes, scales, low_rank = (arrays[f"ridge_{name}"] for name in cls._fields)
        except KeyError as missing:
            raise ModelError(f"The model's folder lacks {missing} of its item-item weights.") from missing
        fits = starts.shape == (n_items + 1,) and scales.shape == (n_items,) and low_rank.shape == (1,)
        fits = fits and starts.dtype == np.int64 and neighbours.dtype == np.int32 and codes.dtype == np.int8
        fits = fits and neighbours.shape == codes.shape == (int(starts[-1]),) and bool((np.diff(starts) >= 0).all())
        if not fits or (len(neighbours) and not 0 <= neighbours.min() <= neighbours.max() < n_items):
            raise ModelError("The model's item-item weights do not fit its catalogue.")
        return cls(starts, neighbours, codes, scales, np.float32(low_rank[0]))


def co_occurrences(blocks: list[Block], least: float = 0.0, most_rank: int | None = None) -> RealMatrix:
    """Z with C ~ Z Z', from all blocks together; `least` is the eigenvalue below which there is nothing but noise."""
    scales = [1 / np.sqrt(max(float(np.sum(block.through * block.seen)), 1e-30)) for block in blocks]
    seen = np.hstack([scale * block.seen for scale, block in zip(scales, blocks, strict=True)])
    through = np.hstack([scale * block.through for scale, block in zip(scales, blocks, strict=True)])
    inside = through.T @ seen
    values, turned = np.linalg.eigh((inside + inside.T) / 2)
    kept = values > max(_DROPPED * max(float(values[-1]), 0.0), least)
    if most_rank is not None:
        kept[:-most_rank] = False
    factors: RealMatrix = seen @ (turned[:, kept] / np.sqrt(values[kept]))
    return factors


def ridge_weights(factors: RealMatrix, counts: RealVector, interactions: float, low_rank: float) -> RidgeWeights:
    """The weights of all items, from Z and the (weighted) counts of users; `low_rank` is the norm of the other map."""
    n_items = len(factors)
    rows = factors.astype(np.float32)
    neighbours = nearest(rows)
    counts = np.maximum(counts, 1e-12)
    regularisation = (
        REGULARISATION * (1 + SPARSE_REGULARISATION * n_items / interactions) * np.sqrt(counts * counts.mean())
    )
    starts = np.zeros(n_items + 1, dtype=np.int64)
    starts[1:] = np.cumsum([len(own) for own in neighbours])
    codes, scales, norm = np.zeros(starts[-1], dtype=np.int8), np.zeros(n_items, dtype=np.float32), 0.0
    for item, own in enumerate(neighbours):
        if not len(own):
            continue
        some = np.append(own, item)
        near = rows[some]
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
    part = LOW_RANK_PART * np.sqrt(norm) / low_rank if low_rank > 0 else 0.0
    flat = np.concatenate(neighbours).astype(np.int32) if starts[-1] else np.zeros(0, dtype=np.int32)
    return RidgeWeights(starts, flat, codes, scales, np.float32(part))


def nearest(rows: FloatMatrix) -> list[IntVector]:
    """Of each item the nearest ones by cosine, ascending: at most 256, and 64 on average."""
    n_items = len(rows)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit = rows / np.maximum(lengths, 1e-12)[:, None]
    most = min(MOST_NEIGHBOURS, n_items - 1)
    candidates, cosines = np.zeros((n_items, most), dtype=np.int32), np.zeros((n_items, most), dtype=np.float32)
    for first in range(0, n_items, _BLOCK):
        last = min(first + _BLOCK, n_items)
        likeness = unit[first:last] @ unit.T
        likeness[np.arange(last - first), np.arange(first, last)] = -1.0
        best = np.argpartition(-likeness, most - 1, axis=1)[:, :most]
        candidates[first:last] = best
        cosines[first:last] = np.take_along_axis(likeness, best, axis=1)
    wanted = max(min(MEAN_NEIGHBOURS * n_items, cosines.size), 1)
    least = max(float(-np.partition(-cosines.ravel(), wanted - 1)[wanted - 1]), 1e-6)
    return [np.sort(candidates[item][cosines[item] >= least]) for item in range(n_items)]


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


def from_sums(
    seen: FloatMatrix, through: FloatMatrix, factors: int, interactions: float, low_rank: float
) -> RidgeWeights:
    """The weights from the sums that a server has kept: of each round A and the counts of items, and B."""
    blocks, counts = [], np.zeros(len(seen))
    for first in range(0, seen.shape[1], factors + 1):
        here, last = slice(first, first + factors), first + factors
        if seen[:, here].any():
            blocks.append(Block(seen[:, here].astype(np.float64), through[:, here].astype(np.float64)))
            counts = seen[:, last].astype(np.float64)
    return ridge_weights(co_occurrences(blocks, most_rank=MOST_RANK), counts, interactions, low_rank)
