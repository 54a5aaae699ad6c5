"""Loose columns in memory: `(user, item[, rating[, time]])` as arrays, lists or series, or a matrix of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from federank.data.sources.columns import Columns
from federank.data.sources.memory.typed import Typed
from federank.data.sources.roles import Roles
from federank.errors import DataError

NAMES = ("user", "item", "rating", "time")


def read_arrays(source: Sequence[Any] | np.ndarray[Any, Any]) -> Columns:
    """Two to four columns in this order; in a matrix, one row per interaction."""
    if isinstance(source, np.ndarray) and source.ndim != 2:
        raise DataError(f"An array of {source.ndim} dimensions was given; two are needed, one row per interaction.")
    matrix = isinstance(source, np.ndarray)
    given = list(source.T if isinstance(source, np.ndarray) else source)
    if not 2 <= len(given) <= len(NAMES):
        raise DataError(f"{len(given)} columns were given; two to four are needed: {', '.join(NAMES)}.")
    names = NAMES[: len(given)]
    columns = {
        position: as_series(column, names[position], whole=matrix and names[position] != "rating")
        for position, column in enumerate(given)
    }
    if len({len(column) for column in columns.values()}) > 1:
        found = ", ".join(f"{len(column)} of {names[position]}" for position, column in columns.items())
        raise DataError(f"The columns differ in length ({found}); one value of each is needed per row.")
    return Typed("The data", names).columns(columns, Roles(*columns))


def as_series(column: Any, name: str, *, whole: bool = False) -> pl.Series:
    """A column as a Polars series; `whole` makes integers of floats that all are whole, as ids in a matrix are."""
    if isinstance(column, pl.Series):
        return column
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return pl.Series(column.astype("datetime64[us]"))
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        # Half precision and foreign byte orders are NumPy's alone.
        plain = column.astype(np.float64) if column.dtype.kind == "f" else column.astype(column.dtype.newbyteorder("="))
        integral = whole and plain.dtype.kind == "f" and bool(np.all(plain == np.floor(plain)))
        return pl.Series(plain.astype(np.int64) if integral else plain)
    listed = column.tolist() if isinstance(column, np.ndarray) else list(column)
    types = {type(value) for value in listed if value is not None}
    if len(types) > 1 and types != {int, float}:
        found = " and ".join(sorted(kind.__name__ for kind in types))
        raise DataError(f"The column {name!r} mixes types ({found}); make its values all numbers or all text.")
    try:
        return pl.Series(listed, dtype=pl.Float64 if types == {int, float} else None)
    except (OverflowError, TypeError, ValueError, pl.exceptions.PolarsError):
        raise DataError(f"The column {name!r} holds values beyond 64-bit numbers and text; make them text.") from None
