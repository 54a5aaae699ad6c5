"""Interactions and splits on disk: Parquet files that any tool can open and no one can hide a program in.

A folder of one `Interactions`: `users.parquet` and `items.parquet` with the original ids (items also with title and
categories), and `rows.parquet` with numbers into them. A split shares the first two and has a file per part.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from federank._numerics.arrays import Ids
from federank.data.interactions import Categories, Interactions, id_series, text_ids
from federank.data.splits import Split
from federank.errors import ModelError

_PARTS = ("train", "validation", "test", "fold_in")


def write_interactions(data: Interactions, folder: Path) -> None:
    """Write one set of interactions into an existing, empty folder."""
    _write_ids(data, folder)
    _rows(data).write_parquet(folder / "rows.parquet")


def read_interactions(folder: Path) -> Interactions:
    """Read what `write_interactions` wrote, checking that its numbers and columns fit together."""
    return _with_rows(_read_ids(folder), folder / "rows.parquet")


def write_split(split: Split, folder: Path) -> None:
    """Write the parts of a split into an existing, empty folder."""
    _write_ids(split.train, folder)
    for part in _PARTS:
        if (rows := getattr(split, part)) is not None:
            _rows(rows).write_parquet(folder / f"{part}.parquet")
    (folder / "split.json").write_text(json.dumps({"how": split.how, "name": split.train.name}), encoding="utf-8")


def read_split(folder: Path) -> Split:
    """Read what `write_split` wrote; a split whose parts overlap is refused as ever."""
    full = _read_ids(folder)
    try:
        content = json.loads(_existing(folder / "split.json").read_text(encoding="utf-8"))
        full, how = replace(full, name=str(content["name"])), str(content["how"])
    except (ValueError, TypeError, KeyError) as reason:
        raise ModelError(
            f"{folder / 'split.json'} is not as it was written ({reason!r}); it was changed or damaged."
        ) from reason
    parts = {part: folder / f"{part}.parquet" for part in _PARTS}
    needed = {part: path for part, path in parts.items() if part in ("train", "test") or path.exists()}
    return Split(**{part: _with_rows(full, path) for part, path in needed.items()}, how=how)


def _write_ids(data: Interactions, folder: Path) -> None:
    pl.DataFrame({"id": id_series(data.user_ids)}).write_parquet(folder / "users.parquet")
    items: dict[str, Any] = {"id": id_series(data.item_ids)}
    if data.titles is not None:
        items["title"] = id_series(data.titles)
    if data.categories is not None:
        rows = [list(data.categories.of(item)) for item in range(data.n_items)]
        items["categories"] = pl.Series(rows, dtype=pl.List(pl.String))
    pl.DataFrame(items).write_parquet(folder / "items.parquet")


def _read_ids(folder: Path) -> Interactions:
    users, items = _read(folder / "users.parquet", "id"), _read(folder / "items.parquet", "id")
    nothing = np.empty(0, dtype=np.int32)
    return Interactions(
        users=nothing,
        items=nothing,
        user_ids=_as_ids(users["id"]),
        item_ids=_as_ids(items["id"]),
        titles=_as_ids(items["title"]) if "title" in items.columns else None,
        categories=Categories.from_lists(items["categories"].to_list()) if "categories" in items.columns else None,
    )


def _rows(data: Interactions) -> pl.DataFrame:
    columns = {"user": data.users, "item": data.items, "rating": data.ratings, "time": data.times}
    return pl.DataFrame({name: column for name, column in columns.items() if column is not None})


def _with_rows(full: Interactions, path: Path) -> Interactions:
    rows = _read(path, "user", "item")
    users, items = (rows[name].to_numpy().astype(np.int32) for name in ("user", "item"))
    keys = users.astype(np.int64) * full.n_items + items
    inside = (users >= 0).all() and (users < full.n_users).all() and (items >= 0).all() and (items < full.n_items).all()
    if not inside or np.any(keys[1:] <= keys[:-1]):
        raise ModelError(f"{path} names users or items that are not in the files beside it; it was changed or damaged.")
    return replace(
        full,
        users=users,
        items=items,
        ratings=rows["rating"].to_numpy().astype(np.float32) if "rating" in rows.columns else None,
        times=rows["time"].to_numpy().astype(np.int64) if "time" in rows.columns else None,
    )


def _as_ids(column: pl.Series) -> Ids:
    if column.dtype.is_integer():
        return column.to_numpy().astype(np.int64)
    return text_ids(column.cast(pl.String))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ModelError(f"{path} is missing; the folder it belongs to is incomplete.")
    return path


def _read(path: Path, *needed: str) -> pl.DataFrame:
    """The table of a file, once the columns it needs are there, integers or (as ids) text, none of them empty."""
    try:
        table = pl.read_parquet(_existing(path))
    except pl.exceptions.PolarsError as reason:
        raise ModelError(f"{path} cannot be read as Parquet ({reason}); it was changed or damaged.") from reason
    for name in needed:
        column = table.get_column(name, default=None)
        kinds = (pl.String,) if name == "id" else ()
        if column is None or column.null_count() or not (column.dtype.is_integer() or column.dtype in kinds):
            raise ModelError(f"{path} lacks a proper column {name!r}; it was changed or damaged.")
        if name == "id" and column.n_unique() != len(column):
            raise ModelError(f"{path} names someone or something twice; it was changed or damaged.")
    return table
