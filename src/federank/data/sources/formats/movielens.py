"""MovieLens, as GroupLens publishes it: 100K, 1M, 10M, 20M, 25M, 32M and the `latest` sets.

Three editions of the same four columns, from the upstream zip or from its folder:

    100K              u.data       tab      u.item       genres as flags
    1M, 10M           ratings.dat  ::       movies.dat   genres joined by bars
    20M, 25M, 32M     ratings.csv  comma    movies.csv   likewise, with a header
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from federank.data.sources.archives import Files, beside
from federank.data.sources.columns import Columns
from federank.data.sources.formats.item_files import read_items
from federank.data.sources.text.delimited import read_delimited


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


def read_movielens(files: Files, found: MovieLens) -> Columns:
    """The ratings of a MovieLens set, with titles and genres."""
    edition = found.edition
    columns = read_delimited(files[found.ratings](), header=edition.header, delimiter=edition.delimiter)
    facts = read_items(files[beside(found.ratings, edition.items)]())
    return columns._replace(titles=facts.titles, categories=facts.categories)
