"""MovieLens, as GroupLens publishes it: 100K, 1M, 10M, 20M, 25M, 32M and the `latest` sets.

Three editions of the same four columns, from the upstream zip or from its folder:

    100K              u.data       tab      u.item       genres as flags
    1M, 10M           ratings.dat  ::       movies.dat   genres joined by bars
    20M, 25M, 32M     ratings.csv  comma    movies.csv   likewise, with a header
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from federank.data.archives import Files, Text, beside, read_text
from federank.data.columns import (
    DATE_FORMATS,
    WORDS,
    ColumnChoices,
    Columns,
    categories_by_item,
    find_word,
    ids_of_text,
    seconds,
)
from federank.data.interactions import Categories, Interactions
from federank.data.text_files import even_rows, find_layout, read_delimited
from federank.errors import BadFile, DataError

TITLES = ("title", "movietitle", "name", "itemname", "venuename", "placename", "booktitle", "producttitle")
CATEGORIES = ("genres", "genre", *WORDS["categories"], "class", "type")
NO_GENRES = "(no genres listed)"

MOVIELENS_100K_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""The order of the flags in `u.item`, as its publisher lists them in `u.genre`."""


class ItemDetails(NamedTuple):
    """Titles and categories by an item's id as text; None for what the file does not have."""

    titles: dict[str, str] | None
    categories: dict[str, list[str]] | None
    repeated: str | None
    """The first item that occurs twice."""


def read_items(text: Text) -> ItemDetails:
    """The titles and categories in a file of items; of an item that occurs twice, the last ones."""
    layout, encoding, mark = find_layout(text), "utf-8", "|"
    item = 0
    title: int | None = 1
    category: int | None = 2
    flags = len(MOVIELENS_100K_GENRES) if layout.names is None and layout.width != 3 else 0
    if layout.names is not None:
        named = find_word(layout.names, WORDS["items"])
        if named is None:
            raise BadFile(
                f"{text.label} has the columns {', '.join(map(repr, layout.names))}, and none is known to hold item "
                "ids; call that one item_id."
            )
        item, title, category = named, find_word(layout.names, TITLES), find_word(layout.names, CATEGORIES)
        # RecBole parts a list of tokens with spaces, and a lone token is one word; everyone else uses bars.
        if layout.kinds and category is not None:
            mark = " " if layout.kinds[category] == "token_seq" else "\n"
    elif (layout.delimiter, layout.width) in (("::", 3), ("|", 5 + flags)):
        layout, encoding = layout._replace(quoted=layout.quoted and not flags), _movielens_encoding(text)
    else:
        raise BadFile(
            f"{text.label} is not a file of items: a header with an item column and a title or category column is "
            "needed, or MovieLens' u.item or movies.dat."
        )
    titles: dict[str, str] = {}
    categories: dict[str, list[str]] = {}
    seen: set[str] = set()
    repeated = None
    for record in even_rows(text, layout, range(layout.width), encoding):
        fields = record.fields
        if fields[item] in seen and repeated is None:
            repeated = fields[item]
        seen.add(fields[item])
        if title is not None:
            titles[fields[item]] = fields[title]
        if flags:
            flagged = zip(MOVIELENS_100K_GENRES, fields[-flags:], strict=True)
            categories[fields[item]] = [genre for genre, flag in flagged if flag == "1"]
        elif category is not None and fields[category] != NO_GENRES:
            categories[fields[item]] = [part.strip() for part in fields[category].split(mark) if part.strip()]
        elif category is not None:
            categories[fields[item]] = []
    return ItemDetails(None if title is None else titles, None if category is None else categories, repeated)


def _movielens_encoding(text: Text) -> str:
    """The older sets are in Latin-1 and the newer in UTF-8, and no Latin-1 one of them happens to be valid UTF-8."""
    try:
        text.view()[:].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


class Edition(NamedTuple):
    """One way in which MovieLens has been published."""

    ratings: str
    items: str
    delimiter: str
    header: bool


EDITIONS = (
    Edition("u.data", "u.item", "\t", header=False),
    Edition("ratings.dat", "movies.dat", "::", header=False),
    Edition("ratings.csv", "movies.csv", ",", header=True),
)


class MovieLens(NamedTuple):
    """A MovieLens set among some files: which edition, and what its ratings are called there."""

    edition: Edition
    ratings: str


def find_movielens(files: Files) -> MovieLens | None:
    """The MovieLens set among these files, if there is one: ratings with their items beside them."""
    for edition in EDITIONS:
        for name in files:
            if PurePosixPath(name).name == edition.ratings and beside(name, edition.items) in files:
                return MovieLens(edition, name)
    return None


def read_movielens(files: Files, movielens: MovieLens) -> Columns:
    """The ratings of a MovieLens set, with titles and genres."""
    edition = movielens.edition
    columns = read_delimited(files[movielens.ratings](), header=edition.header, delimiter=edition.delimiter)
    details = read_items(files[beside(movielens.ratings, edition.items)]())
    return columns._replace(titles=details.titles, categories=details.categories)


# RecBole's atomic files: NAME.inter holds the interactions, and NAME.item beside it the items.


def find_recbole(files: Files) -> list[str]:
    """The interaction files among these files."""
    return [name for name in files if PurePosixPath(name).suffix == ".inter"]


def item_file_of(name: str) -> str:
    """The name of the file of items that belongs to an interaction file."""
    return str(PurePosixPath(name).with_suffix(".item"))


def read_recbole(files: Files, name: str, choices: ColumnChoices) -> Columns:
    """The interactions of an atomic file, with the content of the file of items beside it."""
    columns = read_delimited(files[name](), choices, header=True, delimiter="\t")
    if item_file_of(name) not in files:
        return columns
    details = read_items(files[item_file_of(name)]())
    return columns._replace(titles=details.titles, categories=details.categories)


# Check-ins all over the world (Yang et al., 2016), as their authors give them: one country's, the latest of each pair.


CHECK_INS, VENUES = "dataset_TIST2015_Checkins.txt", "dataset_TIST2015_POIs.txt"


def find_worldwide(folder: Path) -> Path | None:
    """The folder of both files: this one, or one right inside it."""
    inside = sorted(path.parent for path in folder.glob(f"*/{CHECK_INS}")) if folder.is_dir() else []
    for place in (folder, *inside):
        if (place / CHECK_INS).is_file() and (place / VENUES).is_file():
            return place
    return None


def read_country(folder: Path, country: str) -> Columns:
    """The check-ins at the venues of a country, with the venues' kinds."""
    venues = _scan(folder / VENUES, ["item", "latitude", "longitude", "kind", "country"])
    here = venues.filter(pl.col("country") == country).select("item", "kind").unique("item", maintain_order=True)
    rows = _scan(folder / CHECK_INS, ["user", "item", "time", "offset"])
    try:
        frame = (
            rows.join(here, on="item", how="inner")
            .select("user", "item", "kind", "time", seconds("time", DATE_FORMATS[0]).alias("seconds"))
            .collect(engine="streaming")
        )
    except pl.exceptions.PolarsError as reason:
        raise BadFile(
            f"{folder} has files that are not laid out as check-ins are ({reason}); get them again."
        ) from reason
    if not frame.height:
        raise DataError(
            f"{folder / CHECK_INS} has no check-in at a venue of {country}; a country's two letters are needed."
        )
    bad = frame.filter(pl.col("seconds").is_null())
    if bad.height:
        raise BadFile(
            f"{folder / CHECK_INS} has a check-in of {bad['user'][0]} with the time {bad['time'][0]!r}; such as "
            "'Tue Apr 03 18:00:06 +0000 2012' is needed."
        )
    return Columns(
        users=ids_of_text(frame["user"]),
        items=frame["item"],
        times=frame["seconds"],
        categories=categories_by_item(frame["item"], frame["kind"]),
    )


def _scan(path: Path, names: list[str]) -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        separator="\t",
        has_header=False,
        quote_char=None,
        new_columns=names,
        infer_schema=False,
        encoding="utf8-lossy",
    )


def is_catalogue_file(path: Path) -> bool:
    """Whether a file is a table of items and of no one's choices: its header says so."""
    if not path.is_file():
        return False
    try:
        names = find_layout(read_text(path)).names
    except BadFile:
        return False  # anyone who reads it as something else says what is wrong with it
    if names is None or find_word(names, WORDS["users"]) is not None:
        return False
    return None not in (find_word(names, WORDS["items"]), find_word(names, (*TITLES, *CATEGORIES)))


def read_catalogue_file(path: Path) -> Interactions:
    """The items of a file, and no one."""
    return empty_history(read_catalogue(path), path.stem)


def read_catalogue(path: Path) -> list[dict[str, Any]]:
    """The items of a file in its order, each of them once and with a title; ids are numbers where all of them are."""
    details = read_items(read_text(path))
    if details.titles is None:
        raise BadFile(f"{path.name} has no column of titles; a catalogue has the columns item_id and title.")
    if details.repeated is not None:
        raise BadFile(f"{path.name} names the item {details.repeated!r} twice; a catalogue names each once.")
    if not details.titles:
        raise BadFile(f"{path.name} names no item; a catalogue has the columns item_id and title.")
    numbered = ids_of_text(pl.Series("id", list(details.titles))).dtype != pl.String
    return [
        {
            "id": int(item) if numbered else item,
            "title": title or item,
            "categories": (details.categories or {}).get(item, []),
        }
        for item, title in details.titles.items()
    ]


def empty_history(items: list[dict[str, Any]], name: str) -> Interactions:
    """A catalogue as interactions without any."""
    ids = [item["id"] for item in items]
    known = Interactions.from_columns(
        [0] * len(ids),
        ids,
        titles={item["id"]: str(item["title"]) for item in items},
        categories={item["id"]: list(item["categories"]) for item in items},
        name=name,
    )
    if known.item_ids.tolist() != ids:  # a catalogue need not be sorted
        rows = {identity: row for row, identity in enumerate(known.item_ids.tolist())}
        order = np.array([rows[identity] for identity in ids])
        titles = None if known.titles is None else known.titles[order]
        categories = Categories.from_lists(list(item["categories"]) for item in items)
        known = replace(known, item_ids=known.item_ids[order], titles=titles, categories=categories)
    nothing = np.zeros(0, dtype=np.int32)
    return replace(known, users=nothing, items=nothing, user_ids=known.user_ids[:0])
