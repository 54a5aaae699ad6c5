"""Frames of pandas and Polars, and Parquet files: the columns found by their names, as a text file's are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from federank.data.sources.columns import Columns
from federank.data.sources.memory.arrays import as_series
from federank.data.sources.memory.typed import Typed
from federank.data.sources.options import ColumnChoices
from federank.data.sources.roles import Roles, assign_roles
from federank.errors import BadFile

FRAME = "The frame"


def is_pandas(source: object) -> bool:
    """Whether this is a pandas frame; pandas is not imported to find out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame)


def read_polars(frame: pl.DataFrame | pl.LazyFrame, choices: ColumnChoices) -> Columns:
    """The columns of a Polars frame."""
    whole = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    roles = assign_roles(whole.columns, whole.width, choices, FRAME)
    return Typed(FRAME, whole.columns).columns(dict(enumerate(whole.get_columns())), roles)


def read_pandas(frame: Any, choices: ColumnChoices) -> Columns:
    """The columns of a pandas frame; one whose columns are merely numbered counts as without header."""
    names = [str(name) for name in frame.columns]
    numbered = list(frame.columns) == list(range(len(names)))
    roles = assign_roles(None if numbered else names, len(names), choices, FRAME)
    found = {position: _from_pandas(frame.iloc[:, position], names[position]) for position in _read(roles)}
    return Typed(FRAME, names).columns(found, roles)


def read_parquet(path: Path, choices: ColumnChoices) -> Columns:
    """The columns of a Parquet file, of which only those that are needed are read."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        names = scan.collect_schema().names()
        roles = assign_roles(names, len(names), choices, str(path))
        frame = scan.select([names[position] for position in _read(roles)]).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as mistake:
        reason = str(mistake).partition("\n")[0]
        raise BadFile(f"{path} is a Parquet file cut short or damaged ({reason}); get it again.") from None
    found = {position: frame[names[position]] for position in _read(roles)}
    return Typed(str(path), names, BadFile).columns(found, roles)


def _read(roles: Roles) -> list[int]:
    return sorted({position for position in roles if position is not None})


def _from_pandas(column: Any, name: str) -> pl.Series:
    if getattr(column.dtype, "tz", None) is not None:
        return as_series(column.to_numpy("datetime64[us]"), name)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufM":
        return as_series(column.to_numpy(), name)
    return as_series(column.astype(object).where(column.notna(), None).tolist(), name)
