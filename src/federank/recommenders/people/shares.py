"""What people choose for themselves, read from files: each one's pi, and when each one's device is there.

CSV files with a header and the original ids: `user,pi` and `round,user`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from federank.arrays import IntVector, RealVector
from federank.data.interactions import Interactions
from federank.errors import BadFile, UnknownId


def read_pi(path: str | Path, data: Interactions) -> RealVector:
    """Each user's pi, in the order of the data's users; everyone must have one."""
    rows = _read(path, "pi", pl.Float64)
    values = rows["pi"].to_numpy()
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        raise BadFile(f"{path}, line {wrong[0] + 2}: pi is {values[wrong[0]]}; a number from 0 to 1 is needed.")
    numbers = _numbers(path, rows, data)
    if rows["user"].is_duplicated().any():
        again = int(rows["user"].is_first_distinct().not_().arg_true()[0])
        raise BadFile(f"{path}, line {again + 2}: user {rows['user'][again]} is named a second time; once is needed.")
    pi = np.full(data.n_users, np.nan)
    pi[numbers] = values
    missing = np.flatnonzero(np.isnan(pi))
    if len(missing):
        raise BadFile(
            f"{path} has no pi for {len(missing):,} of the {data.n_users:,} users (the first: "
            f"{data.user_ids[missing[0]]}); every person's choice is needed."
        )
    return pi


def read_trace(path: str | Path, data: Interactions) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which device is there in which round (counted from 0), as rounds x users."""
    rows = _read(path, "round", pl.Int64)
    rounds = rows["round"].to_numpy()
    if rounds.min() < 0:
        raise BadFile(f"{path}: rounds are counted from 0, and there is a round {rounds.min()}.")
    trace = np.zeros((int(rounds.max()) + 1, data.n_users), dtype=np.bool_)
    trace[rounds, _numbers(path, rows, data)] = True
    return trace


def _read(path: str | Path, column: str, kind: type[pl.DataType]) -> pl.DataFrame:
    if not Path(path).is_file():
        raise BadFile(f"There is no file {path}; a CSV with the columns user and {column} is needed.")
    try:
        rows = pl.read_csv(path, infer_schema=False)
        found = rows.columns
        if set(found) != {"user", column}:
            raise BadFile(f"{path} has the columns {', '.join(found)}; user and {column} are needed.")
        if rows.is_empty():
            raise BadFile(f"{path} has a header but no rows.")
        values = rows[column].str.strip_chars().cast(kind, strict=False)
        if values.null_count():
            wrong = int(values.is_null().arg_true()[0])
            raise BadFile(f"{path}, line {wrong + 2}: {column} is {rows[column][wrong]!r}; a number is needed.")
        return rows.with_columns(values)
    except pl.exceptions.PolarsError as reason:
        raise BadFile(f"{path} cannot be read as a CSV of user and {column}: {reason}") from reason


def _numbers(path: str | Path, rows: pl.DataFrame, data: Interactions) -> IntVector:
    try:
        return np.array([data.user_index(user) for user in rows["user"].to_list()], dtype=np.int32)
    except UnknownId as unknown:
        raise BadFile(f"{path} names somebody who is not there: {unknown}") from unknown
