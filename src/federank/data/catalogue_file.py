"""A catalogue without anybody's history: a table of items alone, with a column of ids and one of titles or categories.

It is what an operator has before anybody has come. As interactions it has items, in the order of the file, and no one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from federank.data.categories import Categories
from federank.data.interactions import Interactions
from federank.data.sources.formats.item_files import CATEGORIES, TITLES, ItemFacts, read_items
from federank.data.sources.roles import WORDS, find_word
from federank.data.sources.text.contents import read_text
from federank.data.sources.text.layout import find_layout
from federank.errors import BadFile


def is_catalogue_file(path: Path) -> bool:
    """Whether a file is a table of items and of nobody's choices: its header says so."""
    if not path.is_file():
        return False
    try:
        names = find_layout(read_text(path)).names
    except BadFile:
        return False  # whoever reads it as something else says what is wrong with it
    if names is None or find_word(names, WORDS["users"]) is not None:
        return False
    return None not in (find_word(names, WORDS["items"]), find_word(names, (*TITLES, *CATEGORIES)))


def read_catalogue_file(path: Path) -> Interactions:
    """The items of a file, and nobody."""
    return nobody_s_history(items_in(read_items(read_text(path))), path.stem)


def items_in(facts: ItemFacts) -> list[dict[str, Any]]:
    """Items with id, title and categories, in the order of their file; ids are numbers where all of them are."""
    titles, categories = facts
    ids = list(titles if titles is not None else categories or ())
    numbered = all(text.isascii() and text.removeprefix("-").isdecimal() and str(int(text)) == text for text in ids)
    return [
        {
            "id": int(item) if numbered else item,
            "title": (titles or {}).get(item) or item,
            "categories": (categories or {}).get(item, []),
        }
        for item in ids
    ]


def nobody_s_history(items: list[dict[str, Any]], name: str) -> Interactions:
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
