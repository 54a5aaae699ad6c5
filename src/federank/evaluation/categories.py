"""Categories of items to report on, few enough to read; and groups of users.

Check-in data comes with hundreds of kinds of places ("Pizza Place", "Ramen / Noodle House"). The papers report on
nine top categories, and `foursquare_categories.toml` says which kind belongs to which. Genres of films are few
already and stay as they are. Categories can also come from a file of two columns, `item category`, as Elliot has
them; items that the file leaves out are counted, and items that the data does not know are too. Groups of users
come in the same form, `user group`.
"""

from __future__ import annotations

import os
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from federank.data.categories import Categories
from federank.data.interactions import Interactions
from federank.errors import BadFile
from federank.recommenders.recommendations import match_ids
from federank.recommenders.stored.recommendation_files import numbered_lines

_NEEDED = "an item, a tab and a category are needed on every line, and no header"


@cache
def foursquare_categories() -> dict[str, str]:
    """The papers' top category of each of Foursquare's kinds of places."""
    content = tomllib.loads((files(__package__) / "foursquare_categories.toml").read_text(encoding="utf-8"))
    return {kind: top for top, kinds in content.items() for kind in kinds}


def top_categories(categories: Categories) -> Categories:
    """The papers' nine, where most names are Foursquare's kinds of places; else the same, as for genres.

    A name that is not in the list of kinds keeps itself, so that it shows in the report instead of vanishing.
    """
    known = foursquare_categories()
    ours = [name for name in categories.names if name in known]
    if 2 * len(ours) <= len(categories.names):
        return categories
    return categories.renamed({name: known.get(name, name) for name in categories.names})


def items_without_category(categories: Categories, data: Interactions) -> int:
    """How many items that have an interaction have no category."""
    return int(np.count_nonzero((np.diff(categories.starts) == 0) & (data.popularity > 0)))


def read_categories(path: str | os.PathLike[str], data: Interactions) -> tuple[Categories, int]:
    """Categories from a file of two columns, item and category; and how many of its items the data do not know.

    An item may stand on several lines, one per category. The columns are separated by a tab; there is no header.
    """
    rows = _two_columns(Path(path), _NEEDED)
    named = rows["first"].unique(maintain_order=True)
    numbers = match_ids(np.array(named.to_list(), dtype=np.dtypes.StringDType()), data.item_ids)
    if (numbers < 0).all():
        raise BadFile(
            f"None of the {len(named):,} items of {path} is in {data.name} (the first: {named[0]!r}); give the file of "
            f"this data set: {_NEEDED}."
        )
    number = dict(zip(named.to_list(), numbers.tolist(), strict=True))
    lists: list[list[str]] = [[] for _ in range(data.n_items)]
    for item, category in rows.select("first", "second").iter_rows():
        if number[item] >= 0:
            lists[number[item]].append(category)
    return Categories.from_lists(lists), int((numbers < 0).sum())


def read_groups(path: str | os.PathLike[str], data: Interactions) -> tuple[dict[Any, str], int]:
    """Groups of users from a file of two columns, user and group; and how many of its users the data do not know."""
    path = Path(path)
    rows = _two_columns(path, "a user, a tab and a group are needed on every line, and no header")
    twice = rows.filter(~pl.col("first").is_first_distinct())
    if len(twice):
        line, user, _ = twice.row(0)
        raise BadFile(f"Line {line} of {path} gives user {user} a second group; each user can be in one.")
    places = match_ids(np.array(rows["first"].to_list(), dtype=np.dtypes.StringDType()), data.user_ids)
    ids = data.user_ids.tolist()
    groups = {ids[place]: group for place, group in zip(places.tolist(), rows["second"], strict=True) if place >= 0}
    return groups, int((places < 0).sum())


def _two_columns(path: Path, needed: str) -> pl.DataFrame:
    """The lines of a file of two columns: their number, what comes first and what second."""
    fields = pl.col("text").str.splitn("\t", 2).struct.rename_fields(["first", "second"])
    rows = numbered_lines(path, needed).select("line", fields).unnest("text")
    unfit = rows.filter(pl.col("second").is_null() | pl.col("second").str.contains("\t", literal=True))
    if len(unfit):
        raise BadFile(f"Line {unfit['line'][0]} of {path} has other than two columns; {needed}.")
    return rows
