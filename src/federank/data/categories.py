"""Which categories each item belongs to: genres of a film, the kind of a place.

An item may have several or none. Stored as rows of a sparse matrix: the categories of item i are
`codes[starts[i]:starts[i + 1]]`, numbers into `names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from federank.arrays import IntVector, LongVector, RealVector


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each item of a catalogue."""

    names: tuple[str, ...]
    starts: LongVector
    codes: IntVector

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[str]]) -> Categories:
        """From one sequence of category names per item; names are numbered in sorted order."""
        rows = [list(dict.fromkeys(row)) for row in lists]
        names = tuple(sorted({name for row in rows for name in row}))
        number = {name: code for code, name in enumerate(names)}
        starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
        codes = np.array([number[name] for row in rows for name in row], dtype=np.int32)
        return cls(names, starts, codes)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, item: int) -> tuple[str, ...]:
        """The names of one item's categories."""
        return tuple(self.names[code] for code in self.codes[self.starts[item] : self.starts[item + 1]])

    def take(self, items: IntVector | LongVector) -> Categories:
        """The categories of these items, in this order."""
        return Categories.from_lists(self.of(int(item)) for item in items)

    def renamed(self, names: dict[str, str]) -> Categories:
        """Coarser categories: each name replaced by what it maps to; names without an entry are dropped."""
        rows = (self.of(item) for item in range(len(self)))
        return Categories.from_lists([names[name] for name in row if name in names] for row in rows)

    def weights(self, per_item: LongVector) -> RealVector:
        """How much of `per_item` falls to each category; an item in several counts fully in each."""
        return np.bincount(
            self.codes, weights=np.repeat(per_item, np.diff(self.starts)), minlength=len(self.names)
        ).astype(np.float64)
