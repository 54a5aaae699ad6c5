"""Recommendations: for each person a short list of items, best first.

What a recommender answers with and what evaluation reads. As files, lists travel between toolkits in three
columns (`user item score`): see stored/recommendation_files.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from federank.arrays import FloatMatrix, Ids, IntMatrix, LongVector


class Recommended(NamedTuple):
    """One item of one person's list."""

    item: Any
    score: float
    title: str


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations:
    """The lists of many people."""

    users: Ids
    """Original ids, one per list."""
    items: IntMatrix
    """Numbers into `item_ids`, one row per user, best first; -1 where a list is shorter than asked for."""
    scores: FloatMatrix
    item_ids: Ids
    """The original ids of the catalogue the items were chosen from."""
    titles: Ids | None = None

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"<recommendations of up to {self.items.shape[1]} items for {len(self):,} users>"

    def of(self, position: int) -> list[Recommended]:
        """The list of the user in this position, with original ids."""
        return [
            Recommended(
                self.item_ids[item].item() if hasattr(self.item_ids[item], "item") else str(self.item_ids[item]),
                float(score),
                "" if self.titles is None else str(self.titles[item]),
            )
            for item, score in zip(self.items[position], self.scores[position], strict=True)
            if item >= 0
        ]

    def rows(self) -> Iterator[tuple[Any, Any, float]]:
        """(user, item, score) over all lists, best first within each."""
        for position, user in enumerate(self.users.tolist()):
            for recommended in self.of(position):
                yield user, recommended.item, recommended.score

    def table(self) -> pl.DataFrame:
        """The same rows as a table of three columns: user, item, score."""
        held = self.items >= 0
        users = np.repeat(np.arange(len(self)), held.sum(axis=1))
        return pl.DataFrame(
            {
                "user": _series(self.users).gather(users),
                "item": _series(self.item_ids).gather(self.items[held]),
                "score": pl.Series(self.scores[held].astype(np.float32)),
            }
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the three-column file, whole or not at all."""
        from federank.recommenders.stored.recommendation_files import write_recommendations

        write_recommendations(self, path)


def match_ids(ids: Ids, known: Ids) -> LongVector:
    """The position of each id in `known`, or -1; a whole number and text match if they are written the same."""
    # Not with np.searchsorted: on text of more than 15 bytes it answers wrongly (NumPy 2.4).
    names = pl.Enum(_series(known).cast(pl.String))
    return _series(ids).cast(pl.String).cast(names, strict=False).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _series(ids: Ids) -> pl.Series:
    return pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String)
