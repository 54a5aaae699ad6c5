"""The five folds that MovieLens 100K is published with: `u1.base` and `u1.test` to `u5`.

Published results use them, so they can be had as they are. Copies with rows moved between the two parts are
about: each fold is checked, that its parts share no rating and that together they are the whole set.
"""

from __future__ import annotations

import os

import numpy as np
import polars as pl

from federank.arrays import LongVector
from federank.data.interactions import Interactions
from federank.data.sources.archives import Files, beside, files_in
from federank.data.sources.columns import as_interactions
from federank.data.sources.formats.movielens import find_movielens, read_movielens
from federank.data.sources.paths import find_path
from federank.data.sources.text.contents import ZIP, first_bytes
from federank.data.sources.text.delimited import read_delimited
from federank.errors import BadFile


def read_movielens_folds(source: str | os.PathLike[str]) -> list[tuple[Interactions, Interactions]]:
    """The publisher's (training, test) folds, whose users and items are numbered as in the whole set."""
    path = find_path(source)
    files = files_in(path) if path.is_dir() or first_bytes(path).startswith(ZIP) else {}
    found = find_movielens(files)
    if found is None or found.edition.ratings != "u.data":
        raise BadFile(f"{path} is not MovieLens 100K, the set with published folds: u.data and u.item are needed.")
    whole = as_interactions(read_movielens(files, found), name="ml-100k")
    folds = []
    for number in range(1, 6):
        names = [beside(found.ratings, f"u{number}.{part}") for part in ("base", "test")]
        base, test = (_rows_of(files, name, whole, str(path)) for name in names)
        if len(base) + len(test) != len(whole) or len(np.union1d(base, test)) != len(whole):
            raise BadFile(
                f"Fold u{number} of {path} does not part its u.data in two: {len(base):,} and {len(test):,} of "
                f"{len(whole):,} ratings; get the set again from its publisher."
            )
        folds.append((whole.take(base), whole.take(test)))
    return folds


def _rows_of(files: Files, name: str, whole: Interactions, path: str) -> LongVector:
    """Which rows of the whole set a fold's file lists, ascending."""
    if name not in files:
        raise BadFile(f"{path} has no file {name}; the folds are u1.base and u1.test to u5.base and u5.test.")
    columns = read_delimited(files[name](), header=False, delimiter="\t")
    listed = pl.DataFrame({"user": columns.users.cast(pl.String), "item": columns.items.cast(pl.String)})
    pairs = pl.DataFrame(
        {
            "user": pl.Series(whole.user_ids[whole.users].tolist()).cast(pl.String),
            "item": pl.Series(whole.item_ids[whole.items].tolist()).cast(pl.String),
        }
    ).with_row_index("row")
    rows = listed.join(pairs, on=["user", "item"], how="left")["row"]
    if rows.null_count():
        raise BadFile(f"{name} in {path} lists ratings that its u.data does not have; get the set again.")
    return rows.sort().to_numpy().astype(np.int64)
