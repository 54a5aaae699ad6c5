"""Check-ins divided in time with their repeats: what people did first, and where they went later, known or not.

Everywhere else a pair of a person and a place counts once, so a place in the test is never one of training. Whoever
wants to know where people go next, at home or away, divides the rows before repeats are left out:

    first, later = split_revisits("checkins.csv", test=0.2)
    model = ItemKNN().fit(first)
    evaluate_revisits(model, later)                         # evaluation/revisits.py

Each person's newest floor(r n) rows of n are later, in the order of the rows where times are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from federank import checks
from federank.data.interactions import Interactions
from federank.data.loading import read_rows
from federank.data.sources.columns import Columns, as_interactions
from federank.errors import BadSplit, DataError


class Revisits(NamedTuple):
    """Two parts that may share pairs; each has a pair once."""

    first: Interactions
    later: Interactions


def split_revisits(source: Any, test: float = 0.2, **reading: Any) -> Revisits:
    """Divide each person's rows in time, repeats included.

    `source` and `reading` (users, items, times, header, delimiter) are those of `load`.
    """
    checks.share("test", test)
    columns, name = read_rows(source, **reading)
    if columns.times is None:
        raise DataError(f"{name} has no times, so nobody can say what came later; name the column with times=.")
    rows = pl.DataFrame({"user": columns.users, "time": columns.times}).with_row_index("row")
    ranked = rows.sort("user", "time", "row").with_columns(
        rank=pl.int_range(pl.len()).over("user"), count=pl.len().over("user")
    )
    held_out = pl.col("rank") >= pl.col("count") - (test * pl.col("count")).floor()
    later = ranked.with_columns(later=held_out).sort("row")["later"].to_numpy()
    if not later.any() or later.all():
        raise BadSplit("One of the two parts would be empty: hold out another share, or keep people with more rows.")
    first, after = (as_interactions(_taken(columns, part), name=name) for part in (~later, later))
    return Revisits(first, after)


def _taken(columns: Columns, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Columns:
    kept = pl.Series(rows)
    return columns._replace(
        users=columns.users.filter(kept),
        items=columns.items.filter(kept),
        ratings=None if columns.ratings is None else columns.ratings.filter(kept),
        times=None if columns.times is None else columns.times.filter(kept),
    )
