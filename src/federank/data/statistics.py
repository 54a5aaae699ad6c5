"""What a data set looks like in numbers: Table 1 of the papers, and a little more.

Only users and items that have an interaction are counted, so that the training part of a split is described by
what is in it. Density is interactions / (users * items), a fraction and not a percentage.

Popularity skew is reported twice: by the share of all interactions that fall on the most popular hundredth and tenth
of the items (rounded up to an integer), and by the Gini index, which is 0 when all items are equally popular and
1 when one item has everything. (The papers print 1 - Gini for recommendations; this is Gini itself.)

Bias of a category (B_T in the papers) is its share of the interactions divided by its share of the items: above 1,
it is chosen more often than its number of items suggests. An item in several categories counts fully in each, and an
item in none still counts in the total; so shares need not add up to 1.
"""

from __future__ import annotations

import io
import tomllib
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from federank._numerics.arrays import LongVector
from federank.checks import check_type
from federank.data.interactions import Categories, Interactions
from federank.errors import DataError, SettingError
from federank.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    check_type("data", data, Interactions, "what fr.load gives")
    if len(data) == 0:
        raise DataError(
            f"{data.name} has no interactions, so there is nothing to count; read or filter it differently."
        )
    per_user = np.bincount(data.users)
    per_user = per_user[per_user > 0]
    per_item = data.popularity[data.popularity > 0]
    ratings, period = None, None
    if data.ratings is not None:
        exact = data.ratings.astype(np.float64)
        ratings = Ratings(float(exact.min()), float(exact.mean()), float(exact.max()))
    if data.times is not None:
        first, last = int(data.times.min()), int(data.times.max())
        period = Period(first, last, (last - first) / SECONDS_A_DAY)
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
        ratings=ratings,
        period=period,
        categories=None if data.categories is None else category_shares(data.categories, data.popularity),
    )


def share_of_top(counts: LongVector, percent: int) -> float:
    """The share of the total that falls on this per cent of the counts, the largest, rounded up to an integer."""
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


@cache
def foursquare_categories() -> dict[str, str]:
    """The papers' top category of each of Foursquare's kinds of places."""
    content = tomllib.loads(Path(__file__).with_name("foursquare_categories.toml").read_text(encoding="utf-8"))
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


def _spread(counts: LongVector) -> Spread:
    return Spread(int(counts.min()), float(np.median(counts)), int(counts.max()))


SUFFIXES = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#555555"
CATEGORIES_SHOWN = 20
POINTS = 500


def draw_statistics(data: Interactions, path: str | Path) -> None:
    """Draw a data set's long tail, activity and categories into a PNG, SVG or PDF file, by its suffix."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        suffix = f"the suffix {target.suffix!r}" if target.suffix else "no suffix"
        raise SettingError(
            f"The picture's name {str(target)!r} has {suffix}, which names no format; let it end in "
            f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    _write(statistics_figure(data), target)


def statistics_figure(data: Interactions) -> Figure:
    """The picture as a Matplotlib figure of its own, which no other drawing shares."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    numbers = statistics(data)
    shown = sorted(numbers.categories or (), key=lambda category: category.share_of_interactions)
    shown = shown[-CATEGORIES_SHOWN:]
    heights = [4.2, 1.2 + 0.36 * len(shown)] if shown else [4.2]
    figure = Figure(figsize=(10, 0.6 + sum(heights)), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    sizes = f"{numbers.interactions:,} interactions of {numbers.users:,} users with {numbers.items:,} items"
    figure.suptitle(f"{legible(numbers.name)}: {sizes}", fontsize=14, parse_math=False)
    # Rows of their own, so that long names of categories do not squeeze the curves above them.
    rows = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    left, right = rows[0].subplots(1, 2)
    _draw_long_tail(left, data.popularity, numbers)
    _draw_activity(right, np.bincount(data.users), numbers)
    if shown:
        _draw_categories(rows[1].subplots(), shown, len(numbers.categories or ()))
    return figure


def _draw_long_tail(axes: Axes, popularity: LongVector, numbers: Statistics) -> None:
    counts = np.sort(popularity[popularity > 0])[::-1]
    # A curve of some hundred points, evenly spread on the logarithmic axis, looks like that of a million.
    ranks = np.unique(np.geomspace(1, len(counts), POINTS).round().astype(np.int64))
    head = -(-len(counts) // 10)
    axes.loglog(ranks, counts[ranks - 1], color=BLUE, linewidth=2, marker=_marker(ranks))
    axes.fill_between(ranks, counts[ranks - 1], 0.8, where=ranks <= head, color=BLUE, alpha=0.2, linewidth=0)
    axes.set_ylim(bottom=0.8)
    note = f"the top 10% of items have\n{numbers.top_10_percent:.0%} of the interactions"
    axes.text(0.04, 0.06, note, transform=axes.transAxes, color=GREY)
    axes.set(title="Long tail", xlabel="Items, most popular first (rank)", ylabel="Interactions of the item")
    _tidy(axes)


def _draw_activity(axes: Axes, per_user: LongVector, numbers: Statistics) -> None:
    from matplotlib.ticker import PercentFormatter

    counts, users = np.unique(per_user[per_user > 0], return_counts=True)
    at_least = users[::-1].cumsum()[::-1] / numbers.users
    axes.step(counts, at_least, where="pre", color=BLUE, linewidth=2, marker=_marker(counts))
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    median = numbers.activity.median
    axes.axvline(median, color=GREY, linewidth=1, linestyle="--")
    axes.annotate(f"median {median:,g}", (median, 0.94), (6, 0), textcoords="offset points", color=GREY)
    axes.set(title="Activity", xlabel="Interactions", ylabel="Users with at least this many")
    _tidy(axes)


def _draw_categories(axes: Axes, shown: list[CategoryShare], in_all: int) -> None:
    """Two bars per category, the largest on top, with the bias beside them."""
    from matplotlib.ticker import PercentFormatter

    rows = np.arange(len(shown))
    of_items = np.array([category.share_of_items for category in shown])
    of_interactions = np.array([category.share_of_interactions for category in shown])
    axes.barh(rows + 0.2, of_interactions, height=0.38, color=BLUE, label="share of the interactions")
    axes.barh(rows - 0.2, of_items, height=0.38, color=ORANGE, label="share of the items")
    for row, category in enumerate(shown):
        end = max(category.share_of_items, category.share_of_interactions)
        axes.annotate(f"{category.bias:.2f}", (end, row), (5, 0), textcoords="offset points", va="center", color=GREY)
    axes.set_yticks(rows, [legible(category.name) for category in shown], parse_math=False)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    which = f" (the largest {len(shown)} of {in_all})" if in_all > len(shown) else ""
    axes.set_title(f"Categories{which}, with their bias: share of interactions / share of items")
    axes.margins(x=0.08)
    axes.legend(loc="lower right", frameon=False)
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _marker(points: LongVector) -> str:
    """A dot on each of a few points, which may be too few to make a line."""
    return "o" if len(points) < 10 else ""


def legible(name: str) -> str:
    """A name without control characters, which real data has and no SVG file may have."""
    return "".join(character if character.isprintable() else "?" for character in name)


def _tidy(axes: Axes) -> None:
    """Integers instead of powers on logarithmic axes, a quiet grid, no box."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
            axis.set_minor_formatter(NullFormatter())
    axes.grid(color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)


def _write(figure: Figure, target: Path) -> None:
    """Write the picture atomically."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no reason to trouble anyone.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150)
    atomic_write(target, content.getvalue())
