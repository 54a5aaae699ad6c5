"""The owner's history, from a small CSV file: which of the federation's items it names.

The file has a column `item` with ids or titles (or is a bare list, one to a line), perhaps a `date`, which is not used.
What the federation does not know is listed for the owner and goes nowhere: not into the profile, not to the server.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from federank.arrays import IntVector
from federank.errors import BadFile, SettingError
from federank.service.device.answers import shown
from federank.service.device.federation import Catalogue


class Matched(NamedTuple):
    """What of a file the federation knows."""

    profile: IntVector  # item numbers, ascending
    named: int  # how many lines named an item
    unknown: list[str]


def read_profile(path: Path, catalogue: Catalogue) -> Matched:
    """The items of a history file, matched by id and otherwise by title, whatever its capitals."""
    named = _items(path)
    find = Finder(catalogue)
    numbers = [find.number(text) for text in named]
    unknown = [text for text, number in zip(named, numbers, strict=True) if number is None]
    profile = np.unique(np.array([number for number in numbers if number is not None], dtype=np.int32))
    return Matched(profile, len(named), unknown)


class Finder:
    """Items of a catalogue by what people write."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._ids = {name: number for number, name in enumerate(catalogue.ids)}
        self._titles: dict[str, int | None] = {}
        for number, title in enumerate(catalogue.titles):
            # Of two items with one title, none is meant for sure.
            key = title.casefold().strip()
            self._titles[key] = None if key in self._titles else number
        self._titles.pop("", None)

    def number(self, text: str) -> int | None:
        """The number of the item with this id, or with this title if only one has it."""
        text = shown(text)  # as the catalogue's own names are kept
        by_id = self._ids.get(text)
        return self._titles.get(text.casefold().strip()) if by_id is None else by_id


def never_items(catalogue: Catalogue, items: list[str], categories: list[str]) -> frozenset[int]:
    """The numbers of the items that must never be sent as liked, by id or title and by category; all must be known."""
    find = Finder(catalogue)
    numbers = set()
    for text in items:
        number = find.number(text)
        if number is None:
            raise SettingError(f"--never-items names {text!r}, which is no id and no single title of the catalogue.")
        numbers.add(number)
    wanted = {name.casefold() for name in categories}
    known = {name.casefold(): name for names in catalogue.categories for name in names}
    for name in categories:
        if name.casefold() not in known:
            raise SettingError(
                f"--never-categories names {name!r}; the catalogue has {', '.join(sorted(known.values())) or 'none'}."
            )
    for number, names in enumerate(catalogue.categories):
        if wanted.intersection(name.casefold() for name in names):
            numbers.add(number)
    return frozenset(numbers)


def _items(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = [row for row in csv.reader(lines, skipinitialspace=True) if any(cell.strip() for cell in row)]
    except FileNotFoundError:
        raise BadFile(f"There is no file {path}; a CSV with a column `item` is needed, with ids or titles.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise BadFile(f"{path} cannot be read as a CSV of UTF-8 text: {reason}.") from reason
    if not rows:
        raise BadFile(f"{path} is empty; a CSV with a column `item` is needed, with ids or titles.")
    header = [cell.strip().casefold() for cell in rows[0]]
    if "item" in header:
        column = header.index("item")
        for line, row in enumerate(rows[1:], start=2):
            if len(row) <= column:
                raise BadFile(f"{path}, row {line}: there is no value in the column `item`.")
        return [row[column].strip() for row in rows[1:] if row[column].strip()]
    if len(header) > 1:
        raise BadFile(f"{path} has the columns {', '.join(rows[0])}; one of them must be called `item`.")
    return [row[0].strip() for row in rows]
