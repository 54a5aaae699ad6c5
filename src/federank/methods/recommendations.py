"""Recommendations: per user a list of items, best first; and their three-column files (`user item score`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl

from federank._numerics.arrays import FloatMatrix, Ids, IntMatrix, LongVector
from federank.data.archives import read_text
from federank.data.interactions import Interactions, id_series, text_ids
from federank.errors import BadFile, DataError
from federank.files import atomic_write


class Recommended(NamedTuple):
    """One recommended item."""

    item: Any
    score: float
    title: str


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations:
    """The recommendation lists of many users."""

    users: Ids
    """Original ids, one per list."""
    items: IntMatrix
    """Item numbers in `item_ids`, one row per user, best first; -1 where a list is shorter."""
    scores: FloatMatrix
    item_ids: Ids
    """Original ids of the catalogue."""
    titles: Ids | None = None

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"<recommendations of up to {self.items.shape[1]} items for {len(self):,} users>"

    def of(self, position: int) -> list[Recommended]:
        """The list at this position, with original ids."""
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
        """(user, item, score) of all lists, best first within each."""
        for position, user in enumerate(self.users.tolist()):
            for recommended in self.of(position):
                yield user, recommended.item, recommended.score

    def table(self) -> pl.DataFrame:
        """The same rows as a table of three columns: user, item, score."""
        held = self.items >= 0
        users = np.repeat(np.arange(len(self)), held.sum(axis=1))
        return pl.DataFrame(
            {
                "user": id_series(self.users).gather(users),
                "item": id_series(self.item_ids).gather(self.items[held]),
                "score": pl.Series(self.scores[held].astype(np.float32)),
            }
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the three-column file atomically."""

        write_recommendations(self, path)


def match_ids(ids: Ids, known: Ids) -> LongVector:
    """Position of each id in `known`, or -1. An integer matches its text form."""
    # Not np.searchsorted: it is wrong for text of more than 15 bytes (NumPy 2.4).
    names = pl.Enum(id_series(known).cast(pl.String))
    return (
        id_series(ids).cast(pl.String).cast(names, strict=False).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    )


# The three-column files that toolkits exchange: `user item score`, separated by tabs, no header.


_NEEDED = "three columns separated by tabs (user, item, score) and no header are needed"


def write_recommendations(recommendations: Recommendations, path: str | os.PathLike[str]) -> None:
    """Write lists as three columns, or in the format of the file's extension, atomically."""
    table = recommendations.table()
    kinds: dict[str, Callable[[IO[bytes]], object]] = {
        ".parquet": table.write_parquet,
        ".csv": table.write_csv,
        ".json": lambda file: file.write(table.write_json().encode()),
    }
    if (kind := Path(path).suffix.lower()) in kinds:
        atomic_write(path, kinds[kind])
        return
    for column in ("user", "item"):
        if table.schema[column] == pl.String and table[column].str.contains(r"[\t\r\n]").any():
            raise BadFile(
                f"The id of one {column} contains a tab or a line end, which a file of three columns cannot hold."
            )
    atomic_write(path, lambda file: table.write_csv(file, separator="\t", include_header=False, quote_style="never"))


def read_recommendations(path: str | os.PathLike[str], known: Interactions | None = None) -> Recommendations:
    """Read a three-column file; with `known`, refuse users and items that these data lack.

    Ids are integers if all ids of the column are, and text otherwise.
    """
    path = Path(path)
    table = _table_by_name(path)
    rows = _rows(path) if table is None else _rows_of_frame(table, str(path))
    if known is not None:
        _refuse_unknown(rows, "user", known.user_ids, path)
        _refuse_unknown(rows, "item", known.item_ids, path)
    return _gathered(rows)


def _table_by_name(path: Path) -> pl.DataFrame | None:
    """The table of a file with a known extension; None for three columns of text."""
    kind = path.suffix.lower()
    if kind not in (".parquet", ".csv", ".json") or not path.is_file():
        return None
    try:
        if kind == ".parquet":
            return pl.read_parquet(path)
        if kind == ".json":
            return pl.read_json(path)
        return pl.read_csv(path, schema_overrides={"user": pl.String, "item": pl.String})
    except (pl.exceptions.PolarsError, OSError) as reason:
        raise BadFile(
            f"{path} cannot be read in the format of its extension ({str(reason).partition(chr(10))[0]})."
        ) from reason


def recommendations_of(frame: Any) -> Recommendations:
    """Lists from a pandas or Polars frame with the columns user, item and optionally score; else in the order of
    rows."""
    return _gathered(_rows_of_frame(frame, "The frame"))


def _rows_of_frame(frame: Any, label: str) -> pl.DataFrame:
    """The checked rows of a frame: line, user and item as text, score."""
    names = [str(name) for name in frame.columns]
    if not {"user", "item"} <= set(names):
        raise DataError(f"{label} has the columns {', '.join(names)}; user and item are needed, and score is optional.")
    columns = {name: pl.Series(name, list(frame[name])) for name in ("user", "item", "score") if name in names}
    empty = next((name for name, column in columns.items() if column.null_count()), None)
    if empty is not None:
        raise DataError(f"{label} has an empty {empty} in row {int(columns[empty].is_null().arg_true()[0]) + 1}.")
    rows = pl.DataFrame(columns).with_columns(pl.col("user", "item").cast(pl.String)).with_row_index("line", offset=1)
    if not len(rows):
        raise DataError(f"{label} has no rows; one per recommended item is needed.")
    if "score" not in columns:
        rows = rows.with_columns(score=-pl.col("line").cast(pl.Float64))
    return _checked(rows, "Row", label)


def _checked(rows: pl.DataFrame, unit: str, label: str) -> pl.DataFrame:
    """Rows (line, user, item, score), if every score is a number and no item is recommended to a user twice."""
    numbers = rows["score"].cast(pl.Float64, strict=False)
    bad = rows.filter(numbers.is_null() | numbers.is_nan())
    if len(bad):
        hint = " If it is a header, remove it." if bad["line"][0] == rows["line"][0] else ""
        raise BadFile(
            f"{unit} {bad['line'][0]} of {label} has the score {bad['score'][0]!r}, which is not a number.{hint}"
        )
    repeats = rows.filter(~pl.struct("user", "item").is_first_distinct())
    if len(repeats):
        line, user, item, _ = repeats.select("line", "user", "item", "score").row(0)
        raise BadFile(
            f"{unit} {line} of {label} recommends item {item} to user {user} a second time; {len(repeats):,} of them "
            "repeat an earlier one. Keep one for each."
        )
    return rows.select("line", "user", "item", score=numbers)


def _gathered(rows: pl.DataFrame) -> Recommendations:
    """Rows (line, user, item, score) as lists: by score, then by line."""
    rows = rows.with_columns(first=pl.col("line").min().over("user"))
    rows = rows.sort("first", "score", "line", descending=[False, True, False])
    users = rows["user"].unique(maintain_order=True)
    catalogue = rows["item"].unique(maintain_order=True)
    lists = rows["first"].rank("dense").to_numpy().astype(np.int64) - 1
    positions = np.arange(len(rows)) - np.searchsorted(lists, lists)
    items = np.full((len(users), positions.max() + 1), -1, dtype=np.int32)
    scores = np.full(items.shape, -np.inf, dtype=np.float32)
    items[lists, positions] = rows["item"].cast(pl.Enum(catalogue)).to_physical().to_numpy()
    scores[lists, positions] = rows["score"].to_numpy()
    return Recommendations(_ids(users), items, scores, _ids(catalogue))


def numbered_lines(path: Path, needed: str) -> pl.DataFrame:
    """The non-blank lines of a text file with their numbers from 1 (`line`, `text`)."""
    source = read_text(path).source
    try:
        lines = pl.read_lines(source, name="text", row_index_name="line", row_index_offset=1)
    except pl.exceptions.ComputeError:
        raise BadFile(f"{path} is not UTF-8 text; {needed}.") from None
    lines = lines.with_columns(pl.col("text").str.strip_chars_end("\r")).filter(pl.col("text") != "")
    if not len(lines):
        raise BadFile(f"{path} has blank lines only; {needed}.")
    return lines


def _rows(path: Path) -> pl.DataFrame:
    """The rows of a file: line, user and item as text, score."""
    lines = numbered_lines(path, _NEEDED)
    widths = lines.select("line", width=pl.col("text").str.count_matches("\t", literal=True) + 1)
    uneven = widths.filter(pl.col("width") != 3)
    if len(uneven):
        line, width = uneven.row(0)
        raise BadFile(f"Line {line} of {path} has {width} column{'s' * (width > 1)}; {_NEEDED}.")
    fields = pl.col("text").str.split_exact("\t", 2).struct.rename_fields(["user", "item", "score"])
    rows = lines.select("line", fields).unnest("text")
    nameless = rows.filter((pl.col("user") == "") | (pl.col("item") == ""))
    if len(nameless):
        raise BadFile(f"Line {nameless['line'][0]} of {path} lacks its user or its item; {_NEEDED}.")
    return _checked(rows, "Line", str(path))


def _refuse_unknown(rows: pl.DataFrame, kind: str, known: Ids, path: Path) -> None:
    named = rows[kind].unique(maintain_order=True)
    unknown = named.filter(pl.Series(match_ids(text_ids(named), known) < 0))
    if len(unknown):
        line = rows.filter(pl.col(kind) == unknown[0])["line"][0]
        example = f"; a known one is {known[0]}" if len(known) else ""
        raise BadFile(
            f"Line {line} of {path} names the {kind} {unknown[0]!r}, which the data do not have{example}. "
            f"{len(unknown):,} of the file's {len(named):,} {kind}s are unknown: is it of another data set?"
        )


def _ids(column: pl.Series) -> Ids:
    """Integers if every id is written like one (no plus sign, no leading zero), else text."""
    numbers = column.cast(pl.Int64, strict=False)
    if numbers.null_count() == 0 and (numbers.cast(pl.String) == column).all():
        return numbers.to_numpy()
    return text_ids(column)
