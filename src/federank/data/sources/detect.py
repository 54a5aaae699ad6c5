"""Which reader a path needs: told by the file's first bytes, and by the names of the files that lie together.

A folder or a zip is a MovieLens set if it has one's files, a RecBole set if it has one `.inter` file, and
otherwise its one table. A file is read with the files that belong to it: the items beside the ratings.
"""

from __future__ import annotations

from pathlib import Path

from federank.data.sources.archives import Files, file_and_neighbours, files_in
from federank.data.sources.columns import Columns
from federank.data.sources.formats.movielens import EDITIONS, find_movielens, read_movielens
from federank.data.sources.formats.recbole import find_recbole, item_file_of, read_recbole
from federank.data.sources.memory.frames import read_parquet
from federank.data.sources.options import ReadingOptions
from federank.data.sources.text.contents import PARQUET, ZIP, Text, first_bytes
from federank.data.sources.text.delimited import read_delimited
from federank.errors import BadFile

TABLES = (".csv", ".tsv", ".dat", ".data", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
"""How the names of tables end, where one is looked for among other files."""


def read_path(path: Path, options: ReadingOptions) -> Columns:
    """The columns of whatever lies at a path."""
    if path.is_dir():
        files = files_in(path)
        known = _read_known(files, path, options)
        return known or read_path(path / _only_table(files, path, (*TABLES, ".zip", ".parquet")), options)
    start = first_bytes(path)
    if start.startswith(ZIP):
        files = files_in(path)
        known = _read_known(files, path, options)
        return known or _read_table(files[_only_table(files, path, TABLES)](), options)
    if start.startswith(PARQUET):
        options.refuse_layout("A Parquet file")
        return read_parquet(path, options.columns)
    return _read_file(path, options)


def _read_file(path: Path, options: ReadingOptions) -> Columns:
    files = file_and_neighbours(path, [item_file_of(path.name), *(edition.items for edition in EDITIONS)])
    if find_recbole(files):
        options.refuse_layout("A RecBole file")
        return read_recbole(files, path.name, options.columns)
    found = find_movielens(files)
    if found and options.nothing():
        return read_movielens(files, found)
    return _read_table(files[path.name](), options)


def _read_known(files: Files, path: Path, options: ReadingOptions) -> Columns | None:
    """The columns of a set whose files give it away by their names."""
    found = find_movielens(files)
    if found:
        options.refuse_all(f"{path} is a MovieLens set, which")
        return read_movielens(files, found)
    atomic = find_recbole(files)
    if len(atomic) == 1:
        options.refuse_layout(f"{path} is a RecBole set, which")
        return read_recbole(files, atomic[0], options.columns)
    return None


def _read_table(text: Text, options: ReadingOptions) -> Columns:
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
