"""Metrics by group: users by activity, items by popularity, at most four groups each.

Group 1 has the least active users or the least popular items. Users are cut at the quartiles of the sizes of their
histories; items so that each group has about a quarter of the training interactions. Equal users or items share a
group, so there may be fewer than four. Recall of a group of items is the share of the test interactions with them that
are in the lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from federank._numerics.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.data.splits import Split
from federank.evaluation.metrics import Hits

GROUPS = 4
ACTIVITY, POPULARITY = "activity", "popularity"


def activity_groups(sizes: LongVector) -> LongVector:
    """The group of each user, from 1: least active."""
    bounds = np.quantile(sizes, np.arange(1, GROUPS) / GROUPS)
    return 1 + np.searchsorted(bounds, sizes, side="left")


def popularity_groups(popularity: LongVector) -> LongVector:
    """The group of each item, from 1: least popular; 0 for items that are not in training."""
    counts = np.sort(popularity[popularity > 0])
    shares = np.cumsum(counts) / max(counts.sum(), 1)
    # The popularity at which each quarter of the interactions is reached, from the least popular item up.
    bounds = counts[np.searchsorted(shares, np.arange(1, GROUPS) / GROUPS)] if len(counts) else counts
    return np.where(popularity > 0, 1 + np.searchsorted(bounds, popularity, side="left"), 0)


def group_table(
    split: Split, users: IntVector, items: IntMatrix, hits: Hits, values: Mapping[int, Mapping[str, RealVector]]
) -> pl.DataFrame:
    """A row per N, kind of group and group: its bounds, its size, and the means of the metrics that it has."""
    sizes, popularity = split.history.profiles.sizes[users], split.train.popularity
    of_users, of_items = activity_groups(sizes), popularity_groups(popularity)
    tested = np.bincount(split.test.items[np.isin(split.test.users, users)], minlength=len(popularity))
    rows: list[dict[str, Any]] = []
    for n, metrics in values.items():
        for group in np.unique(of_users):
            inside = of_users == group
            row = {"at": n, "by": ACTIVITY, "group": int(group)}
            row |= {"least": int(sizes[inside].min()), "most": int(sizes[inside].max()), "size": int(inside.sum())}
            rows.append(row | {name: float(value[inside].mean()) for name, value in metrics.items()})
        for group in np.unique(of_items[of_items > 0]):
            inside = of_items == group
            counts = popularity[inside]
            row = {"at": n, "by": POPULARITY, "group": int(group)}
            row |= {"least": int(counts.min()), "most": int(counts.max()), "size": int(inside.sum())}
            held = int(tested[inside].sum())
            hit = int(inside[items[:, :n][hits[:, :n]]].sum())
            rows.append(row | {"recall": hit / held if held else None})
    return pl.DataFrame(rows, infer_schema_length=None)


def group_means(table: pl.DataFrame) -> dict[str, float]:
    """The same as named figures: `recall@10/activity-1`, `recall@10/popularity-4`."""
    about = ("at", "by", "group", "least", "most", "size")
    return {
        f"{name}@{row['at']}/{row['by']}-{row['group']}": value
        for row in table.iter_rows(named=True)
        for name, value in row.items()
        if name not in about and value is not None
    }
