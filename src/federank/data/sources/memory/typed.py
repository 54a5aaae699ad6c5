"""Columns that have types already: from frames, from Parquet, from arrays.

Their types are believed: text ids stay text though they look like numbers, and a date is a date. The checks are
those of text, with a row in place of a line.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from federank.data.sources import values
from federank.data.sources.columns import Columns, categories_by_item
from federank.data.sources.roles import Roles
from federank.data.sources.values import Fault
from federank.errors import DataError


class Typed:
    """A table of typed columns under check: what each is called, and how to complain of it."""

    def __init__(self, label: str, names: Sequence[str], error: type[DataError] = DataError) -> None:
        self.label = label
        self.names = names
        self.error = error

    def columns(self, found: dict[int, pl.Series], roles: Roles) -> Columns:
        """The columns of each role, by their positions, as ids, finite numbers and seconds."""
        users = self._ids(found[roles.users], roles.users, "a user")
        items = self._ids(found[roles.items], roles.items, "an item")
        if not len(users):
            raise self.error(f"{self.label} has columns but no rows; one row per interaction is needed.")
        ratings = times = categories = None
        if roles.ratings is not None:
            given = found[roles.ratings]
            ratings = given.cast(pl.Float32, strict=False)
            self._refuse(given, roles.ratings, values.rating_fault(ratings))
        if roles.times is not None:
            given = found[roles.times]
            times = as_seconds(given)
            self._refuse(given, roles.times, values.time_fault(times))
        if roles.categories is not None:
            categories = categories_by_item(items, found[roles.categories])
        return Columns(users, items, ratings, times, categories=categories)

    def _ids(self, column: pl.Series, position: int, kind: str) -> pl.Series:
        self._refuse(column, position, values.id_fault(column, kind))
        if not column.dtype.is_integer():
            return column
        # Unsigned and 128-bit numbers may be too large for 64 bits with a sign, and would come back as others.
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count():
            raise self.error(
                f"{self.label} has numbers beyond 64 bits in column {self.names[position]!r}; make these ids text."
            )
        return whole

    def _refuse(self, column: pl.Series, position: int, fault: Fault | None) -> None:
        if fault:
            value = column[fault.row]
            raise self.error(
                f"{self.label} has {'nothing' if value is None else repr(value)} in row {fault.row + 1} of column "
                f"{self.names[position]!r}, where {fault.need}."
            )


def as_seconds(column: pl.Series) -> pl.Series:
    """Dates, numbers or text as seconds since 1970; missing where a value is none of these."""
    if column.dtype in (pl.Datetime, pl.Date):
        return column.dt.epoch("s")
    if column.dtype == pl.String:
        form = values.date_format(column.drop_nulls().head(100))
        return pl.DataFrame({"time": column}).select(values.seconds("time", form)).to_series()
    return (column.floor() if column.dtype.is_float() else column).cast(pl.Int64, strict=False)
