"""Loading a data set: one function for a known name, a file, a folder, an archive, a frame or plain columns.

    load("ml-1m")                                        a known set
    load("ratings.csv")                                  a table whose header or order says what is what
    load("log.tsv.gz", users="who", items="what")        columns by name, or by position from 0
    load(frame), load((users, items, ratings, times))    data already in memory, as columns
    load([(1, 2), (1, 3), (2, 3)])                       or as rows
    load("log.xyz")                                      what a registered reader of .xyz makes of it

What is read is checked from its first row to its last, and what cannot stand is refused in one sentence that
names the file, the line and the column.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from federank.data.interactions import Interactions, Repeats
from federank.data.known.sets import KNOWN, KnownSet
from federank.data.sources.columns import Columns, as_interactions
from federank.data.sources.detect import read_path
from federank.data.sources.formats.item_files import read_items
from federank.data.sources.formats.tist2015 import find_worldwide, read_country
from federank.data.sources.memory.arrays import read_arrays
from federank.data.sources.memory.frames import is_pandas, read_pandas, read_polars
from federank.data.sources.options import ColumnChoice, ColumnChoices, ReadingOptions
from federank.data.sources.own_readers import read_with, reader_of
from federank.data.sources.paths import find_path, name_of
from federank.data.sources.text.contents import read_text
from federank.errors import BadFile, DataError, SettingError


def load(
    source: Any,
    *,
    users: ColumnChoice = None,
    items: ColumnChoice = None,
    ratings: ColumnChoice = None,
    times: ColumnChoice = None,
    header: bool | None = None,
    delimiter: str | None = None,
    repeats: Repeats = "latest",
    item_file: str | os.PathLike[str] | None = None,
) -> Interactions:
    """Read a data set.

    `source` is the name of a known set; a path to a file, a folder or a zip; a pandas or Polars frame; a tuple of
    columns `(users, items[, ratings[, times]])`; or a list of rows, each a tuple `(user, item[, rating[, time]])`.
    `users`, `items`, `ratings` and `times` name a column or give its position from 0; `ratings=False` or
    `times=False` leaves it out. Delimiter and header are found unless given. Of a repeated (user, item) pair the
    latest row stays (`repeats="first"` keeps the first, `"refuse"` raises); `repeats_left_out` counts the others.
    `item_file` is a file with titles or categories of the items.
    """
    options = ReadingOptions(ColumnChoices(users, items, ratings, times), header, delimiter)
    data, label = _read(source, options, repeats, item_file)
    if data.n_users < 2:
        only = data.user_ids.tolist()[0]
        raise DataError(f"{label} has one user only, {only!r}; a recommender learns from at least two people.")
    return data


def read_part(source: Any) -> Interactions:
    """Read a part of a split; one user is enough there."""
    return _read(source, ReadingOptions(), "latest", None)[0]


def _read(
    source: Any, options: ReadingOptions, repeats: Repeats, item_file: str | os.PathLike[str] | None
) -> tuple[Interactions, str]:
    """The interactions of a source, and what to call it in a complaint."""
    if repeats not in get_args(Repeats):
        raise SettingError(f"repeats is {repeats!r}; it must be one of {', '.join(map(repr, get_args(Repeats)))}.")
    if isinstance(source, str) and source in KNOWN and KNOWN[source].generated:
        options.refuse_all(f"{source} is generated, which")
        return _generated(KNOWN[source]), source
    columns, name, label = _columns(source, options)
    if item_file is not None:
        columns = _with_items(columns, item_file)
    return as_interactions(columns, name=name, repeats=repeats), label


def _columns(source: Any, options: ReadingOptions) -> tuple[Columns, str, str]:
    """The columns of a source, its name, and what to call it in a complaint."""
    if isinstance(source, str | os.PathLike):
        path = find_path(source)
        brought = reader_of(path)
        country = KNOWN[source].country if isinstance(source, str) and source in KNOWN else None
        if country is not None and find_worldwide(path) == path:
            options.refuse_all(f"{source} is taken from the check-ins of the whole world, which")
            columns = read_country(path, country)
        else:
            columns = read_path(path, options) if brought is None else _read_memory(read_with(brought, path), options)
        return columns, name_of(source, path), str(path)
    return _read_memory(source, options), "interactions", "The data"


def _read_memory(source: Any, options: ReadingOptions) -> Columns:
    if is_pandas(source):
        options.refuse_layout("A frame")
        return read_pandas(source, options.columns)
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        options.refuse_layout("A frame")
        return read_polars(source, options.columns)
    if isinstance(source, tuple | list | np.ndarray):
        options.refuse_all("What is in memory without names is in the order user, item, rating, time, which")
        return read_arrays(source)
    raise DataError(
        f"A {type(source).__name__} cannot be loaded; give a known set's name, a path, a pandas or Polars frame, a "
        "tuple of columns (users, items, ratings, times), or a list of rows (user, item, rating, time)."
    )


def _with_items(columns: Columns, item_file: str | os.PathLike[str]) -> Columns:
    """The same interactions, with what a file of items tells; what it does not tell stays as it was."""
    facts = read_items(read_text(Path(item_file).expanduser()))
    if facts.titles is None and facts.categories is None:
        raise BadFile(f"{item_file} tells neither titles nor categories of items; call such columns title and genres.")
    return columns._replace(
        titles=columns.titles if facts.titles is None else facts.titles,
        categories=columns.categories if facts.categories is None else facts.categories,
    )


def _generated(known: KnownSet) -> Interactions:
    from federank.data.city.city import city

    assert known.people is not None, "what is generated has a size"
    return city(known.people, checkins=40 * known.people)
