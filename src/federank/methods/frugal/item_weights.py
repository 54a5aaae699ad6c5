"""Item-item weights as they are published, and the scores that they give (ridge.py computes them).

A client with the history p adds p W to its low-rank scores. W has one column per target: bytes, and one scale per
target. Sums of bytes are integers, so p W is the same in Python and JavaScript (web/methods/frugal.js).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from federank._numerics.arrays import FloatMatrix, IntVector
from federank.errors import BadMessage
from federank.federation import wire
from federank.federation.wire import Array, array

LEVELS = 127
"""Codes go from -127 to 127."""
MOST_NEIGHBOURS, MEAN_NEIGHBOURS = 256, 64
"""Weights of one target, and of a target on average."""
_LARGEST_SCALE = 1e30
_MOST_HEADER = 512


@dataclass(frozen=True, eq=False)
class ItemWeights:
    """Sparse weights: those of target j are scales[j] x codes[k] for items[k], k from starts[j] to starts[j + 1]."""

    starts: Array = array("ends", dtype="i4", minimum=0)  # one more than there are items
    items: Array = array("pairs", dtype="i4", minimum=0)  # ascending for each target
    codes: Array = array("pairs", dtype="i1", minimum=-LEVELS)
    scales: Array = array("items", minimum=0, maximum=_LARGEST_SCALE)

    @cached_property
    def code_matrix(self) -> Any:
        """The codes, items x targets, for products with histories."""
        shape = len(self.scales), len(self.scales)
        codes = self.codes.astype(np.float32)
        return sparse.csc_array((codes, self.items, self.starts), shape=shape).tocsr()

    def scores(self, histories: Any, low_rank: FloatMatrix) -> FloatMatrix:
        """Low-rank scores + p W, one row per user; `histories` (users x items) is dense or sparse."""
        sums = histories @ self.code_matrix
        scores: FloatMatrix = (sums.toarray() if sparse.issparse(sums) else sums).astype(np.float32)
        scores *= self.scales
        scores += low_rank
        return scores

    def placed(self, items: IntVector, n_items: int) -> ItemWeights:
        """The same weights with the items' numbers in the full catalogue."""
        sizes, scales = np.zeros(n_items, dtype=np.int32), np.zeros(n_items, dtype=np.float32)
        sizes[items], scales[items] = np.diff(self.starts), self.scales
        return ItemWeights(starts_of(sizes), items[self.items].astype(np.int32), self.codes, scales)

    def extended(self, n_items: int) -> ItemWeights:
        """The same weights for a catalogue with more items, which have none."""
        more = n_items - len(self.scales)
        if more <= 0:
            return self
        starts = np.append(self.starts, np.full(more, self.starts[-1], dtype=np.int32))
        return ItemWeights(starts, self.items, self.codes, np.append(self.scales, np.zeros(more, dtype=np.float32)))

    @classmethod
    def read(cls, parts: dict[str, Array], n_items: int) -> Self:
        """Weights from arrays by name, checked; raises `BadMessage`."""
        weights: Self = wire.from_arrays(cls, _Catalogue(n_items), parts)
        return weights._checked(n_items)

    @classmethod
    def decode(cls, content: bytes, n_items: int) -> Self:
        """Weights from the wire, checked; `wire.encode` writes them."""
        weights: Self = wire.decode(cls, _Catalogue(n_items), content)
        return weights._checked(n_items)

    def _checked(self, n_items: int) -> Self:
        starts, items = self.starts, self.items
        if len(starts) != n_items + 1 or starts[0] or starts[-1] != len(items) or np.any(np.diff(starts) < 0):
            raise BadMessage("The starts of ItemWeights must ascend from 0 to the number of weights, one per target.")
        if len(items) > most_weights(n_items):
            raise BadMessage(f"ItemWeights has {len(items):,} weights; at most {most_weights(n_items):,} are allowed.")
        is_first = np.zeros(len(items) + 1, dtype=np.bool_)
        is_first[starts] = True
        if np.any(items >= n_items) or np.any((np.diff(items) <= 0) & ~is_first[1:-1]):
            raise BadMessage(f"The items of each target of ItemWeights must ascend within 0 to {n_items - 1}.")
        return self


@dataclass(frozen=True)
class _Catalogue:
    """All that the wire format must know."""

    n_items: int


def starts_of(sizes: Any) -> Array:
    """Where each target's weights begin, and where the last ones end."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)


def no_weights(n_items: int) -> ItemWeights:
    """Weights of zero: scores are the low-rank ones."""
    none = np.zeros(0, dtype=np.int32)
    return ItemWeights(starts_of(np.zeros(n_items)), none, none.astype(np.int8), np.zeros(n_items, dtype=np.float32))


def most_weights(n_items: int) -> int:
    """The largest number of weights for a catalogue of this size."""
    return MEAN_NEIGHBOURS * n_items


def most_bytes(n_items: int) -> int:
    """No message of weights for a catalogue of this size is larger."""
    return 5 * most_weights(n_items) + 4 * (2 * n_items + 1) + _MOST_HEADER
