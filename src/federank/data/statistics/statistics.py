"""What a data set looks like in numbers: Table 1 of the papers, and a little more.

Only users and items that have an interaction are counted, so that the training part of a split is described by
what is in it. Density is interactions / (users * items), a fraction and not a percentage.

Popularity skew is told twice: by the share of all interactions that fall on the most popular hundredth and tenth
of the items (rounded up to whole items), and by the Gini index, which is 0 when all items are equally popular and
1 when one item has everything. (The papers print 1 - Gini for recommendations; this is Gini itself.)

Bias of a category (B_T in the papers) is its share of the interactions divided by its share of the items: above 1,
people choose it more than its number of items tells. An item in several categories counts fully in each, and an
item in none still counts in the whole; so shares need not add up to 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from federank.arrays import LongVector, RealVector
from federank.checks import instance
from federank.data.categories import Categories
from federank.data.interactions import Interactions
from federank.errors import DataError

SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Spread:
    """The smallest, the middle and the largest of some counts."""

    minimum: int
    median: float
    maximum: int


@dataclass(frozen=True)
class Ratings:
    """What the ratings look like."""

    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True)
class Period:
    """The first and the last interaction, in seconds since 1970, and the days between them."""

    first: int
    last: int
    days: float


@dataclass(frozen=True)
class CategoryShare:
    """How much of the items and of the interactions a category has, and the bias between the two."""

    name: str
    share_of_items: float
    share_of_interactions: float
    bias: float


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """A data set in numbers; what it does not have (ratings, times, categories) is None."""

    name: str
    users: int
    items: int
    interactions: int
    repeats_left_out: int
    """Rows of the source that repeated a (user, item) pair: left out when it was read, before any filter."""
    per_user: float
    per_item: float
    density: float
    activity: Spread
    """Interactions of a user."""
    popularity: Spread
    """Interactions of an item."""
    top_1_percent: float
    """The share of interactions on the most popular hundredth of the items."""
    top_10_percent: float
    """The share of interactions on the most popular tenth of the items."""
    gini: float
    ratings: Ratings | None
    period: Period | None
    categories: tuple[CategoryShare, ...] | None
    """Categories that occur, by name."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain dictionaries, lists and numbers, ready for JSON."""
        content = asdict(self)
        if self.categories is not None:
            content["categories"] = list(content["categories"])
        return content


def statistics(data: Interactions) -> Statistics:
    """Count users, items and interactions, and describe how they are spread."""
    instance("data", data, Interactions, "what fr.load gives")
    if len(data) == 0:
        raise DataError(
            f"{data.name} has no interactions, so there is nothing to count; read or filter it differently."
        )
    per_user = np.bincount(data.users)
    per_user = per_user[per_user > 0]
    per_item = data.popularity[data.popularity > 0]
    return Statistics(
        name=data.name,
        users=len(per_user),
        items=len(per_item),
        interactions=len(data),
        repeats_left_out=data.repeats_left_out,
        per_user=len(data) / len(per_user),
        per_item=len(data) / len(per_item),
        density=len(data) / (len(per_user) * len(per_item)),
        activity=_spread(per_user),
        popularity=_spread(per_item),
        top_1_percent=share_of_top(per_item, 1),
        top_10_percent=share_of_top(per_item, 10),
        gini=gini(per_item),
        ratings=None if data.ratings is None else _ratings(data.ratings.astype(np.float64)),
        period=None if data.times is None else _period(data.times),
        categories=None if data.categories is None else category_shares(data.categories, data.popularity),
    )


def share_of_top(counts: LongVector, percent: int) -> float:
    """The share of the total that falls on this per cent of the counts, the largest, rounded up to whole ones."""
    how_many = -(-percent * len(counts) // 100)
    return float(np.sort(counts)[len(counts) - how_many :].sum() / counts.sum())


def gini(counts: LongVector) -> float:
    """How unevenly a total is spread: 0 when all counts are equal, 1 when one has all of it."""
    n = len(counts)
    if n < 2:
        return 0.0
    ascending = np.sort(counts)
    # G = sum over k = 1..n of (2k - n - 1) c_k / ((n - 1) sum c), c ascending
    ranks = 2 * np.arange(1, n + 1) - n - 1
    return float((ranks * ascending).sum() / ((n - 1) * ascending.sum()))


def category_shares(categories: Categories, popularity: LongVector) -> tuple[CategoryShare, ...]:
    """The share of items and of interactions of each category that occurs among the items with an interaction."""
    occurs = popularity > 0
    of_items = categories.weights(occurs.astype(np.int64)) / occurs.sum()
    of_interactions = categories.weights(popularity) / popularity.sum()
    return tuple(
        CategoryShare(name, items, interactions, interactions / items)
        for name, items, interactions in zip(categories.names, of_items.tolist(), of_interactions.tolist(), strict=True)
        if items > 0
    )


def _spread(counts: LongVector) -> Spread:
    return Spread(int(counts.min()), float(np.median(counts)), int(counts.max()))


def _ratings(ratings: RealVector) -> Ratings:
    return Ratings(float(ratings.min()), float(ratings.mean()), float(ratings.max()))


def _period(times: LongVector) -> Period:
    first, last = int(times.min()), int(times.max())
    return Period(first, last, (last - first) / SECONDS_A_DAY)
