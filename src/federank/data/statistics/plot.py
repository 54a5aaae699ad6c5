"""A data set in one picture: the long tail, the activity of its users, and its categories where it has any.

    long tail    interactions of each item, the most popular first, on logarithmic axes
    activity     how many of the users have at least so many interactions
    categories   each one's share of the items beside its share of the interactions, and the bias between them

Colours are told apart by people who do not see all of them alike (Okabe and Ito), and by their lightness in print.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from federank.data.statistics.statistics import CategoryShare, Statistics, statistics
from federank.errors import SettingError
from federank.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from federank.arrays import LongVector
    from federank.data.interactions import Interactions

SUFFIXES = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#555555"
CATEGORIES_SHOWN = 20
POINTS = 500


def draw_statistics(data: Interactions, path: str | Path) -> None:
    """Draw a data set's long tail, activity and categories into a PNG, SVG or PDF file, by its suffix."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        found = f"the suffix {target.suffix!r}" if target.suffix else "no suffix"
        raise SettingError(
            f"The picture's name {str(target)!r} has {found}, which tells no format; let it end in "
            f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    _write(statistics_figure(data), target)


def statistics_figure(data: Interactions) -> Figure:
    """The picture as a Matplotlib figure of its own, which no other drawing shares."""
    numbers = statistics(data)
    shown = sorted(numbers.categories or (), key=lambda category: category.share_of_interactions)
    shown = shown[-CATEGORIES_SHOWN:]
    heights = [4.2, 1.2 + 0.36 * len(shown)] if shown else [4.2]
    figure = Figure(figsize=(10, 0.6 + sum(heights)), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    sizes = f"{numbers.interactions:,} interactions of {numbers.users:,} users with {numbers.items:,} items"
    figure.suptitle(f"{_legible(numbers.name)}: {sizes}", fontsize=14, parse_math=False)
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
    counts, users = np.unique(per_user[per_user > 0], return_counts=True)
    at_least = users[::-1].cumsum()[::-1] / numbers.users
    axes.step(counts, at_least, where="pre", color=BLUE, linewidth=2, marker=_marker(counts))
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    median = numbers.activity.median
    axes.axvline(median, color=GREY, linewidth=1, linestyle="--")
    axes.annotate(f"median {median:,g}", (median, 0.94), (6, 0), textcoords="offset points", color=GREY)
    axes.set(title="Activity", xlabel="Interactions", ylabel="Users with at least so many")
    _tidy(axes)


def _draw_categories(axes: Axes, shown: list[CategoryShare], in_all: int) -> None:
    """Two bars a category, the largest on top, with the bias beside them."""
    rows = np.arange(len(shown))
    of_items = np.array([category.share_of_items for category in shown])
    of_interactions = np.array([category.share_of_interactions for category in shown])
    axes.barh(rows + 0.2, of_interactions, height=0.38, color=BLUE, label="share of the interactions")
    axes.barh(rows - 0.2, of_items, height=0.38, color=ORANGE, label="share of the items")
    for row, category in enumerate(shown):
        end = max(category.share_of_items, category.share_of_interactions)
        axes.annotate(f"{category.bias:.2f}", (end, row), (5, 0), textcoords="offset points", va="center", color=GREY)
    axes.set_yticks(rows, [_legible(category.name) for category in shown], parse_math=False)
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


def _legible(name: str) -> str:
    """A name without control characters, which real data has and no SVG file may have."""
    return "".join(character if character.isprintable() else "?" for character in name)


def _tidy(axes: Axes) -> None:
    """Whole numbers instead of powers on logarithmic axes, a quiet grid, no box."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
            axis.set_minor_formatter(NullFormatter())
    axes.grid(color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)


def _write(figure: Figure, target: Path) -> None:
    """Write the picture, whole or not at all."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no reason to trouble anybody.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150)
    write_whole(target, content.getvalue())
