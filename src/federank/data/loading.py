"""Loading a data set: one function for a known name, a file, a folder, an archive, a frame or plain columns.

    load("ml-1m")                                        a known set
    load("ratings.csv")                                  a table whose header or order says what is what
    load("log.tsv.gz", users="who", items="what")        columns by name, or by position from 0
    load("gowalla/train.txt")                            adjacency lists: `user item item ...` on each line
    load(frame), load((users, items, ratings, times))    data already in memory, as columns
    load([(1, 2), (1, 3), (2, 3)])                       or as rows
    load("log.xyz")                                      what a registered reader of .xyz makes of it

What is read is checked from its first row to its last, and what cannot stand is refused in one sentence that
names the file, the line and the column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from federank import extensions
from federank.checks import check_type
from federank.data.archives import PARQUET, ZIP, Files, Text, file_and_neighbours, files_in, first_bytes, read_text
from federank.data.columns import ColumnChoice, Columns, ReadingOptions, as_interactions
from federank.data.datasets import KNOWN, KnownSet, find, find_parts, locate
from federank.data.formats import (
    EDITIONS,
    find_movielens,
    find_recbole,
    find_worldwide,
    item_file_of,
    read_country,
    read_items,
    read_movielens,
    read_recbole,
)
from federank.data.interactions import Interactions, Repeats
from federank.data.memory import is_pandas, read_arrays, read_pandas, read_parquet, read_polars
from federank.data.text_files import looks_like_lists, read_delimited, read_lists
from federank.errors import BadFile, DataError, FedeRankError, SettingError

# Which reader a path needs: decided by the file's first bytes, and by the names of the files beside it.


TABLES = (".csv", ".tsv", ".dat", ".data", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
"""How the names of tables end, where one is looked for among other files."""


def read_path(path: Path, options: ReadingOptions) -> Columns:
    """The columns of the data at a path."""
    if path.is_dir():
        files = files_in(path)
        return _read_known(files, path, options) or read_path(
            path / _only_table(files, path, (*TABLES, ".zip", ".parquet")), options
        )
    start = first_bytes(path)
    if start.startswith(ZIP):
        files = files_in(path)
        return _read_known(files, path, options) or _read_table(files[_only_table(files, path, TABLES)](), options)
    if start.startswith(PARQUET):
        options.refuse_layout("A Parquet file")
        return read_parquet(path, options.columns)
    return _read_file(path, options)


def _read_file(path: Path, options: ReadingOptions) -> Columns:
    files = file_and_neighbours(path, [item_file_of(path.name), *(edition.items for edition in EDITIONS)])
    if find_recbole(files):
        options.refuse_layout("A RecBole file")
        return read_recbole(files, path.name, options.columns)
    movielens = find_movielens(files)
    if movielens and options.nothing():
        return read_movielens(files, movielens)
    return _read_table(files[path.name](), options)


def _read_known(files: Files, path: Path, options: ReadingOptions) -> Columns | None:
    """The columns of a set whose files give it away by their names."""
    movielens = find_movielens(files)
    if movielens:
        options.refuse_all(f"{path} is a MovieLens set, which")
        return read_movielens(files, movielens)
    atomic = find_recbole(files)
    if len(atomic) == 1:
        options.refuse_layout(f"{path} is a RecBole set, which")
        return read_recbole(files, atomic[0], options.columns)
    return None


def _read_table(text: Text, options: ReadingOptions) -> Columns:
    if options.lists or (options.lists is None and options.nothing() and looks_like_lists(text)):
        options._replace(lists=None).refuse_all("A file of adjacency lists")
        return read_lists(text)
    return read_delimited(text, options.columns, header=options.header, delimiter=options.delimiter)


def _only_table(files: Files, path: Path, endings: tuple[str, ...]) -> str:
    """The one file that may be a table; with none or several, the caller is asked to say which."""
    tables = [name for name in files if name.lower().endswith(endings)]
    if len(tables) == 1:
        return tables[0]
    several = [name for name in files if name in tables or name.endswith(".inter")]
    if several:
        raise BadFile(f"{path} holds several tables ({_listed(several)}); give the path of one of them.")
    raise BadFile(
        f"{path} holds no data set that is known here, only {_listed(list(files)) or 'nothing'}; the files of "
        "MovieLens or RecBole, or one table that ends in .csv, .tsv or .parquet, are needed."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


# Readers from outside: files whose names end in a suffix that someone has registered.


Reader = Callable[[Path], Any]
"""A path -> what `load` takes from memory: a frame, a tuple of columns, a list of rows."""
_OURS = ("csv", "tsv", "dat", "data", "parquet", "inter", "zip", "gz", "zst", "json")


def register_reader(reader: Reader, suffix: str) -> Reader:
    """Let files whose names end in this suffix be read by a function of your own, for this process."""
    check_type("suffix", suffix, str, "the end of file names, such as 'orders',")
    ending = suffix.removeprefix(".").lower()
    if ending in _OURS:
        raise SettingError(f"Files that end in .{ending} are read here already; choose another suffix.")
    if not callable(reader):
        raise SettingError(f"{reader!r} cannot be a reader; a function of a path is needed.")
    extensions.add("readers", ending, reader)
    return reader


def reader_of(path: Path) -> Reader | None:
    """The reader that someone has registered for files like this one."""
    ending = path.suffix.removeprefix(".").lower()
    if not ending or ending in _OURS:
        return None
    reader: Reader | None = extensions.find("readers", ending)
    return reader


def read_with(reader: Reader, path: Path) -> Any:
    """What a reader from outside makes of a file."""
    try:
        return reader(path)
    except FedeRankError:
        raise
    except Exception as reason:  # whatever someone else's reader stumbles over
        raise BadFile(
            f"{path} cannot be read by the reader of {path.suffix} files: {type(reason).__name__}: {reason}."
        ) from reason


def _known(source: Any) -> KnownSet | None:
    """The known set that a source names, if it does."""
    return KNOWN.get(source) if isinstance(source, str) else None


def find_path(source: str | os.PathLike[str]) -> Path:
    """The file or folder that a name or a path stands for."""
    path = Path(source).expanduser()
    if isinstance(source, str) and source in KNOWN:
        return find(source) or (path if _exists(path) else locate(source))
    if _exists(path):
        return path
    if not isinstance(source, str) or path.suffix or "/" in source or os.sep in source:
        raise BadFile(f"There is no file or folder {path}; check the path.")
    return locate(source)  # names the nearest known set


def name_of(source: str | os.PathLike[str], path: Path) -> str:
    """What a data set is called: its known name, or its file's name without endings."""
    if isinstance(source, str) and source in KNOWN:
        return source
    bare = path.resolve().name
    for ending in (".gz", ".zst"):
        bare = bare.removesuffix(ending)
    return Path(bare).stem if path.is_file() else bare


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for any file, a folder that may not be looked into
        return False


def load(
    source: Any,
    *,
    users: ColumnChoice = None,
    items: ColumnChoice = None,
    ratings: ColumnChoice = None,
    times: ColumnChoice = None,
    header: bool | None = None,
    delimiter: str | None = None,
    lists: bool | None = None,
    repeats: Repeats = "latest",
    item_file: str | os.PathLike[str] | None = None,
) -> Interactions:
    """Read a data set.

    `source` is the name of a known set; a path to a file, a folder or a zip; a pandas or Polars frame; a tuple of
    columns `(users, items[, ratings[, times]])`; or a list of rows, each a tuple `(user, item[, rating[, time]])`.
    `users`, `items`, `ratings` and `times` name a column or give its position from 0; `ratings=False` or
    `times=False` leaves it out. Delimiter and header are detected unless given, and so are adjacency lists (`user item
    item ...`); `lists=True` says so where all of them have the same length. Of a repeated (user, item) pair the
    latest row stays (`repeats="first"` keeps the first, `"refuse"` raises); `repeats_left_out` counts the others.
    `item_file` is a file with titles or categories of the items.
    """
    columns = {"users": users, "items": items, "ratings": ratings, "times": times}
    chosen = {role: choice for role, choice in columns.items() if choice is not None}
    options = ReadingOptions(chosen, header, delimiter, lists)
    data, label = _read(source, options, repeats, item_file)
    if data.n_users < 2:
        only = data.user_ids.tolist()[0]
        raise DataError(f"{label} has one user only, {only!r}; a recommender learns from at least two users.")
    return data


def read_parts(sources: Mapping[str, Any]) -> dict[str, Interactions]:
    """Read the parts of a split; one user is enough there. Where one is a file of adjacency lists, all files are."""
    files = {name: path for name, source in sources.items() if (path := _text_file(source)) is not None}
    lists = any(looks_like_lists(read_text(path)) for path in files.values())
    return {
        name: read_part(source, lists=True if lists and name in files else None) for name, source in sources.items()
    }


def read_part(source: Any, *, lists: bool | None = None) -> Interactions:
    """Read a part of a split; one user is enough there."""
    return _read(source, ReadingOptions(lists=lists), "latest", None)[0]


def _text_file(source: Any) -> Path | None:
    """The path of a source that is one text file, of no reader of its own."""
    if not isinstance(source, str | os.PathLike) or _known(source) is not None:
        return None
    path = find_path(source)
    plain = path.is_file() and reader_of(path) is None and not first_bytes(path).startswith((ZIP, PARQUET))
    return path if plain else None


def _read(
    source: Any, options: ReadingOptions, repeats: Repeats, item_file: str | os.PathLike[str] | None
) -> tuple[Interactions, str]:
    """The interactions of a source, and what to call it in a complaint."""
    if repeats not in get_args(Repeats):
        raise SettingError(f"repeats is {repeats!r}; it must be one of {', '.join(map(repr, get_args(Repeats)))}.")
    known = _known(source)
    if known is not None and known.people is not None:
        from federank.data.synthetic import city

        options.refuse_all(f"{source} is generated, which")
        return city(known.people, checkins=40 * known.people), source
    columns, name, label = _columns(source, options)
    if item_file is not None:
        columns = _with_items(columns, item_file)
    return as_interactions(columns, name=name, repeats=repeats), label


def _columns(source: Any, options: ReadingOptions) -> tuple[Columns, str, str]:
    """The columns of a source, its name, and what to call it in a complaint."""
    known = _known(source)
    if known is not None and known.parts:
        options.refuse_all(f"{source} is a set of adjacency lists, which")
        parts = [read_lists(read_text(path)) for path in find_parts(source).values()]
        users, items = pl.concat([part.users for part in parts]), pl.concat([part.items for part in parts])
        return Columns(users, items), source, source
    if isinstance(source, str | os.PathLike):
        path = find_path(source)
        brought = reader_of(path)
        if known is not None and known.country is not None and find_worldwide(path) == path:
            options.refuse_all(f"{source} is taken from the check-ins of all countries, which")
            columns = read_country(path, known.country)
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
    """The same interactions, with the content of a file of items; the rest stays as it was."""
    details = read_items(read_text(Path(item_file).expanduser()))
    if details.titles is None and details.categories is None:
        raise BadFile(f"{item_file} has neither titles nor categories of items; call such columns title and genres.")
    return columns._replace(
        titles=columns.titles if details.titles is None else details.titles,
        categories=columns.categories if details.categories is None else details.categories,
    )
