"""Data in memory: a tuple of columns, a list of rows, or a matrix with a row per interaction.

Columns are arrays, lists or series, `(users, items[, ratings[, times]])`; rows are tuples, `(user, item[, rating[,
time]])`. What could be either, such as a list of lists, is refused: read the wrong way it would give wrong data.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from federank.data.columns import ROLES, ColumnChoices, Columns, Fault, Roles, assign_roles, checked_columns
from federank.errors import BadFile, DataError


def _columns(
    label: str, names: Sequence[str], series: dict[int, pl.Series], roles: Roles, error: type[DataError] = DataError
) -> Columns:
    """The columns of each role, by their positions, as ids, finite numbers and seconds; `error` refuses a value."""
    given = {role: series[position].alias(names[position]) for role, position in roles.items()}

    def refuse(role: str, fault: Fault) -> None:
        value = given[role][fault.row]
        raise error(
            f"{label} has {'nothing' if value is None else repr(value)} in row {fault.row + 1} of column "
            f"{names[roles[role]]!r}, where {fault.need}."
        )

    columns = checked_columns(given, refuse)
    if not len(columns.users):
        raise error(f"{label} has columns but no rows; one row per interaction is needed.")
    return columns


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
        position: as_series(column, names[position], integers=matrix and names[position] != "rating")
        for position, column in enumerate(given)
    }
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} of {names[position]}" for position, column in columns.items())
        raise DataError(f"The columns differ in length ({lengths}); one value of each is needed per row.")
    return _columns("The data", names, columns, dict(zip(ROLES, columns, strict=False)))


def _as_columns(source: Sequence[Any]) -> Sequence[Any]:
    """The columns of a tuple of columns, or of a list of rows."""
    kinds = {type(part) for part in source}
    if isinstance(source, tuple) and not any(issubclass(kind, tuple | str | bytes | Mapping) for kind in kinds):
        return source
    if not isinstance(source, list) or not kinds or not all(issubclass(kind, tuple) for kind in kinds):
        parts = " and ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
        raise DataError(
            f"A {type(source).__name__} of {parts} is neither rows nor columns; give rows as a list of tuples, or "
            "columns as a tuple of lists or arrays."
        )
    width = len(source[0])
    odd = next((number for number, row in enumerate(source, start=1) if len(row) != width), None)
    if odd is not None:
        raise DataError(
            f"Row {odd} has {len(source[odd - 1])} values and row 1 has {width}; every row needs the same: "
            f"{', '.join(NAMES)}."
        )
    return [[row[position] for row in source] for position in range(width)]


def as_series(column: Any, name: str, *, integers: bool = False) -> pl.Series:
    """A column as a Polars series; `integers` converts floats without fractions, as ids in a matrix are."""
    if isinstance(column, pl.Series):
        return column
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return pl.Series(column.astype("datetime64[us]"))
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        # Half precision and foreign byte orders are NumPy's alone.
        plain = column.astype(np.float64) if column.dtype.kind == "f" else column.astype(column.dtype.newbyteorder("="))
        integral = integers and plain.dtype.kind == "f" and bool(np.all(plain == np.floor(plain)))
        return pl.Series(plain.astype(np.int64) if integral else plain)
    listed = column.tolist() if isinstance(column, np.ndarray) else list(column)
    types = {type(value) for value in listed if value is not None}
    if len(types) > 1 and types != {int, float}:
        types_given = " and ".join(sorted(kind.__name__ for kind in types))
        raise DataError(f"The column {name!r} mixes types ({types_given}); make its values all numbers or all text.")
    try:
        return pl.Series(listed, dtype=pl.Float64 if types == {int, float} else None)
    except (OverflowError, TypeError, ValueError, pl.exceptions.PolarsError):
        raise DataError(f"The column {name!r} holds values beyond 64-bit numbers and text; make them text.") from None


# Frames of pandas and Polars, and Parquet files: the columns by their names, as a text file's are.


FRAME = "The frame"


def is_pandas(source: object) -> bool:
    """Whether this is a pandas frame; pandas is not imported to find out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame)


def read_polars(frame: pl.DataFrame | pl.LazyFrame, choices: ColumnChoices) -> Columns:
    """The columns of a Polars frame."""
    table = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    roles = assign_roles(table.columns, table.width, choices, FRAME)
    return _columns(FRAME, table.columns, dict(enumerate(table.get_columns())), roles)


def read_pandas(frame: Any, choices: ColumnChoices) -> Columns:
    """The columns of a pandas frame; one whose columns are merely numbered counts as without header."""
    names = [str(name) for name in frame.columns]
    numbered = list(frame.columns) == list(range(len(names)))
    roles = assign_roles(None if numbered else names, len(names), choices, FRAME)
    series = {
        position: _from_pandas(frame.iloc[:, position], names[position]) for position in sorted({*roles.values()})
    }
    return _columns(FRAME, names, series, roles)


def read_parquet(path: Path, choices: ColumnChoices) -> Columns:
    """The columns of a Parquet file, of which only those that are needed are read."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        names = scan.collect_schema().names()
        roles = assign_roles(names, len(names), choices, str(path))
        frame = scan.select([names[position] for position in sorted({*roles.values()})]).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as mistake:
        reason = str(mistake).partition("\n")[0]
        raise BadFile(f"{path} is a Parquet file cut short or damaged ({reason}); get it again.") from None
    series = {position: frame[names[position]] for position in sorted({*roles.values()})}
    return _columns(str(path), names, series, roles, BadFile)


def _from_pandas(column: Any, name: str) -> pl.Series:
    if getattr(column.dtype, "tz", None) is not None:
        return as_series(column.to_numpy("datetime64[us]"), name)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufM":
        return as_series(column.to_numpy(), name)
    return as_series(column.astype(object).where(column.notna(), None).tolist(), name)
