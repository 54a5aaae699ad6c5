"""What privacy costs: accuracy against what a curious server still learns of what people held back.

Right is more accurate, down is more private: the best attacker's order of what was never sent as liked, above
popularity's. Colours are ways of sharing, shapes what the server sees, larger marks a larger pi. The pale band is the
goal. The broad line joins the rows that no other beats in both, each as that server sees it which learns most; gains
that differ by less than the attacks can tell count as equal. Where everything was sent there is nothing left to hide:
such rows are crosses at the upper edge. Hollow marks are of people who share only a part of their history. A promise
has its epsilon beside its mark: above it, or below it where the mark is hollow.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from federank.studies.figures.cost import pareto_front
from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, INK, PAPER, legend_of, look, new_panel
from federank.studies.results.metric_words import words_of
from federank.studies.results.priced import seen_rows
from federank.studies.results.rows import Row

GOAL = 0.02
"""An attacker that is at most so much above popularity has learnt next to nothing."""
ALIKE = 0.001
"""Gains no further apart than this are equal: their intervals are wider."""
GAIN, WHOLE_GAIN = "audit:gain_held_back", "audit:gain"
_SHAPES = {"messages, linked": "o", "one message": "v"}
_SHAPES_OF_SUMS = ("s", "D", "P", "X", "^", "h", "<", ">", "p", "d")
_SHAPE_OF_ALL = "*"
_SHARE = "sticky 30 %"
_BENDS = 0.05  # below it, gains are drawn to scale; above it, by their logarithm
_BAND: dict[str, Any] = {"color": FAINT, "alpha": 0.13, "linewidth": 0}
_FRONT: dict[str, Any] = {"color": FAINT, "alpha": 0.4, "linewidth": 4, "marker": "o", "markersize": 15, "mew": 0}
_LABEL = 0.035  # room for an epsilon, of the panel's width
_TICKS = (-0.04, -0.02, 0.0, 0.02, 0.04, 0.1, 0.2, 0.5)


def draw_whole_price(shown: Shown) -> Drawn | None:
    """The same of whole histories: what the best attacker gains on everything that a person has.

    Whether messages are sent plainly or added up is then a way of sharing of its own.
    """
    return draw_price(shown, WHOLE_GAIN, "Best attack on whole histories,\nabove popularity", each_server=True)


def draw_price(
    shown: Shown,
    of: str = GAIN,
    label: str = "Best attack on what was held back,\nabove popularity",
    *,
    each_server: bool = False,
) -> Drawn | None:
    """One data set's panel and what it shows, or None where nothing was audited."""
    across = shown.metric
    seen = [row for _, row in seen_rows(shown.rows) if row.sees and row.mean(across) is not None]
    if not seen:
        return None
    starts = list(shown.wish.families) or sorted({row.group for row in seen}, key=len)
    families = list(dict.fromkeys([*starts, *(family_of(row, starts) for row in seen)]))  # a colour for each
    colors = {family: look(position)["color"] for position, family in enumerate(families)}
    shapes = shapes_of(seen)
    hidden = [(row, gain) for row in seen if (gain := row.mean(of)) is not None]
    counted = hidden if each_server else at_worst(hidden)
    front = [(x, -y) for x, y in pareto_front([(row.mean(across) or 0.0, -gain) for row, gain in counted], ALIKE)]
    gains = [gain for _, gain in hidden]
    low, top = min([0.0 if each_server else -GOAL, *gains]) - 0.01, 1.6 * max([0.1, *gains])
    figure, axes = new_panel(shown.panel, height=4.0)
    axes.axhspan(-1, GOAL, **_BAND)
    if front:
        axes.plot(*zip(*front, strict=True), zorder=1, **_FRONT)
    for row in seen:
        color, gain, pi = colors[family_of(row, starts)], row.mean(of), row.at("pi")
        size = (9 if shapes[row.sees] == _SHAPE_OF_ALL else 5) + 4 * (pi if isinstance(pi, float) else 0.5)
        mark: dict[str, Any] = {"marker": shapes[row.sees], "markersize": size, "markeredgecolor": PAPER}
        if _SHARE in row.group:
            mark |= {"markerfacecolor": PAPER, "markeredgecolor": color, "markersize": size - 1}
        if gain is None:
            mark = {"marker": "x", "markersize": 6, "markeredgecolor": color, "clip_on": False}
        axes.plot(row.mean(across) or 0.0, top if gain is None else gain, color=color, linestyle="", **mark)
    axes.set_yscale("symlog", linthresh=_BENDS)
    axes.set_yticks([tick for tick in _TICKS if low < tick < top])
    axes.set_ylim(low, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.2f}" if value else "0")
    axes.minorticks_off()
    axes.margins(x=0.1)
    axes.locator_params(axis="x", nbins=5)
    promises = [(row.mean(across) or 0.0, gain, row) for row, gain in hidden if isinstance(row.at("epsilon"), float)]
    left, right = axes.get_xlim()
    for shared, offset in ((False, 6), (True, -14)):
        beside = [promise for promise in promises if (_SHARE in promise[2].group) == shared]
        places = apart([x for x, _, _ in beside], _LABEL * (right - left))
        for (_, gain, row), place in zip(beside, places, strict=True):
            note: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
            note["color"] = colors[family_of(row, starts)]
            axes.annotate(f"{row.at('epsilon'):g}", (place, gain), (0, offset), **note)
    axes.set(xlabel=words_of(across).axis, ylabel=label)
    there = {family_of(row, starts) for row in seen}
    keys = _keys({family: color for family, color in colors.items() if family in there}, shapes)
    if len(hidden) < len(seen):
        keys.append((Line2D([], [], color=INK, marker="x", linestyle=""), "nothing left to hide"))
    if any(_SHARE in row.group for row in seen):
        hollow = Line2D([], [], marker="o", linestyle="", markerfacecolor=PAPER, markeredgecolor=FAINT)
        keys.append((hollow, f"hollow: {_SHARE}"))
    if promises:
        keys.append((Line2D([], [], linestyle=""), "numbers: epsilon"))
    legend_of(figure, keys)
    return Drawn(figure, _told(seen, hidden, front, across))


def _keys(colors: Mapping[str, str], shapes: Mapping[str, str]) -> list[tuple[Any, str]]:
    """What the legend explains: ways of sharing, what the server sees, and what else is drawn."""
    return [
        *((Line2D([], [], color=color, linewidth=5), family) for family, color in colors.items()),
        *((Line2D([], [], color=FAINT, marker=shape, linestyle=""), sees) for sees, shape in shapes.items()),
        (Patch(**_BAND), f"the goal: at most {GOAL:g}"),
        (Line2D([], [], **_FRONT | {"markersize": 8}), f"not beaten (gains to {ALIKE:g})"),
    ]


def apart(places: Sequence[float], room: float) -> list[float]:
    """Where labels stand that need so much room each: at their places, or moved to the right of their neighbours."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda position: places[position])
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + room)
    return moved


def family_of(row: Row, starts: Sequence[str]) -> str:
    """The way of sharing: the first of these beginnings that the row's group has, else the group itself."""
    return next((start for start in starts if row.group.startswith(start)), row.group)


def at_worst(hidden: Sequence[tuple[Row, float]]) -> list[tuple[Row, float]]:
    """Of each row the server that has learnt most: who is only safe from another is not safe."""
    worst: dict[tuple[Any, ...], tuple[Row, float]] = {}
    for row, gain in hidden:
        key = (row.data, row.group, row.swept)
        if key not in worst or gain > worst[key][1]:
            worst[key] = (row, gain)
    return list(worst.values())


def shapes_of(rows: Sequence[Row]) -> dict[str, str]:
    """A shape for everything a server sees; sums in the order of their cohorts, those over everybody last."""
    seen = dict.fromkeys(row.sees for row in rows)
    sums = sorted(
        (sees for sees in seen if sees not in _SHAPES), key=lambda sees: (sees.endswith("all"), len(sees), sees)
    )
    some = dict(zip(sums, itertools.cycle(_SHAPES_OF_SUMS), strict=False))
    if sums and sums[-1].endswith("all"):
        some[sums[-1]] = _SHAPE_OF_ALL
    return {sees: shape for sees, shape in _SHAPES.items() if sees in seen} | some


def _told(
    seen: Sequence[Row], hidden: Sequence[tuple[Row, float]], front: Sequence[tuple[float, float]], across: str
) -> str:
    within = sum(gain <= GOAL for _, gain in hidden)
    names = [
        f"{row.label} ({row.sees})" for point in front for row, gain in hidden if (row.mean(across), gain) == point
    ]
    sentences = f"Of {len(seen)} rows {len(seen) - len(hidden)} had nothing left to hide and {within} keep to the band."
    return (
        f"{sentences} No other is both more accurate and more private than {'; '.join(names)}." if names else sentences
    )
