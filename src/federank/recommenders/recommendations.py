"""Recommendations: for each person a short list of items, best first.

What a recommender answers with, what evaluation reads, and what is written to and read from the three-column
files (`user item score`) that other toolkits exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from federank.arrays import FloatMatrix, Ids, IntMatrix


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

    def of(self, place: int) -> list[Recommended]:
        """The list of the user in this place, with original ids."""
        return [
            Recommended(
                self.item_ids[item].item() if hasattr(self.item_ids[item], "item") else str(self.item_ids[item]),
                float(score),
                "" if self.titles is None else str(self.titles[item]),
            )
            for item, score in zip(self.items[place], self.scores[place], strict=True)
            if item >= 0
        ]

    def rows(self) -> Iterator[tuple[Any, Any, float]]:
        """(user, item, score) over all lists, best first within each."""
        for place, user in enumerate(self.users.tolist()):
            for recommended in self.of(place):
                yield user, recommended.item, recommended.score
