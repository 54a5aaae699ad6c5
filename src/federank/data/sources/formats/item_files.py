"""What the items are called and which categories they belong to, from a file of items.

Three kinds are known: MovieLens 100K's `u.item` (bars, one flag per genre), MovieLens 1M and 10M's `movies.dat`
(`::`, genres joined by bars), and any table whose header names an item column and a title or category column:
MovieLens' `movies.csv`, RecBole's `.item`, your own. Ids are kept as text until the interactions say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from federank.data.sources.roles import WORDS, find_word
from federank.data.sources.text.contents import Text
from federank.data.sources.text.layout import Layout, find_layout
from federank.data.sources.text.records import Record, records
from federank.errors import BadFile

TITLES = ("title", "movietitle", "name", "itemname", "venuename", "placename", "booktitle", "producttitle")
CATEGORIES = ("genres", "genre", *WORDS["categories"], "class", "type")
NO_GENRES = "(no genres listed)"

MOVIELENS_100K_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""The order of the flags in `u.item`, as its publisher lists them in `u.genre`."""


class ItemFacts(NamedTuple):
    """Titles and categories by an item's id as text; None for what the file does not tell."""

    titles: dict[str, str] | None
    categories: dict[str, list[str]] | None


def read_items(text: Text) -> ItemFacts:
    """The titles and categories in a file of items."""
    layout = find_layout(text)
    if layout.names is not None:
        return _named_columns(text, layout)
    if layout.delimiter == "::" and layout.width == 3:
        return _joined_genres(text, layout)
    if layout.delimiter == "|" and layout.width == 5 + len(MOVIELENS_100K_GENRES):
        return _flagged_genres(text, layout._replace(quoted=False))
    raise BadFile(
        f"{text.label} is not a file of items: a header with an item column and a title or category column is needed, "
        "or MovieLens' u.item or movies.dat."
    )


def _flagged_genres(text: Text, layout: Layout) -> ItemFacts:
    titles, categories = {}, {}
    for record in _records(text, layout, _movielens_encoding(text)):
        item, title, *_ = record.fields
        flags = record.fields[-len(MOVIELENS_100K_GENRES) :]
        titles[item] = title
        categories[item] = [genre for genre, flag in zip(MOVIELENS_100K_GENRES, flags, strict=True) if flag == "1"]
    return ItemFacts(titles, categories)


def _joined_genres(text: Text, layout: Layout) -> ItemFacts:
    rows = [record.fields for record in _records(text, layout, _movielens_encoding(text))]
    return ItemFacts({item: title for item, title, _ in rows}, {item: _parts(genres, "|") for item, _, genres in rows})


def _named_columns(text: Text, layout: Layout) -> ItemFacts:
    names = layout.names or ()
    item, title, category = (find_word(names, known) for known in (WORDS["items"], TITLES, CATEGORIES))
    if item is None:
        raise BadFile(
            f"{text.label} has the columns {', '.join(map(repr, names))}, and none is known to hold item ids; call "
            "that one item_id."
        )
    # RecBole parts a list of tokens with spaces, and a lone token is one word; everybody else uses bars.
    mark = "|"
    if layout.kinds and category is not None:
        mark = " " if layout.kinds[category] == "token_seq" else "\n"
    rows = [record.fields for record in _records(text, layout, "utf-8")]
    return ItemFacts(
        None if title is None else {row[item]: row[title] for row in rows},
        None if category is None else {row[item]: _parts(row[category], mark) for row in rows},
    )


def _records(text: Text, layout: Layout, encoding: str) -> Iterator[Record]:
    every = records(text.lines(), text.label, layout.delimiter, quoted=layout.quoted, encoding=encoding)
    for number, record in enumerate(every):
        if number < layout.skipped or not any(record.fields):
            continue
        if len(record.fields) != layout.width:
            raise BadFile(
                f"Line {record.line} of {text.label} has {len(record.fields)} columns when cut at "
                f"{layout.delimiter!r}, and {layout.width} are needed."
            )
        yield record


def _movielens_encoding(text: Text) -> str:
    """The older sets are in Latin-1 and the newer in UTF-8, and no Latin-1 one of them happens to be valid UTF-8."""
    try:
        text.view()[:].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _parts(joined: str, mark: str) -> list[str]:
    return [] if joined == NO_GENRES else [part.strip() for part in joined.split(mark) if part.strip()]
