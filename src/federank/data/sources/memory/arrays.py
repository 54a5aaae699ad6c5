"""Loose data in memory: a tuple of columns, a list of rows, or a matrix with a row per interaction.

Columns are arrays, lists or series, `(users, items[, ratings[, times]])`; rows are tuples, `(user, item[, rating[,
time]])`. Lists in a list, or tuples in a tuple, may be either: their lengths tell, and where these do not, nobody
guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from federank.data.sources.columns import Columns
from federank.data.sources.memory.typed import Typed
from federank.data.sources.roles import Roles
from federank.errors import DataError

NAMES = ("user", "item", "rating", "time")


def read_arrays(source: Sequence[Any] | np.ndarray[Any, Any]) -> Columns:
    """Two to four columns in this order, or rows of two to four values; in a matrix, one row per interaction."""
    if isinstance(source, np.ndarray) and source.ndim != 2:
        raise DataError(f"An array of {source.ndim} dimensions was given; two are needed, one row per interaction.")
    matrix = isinstance(source, np.ndarray)
    given = list(source.T if isinstance(source, np.ndarray) else _as_columns(source))
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


def _as_columns(source: Sequence[Any]) -> Sequence[Any]:
    """The columns of what may be columns or rows."""
    kinds = {type(part) for part in source}
    if any(issubclass(kind, str | bytes | Mapping) for kind in kinds):
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"A {type(source).__name__} of {found} has no columns; give lists, arrays or rows as tuples.")
    columns_as_documented = isinstance(source, tuple) and kinds == {list}
    if not kinds or columns_as_documented or not all(issubclass(kind, tuple | list) for kind in kinds):
        return source  # arrays and series are columns too
    lengths = {len(part) for part in source}
    may_be_rows = len(lengths) == 1 and 2 <= min(lengths) <= len(NAMES)
    may_be_columns = 2 <= len(source) <= len(NAMES)
    if isinstance(source, list) and all(issubclass(kind, tuple) for kind in kinds):
        return source if may_be_columns and not may_be_rows and len(lengths) == 1 else _turned(source)
    if not may_be_rows or not may_be_columns:
        return _turned(source) if may_be_rows else source
    outer = list if isinstance(source, list) else tuple
    if any(issubclass(kind, outer) for kind in kinds):
        raise DataError(
            f"{len(source)} {outer.__name__}s in a {outer.__name__} may be rows or columns, and their lengths do not "
            "tell which; give rows as a list of tuples, or columns as a tuple of lists."
        )
    return source


def _turned(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The columns of rows, once all have the same number of values."""
    width = len(rows[0])
    odd = next((number for number, row in enumerate(rows, start=1) if len(row) != width), None)
    if odd is not None:
        raise DataError(
            f"Row {odd} has {len(rows[odd - 1])} values and row 1 has {width}; every row needs the same: "
            f"{', '.join(NAMES)}."
        )
    return [[row[position] for row in rows] for position in range(width)]


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
