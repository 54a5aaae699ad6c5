"""The owner's history, from a small CSV file: which of the federation's items it names.

The file has a column `item` with ids or titles (or is a bare list, one to a line), perhaps a `date`, which is not used.
Where the federation is of ratings, a column `rating` (or `stars`) says how each was found; of two lines about one item
the later one counts. What the federation does not know is listed for the owner and goes nowhere: not into the profile,
not to the server.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from federank.arrays import FloatVector, IntVector
from federank.errors import BadFile, SettingError
from federank.protocol.ratings.federations import Scale
from federank.service.device.methods.method import History
from federank.service.device.requests.answers import shown
from federank.service.device.requests.federation import Catalogue

RATING_COLUMNS = ("rating", "stars")


class Matched(NamedTuple):
    """What of a file the federation knows."""

    profile: IntVector  # item numbers, ascending
    named: int  # how many lines named an item
    unknown: list[str]
    ratings: FloatVector = np.zeros(0, dtype=np.float32)  # of the profile, where the federation is of ratings

    @property
    def history(self) -> History:
        """The same as a device keeps it."""
        return History(self.profile, self.ratings)


def read_profile(path: Path, catalogue: Catalogue, scale: Scale | None = None) -> Matched:
    """The items of a history file, matched by id and otherwise by title, whatever its capitals.

    `scale` is what ratings there are, where the federation is of ratings.
    """
    lines = _lines(path, scale)
    find = Finder(catalogue)
    found: dict[int, float] = {}
    unknown = []
    for text, rating in lines:
        number = find.number(text)
        if number is None:
            unknown.append(text)
        else:
            found[number] = rating
    profile = np.array(sorted(found), dtype=np.int32)
    if scale is None:
        return Matched(profile, len(lines), unknown)
    return Matched(profile, len(lines), unknown, np.array([found[item] for item in profile.tolist()], np.float32))


def rating_of(text: str, scale: Scale, where: str) -> float:
    """The rating that a person has written; `where` begins the sentence that says why it is none."""
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        raise BadFile(f"{where} is {shown(text)[:40]!r}, which is no number; ratings go {scale}.") from None
    reason = scale.why_not(value)
    if reason is not None:
        raise BadFile(f"{where} is {value:g}; {reason}.")
    return value


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


def _lines(path: Path, scale: Scale | None) -> list[tuple[str, float]]:
    """What a history file names, and how it is rated; 0 where nothing is."""
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
        stars = None if scale is None else next((n for n, name in enumerate(header) if name in RATING_COLUMNS), None)
        if scale is not None and stars is None:
            raise BadFile(_no_ratings(path, scale))
        found = []
        for line, row in enumerate(rows[1:], start=2):
            if len(row) <= column:
                raise BadFile(f"{path}, row {line}: there is no value in the column `item`.")
            if not row[column].strip():
                continue
            rating = 0.0
            if scale is not None and stars is not None:
                if len(row) <= stars or not row[stars].strip():
                    raise BadFile(f"{path}, row {line}: there is no rating in the column `{header[stars]}`.")
                rating = rating_of(row[stars], scale, f"{path}, row {line}: the rating of {shown(row[column])[:60]}")
            found.append((row[column].strip(), rating))
        return found
    if len(header) > 1:
        raise BadFile(f"{path} has the columns {', '.join(rows[0])}; one of them must be called `item`.")
    if scale is not None:
        raise BadFile(_no_ratings(path, scale))
    return [(row[0].strip(), 0.0) for row in rows]


def _no_ratings(path: Path, scale: Scale) -> str:
    return (
        f"{path} says which items and not how they were found: this federation is of ratings, not of likes. A column "
        f"`rating` is needed beside `item`; ratings go {scale}."
    )
