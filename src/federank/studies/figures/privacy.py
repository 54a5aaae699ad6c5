"""What privacy costs: accuracy against what an honest-but-curious server learns, and against differential privacy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from federank.studies.figures.style import (
    FAINT,
    INK,
    PAPER,
    Drawing,
    PanelData,
    apart,
    legend_of,
    look,
    new_panel,
    ramp,
)
from federank.studies.figures.sweep import SWEEPS, pareto_front
from federank.studies.metric_words import words_of
from federank.studies.rows import Row, seen_rows

GOAL = 0.02
"""An attacker that is at most so much above popularity has learnt next to nothing."""
ALIKE = 0.001
"""Gains no further apart than this are equal: their intervals are wider."""
GAIN, FULL_GAIN = "audit:gain_held_back", "audit:gain"
_SHAPES = {"messages, linked": "o", "one message": "v"}
_SHAPES_OF_SUMS = ("s", "D", "P", "X", "^", "h", "<", ">", "p", "d")
_SHAPE_OF_ALL = "*"
_SHARE = "sticky 30 %"
_BENDS = 0.05  # below it, gains are drawn to scale; above it, by their logarithm
_BAND: dict[str, Any] = {"color": FAINT, "alpha": 0.13, "linewidth": 0}
_FRONT: dict[str, Any] = {"color": FAINT, "alpha": 0.4, "linewidth": 4, "marker": "o", "markersize": 15, "mew": 0}
_LABEL = 0.035  # space for an epsilon, of the panel's width
_TICKS = (-0.04, -0.02, 0.0, 0.02, 0.04, 0.1, 0.2, 0.5)


def draw_full_price(panel: PanelData) -> Drawing | None:
    """The same of full histories: what the best attacker gains on everything that a user has.

    Whether messages are sent plainly or added up is then a way of sharing of its own.
    """
    return draw_price(panel, FULL_GAIN, "Best attack on full histories,\nabove popularity", each_server=True)


def draw_price(
    panel: PanelData,
    of: str = GAIN,
    label: str = "Best attack on what was held back,\nabove popularity",
    *,
    each_server: bool = False,
) -> Drawing | None:
    """One data set's panel and what it shows, or None where nothing was audited."""
    across = panel.metric
    seen = [row for _, row in seen_rows(panel.rows) if row.sees and row.mean(across) is not None]
    if not seen:
        return None
    starts = list(panel.spec.families) or sorted({row.group for row in seen}, key=len)
    families = list(dict.fromkeys([*starts, *(family_of(row, starts) for row in seen)]))  # a colour for each
    colors = {family: look(position)["color"] for position, family in enumerate(families)}
    shapes = shapes_of(seen)
    hidden = [(row, gain) for row in seen if (gain := row.mean(of)) is not None]
    counted = hidden if each_server else at_worst(hidden)
    front = [(x, -y) for x, y in pareto_front([(row.mean(across) or 0.0, -gain) for row, gain in counted], ALIKE)]
    gains = [gain for _, gain in hidden]
    low, top = min([0.0 if each_server else -GOAL, *gains]) - 0.01, 1.6 * max([0.1, *gains])
    figure, axes = new_panel(panel.title, height=4.0)
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
    guarantees = [(row.mean(across) or 0.0, gain, row) for row, gain in hidden if isinstance(row.at("epsilon"), float)]
    left, right = axes.get_xlim()
    for shared, offset in ((False, 6), (True, -14)):
        beside = [guarantee for guarantee in guarantees if (_SHARE in guarantee[2].group) == shared]
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
    if guarantees:
        keys.append((Line2D([], [], linestyle=""), "numbers: epsilon"))
    legend_of(figure, keys)
    return figure, _description(seen, hidden, front, across)


def _keys(colors: Mapping[str, str], shapes: Mapping[str, str]) -> list[tuple[Any, str]]:
    """What the legend explains: ways of sharing, what the server sees, and what else is drawn."""
    return [
        *((Line2D([], [], color=color, linewidth=5), family) for family, color in colors.items()),
        *((Line2D([], [], color=FAINT, marker=shape, linestyle=""), sees) for sees, shape in shapes.items()),
        (Patch(**_BAND), f"the goal: at most {GOAL:g}"),
        (Line2D([], [], **_FRONT | {"markersize": 8}), f"not beaten (gains to {ALIKE:g})"),
    ]


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
    """A shape for everything a server sees; sums in the order of their cohorts, those over everyone last."""
    seen = dict.fromkeys(row.sees for row in rows)
    sums = sorted(
        (sees for sees in seen if sees not in _SHAPES), key=lambda sees: (sees.endswith("all"), len(sees), sees)
    )
    some = dict(zip(sums, itertools.cycle(_SHAPES_OF_SUMS), strict=False))
    if sums and sums[-1].endswith("all"):
        some[sums[-1]] = _SHAPE_OF_ALL
    return {sees: shape for sees, shape in _SHAPES.items() if sees in seen} | some


def _description(
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


# What a guarantee costs in federations of different size: the share of accuracy that is kept, against epsilon.


_CHEAP = 0.9
"""A guarantee that keeps so much costs less than a tenth."""
_COHORT = "leader:cohort"


def draw_guarantee(panel: PanelData) -> Drawing | None:
    """The panel and what it shows, or None where nothing was run with and without noise."""
    without, popular, *_ = *(panel.spec.baselines or ()), "", ""
    curves = {}
    for data in dict.fromkeys(row.data for row in panel.rows):
        of_data = [row for row in panel.rows if row.data == data]
        full, least = (_value(of_data, group, panel.metric) for group in (without, popular))
        held = [row for row in of_data if row.group in panel.spec.groups and row.mean(panel.metric) is not None]
        if full and held:
            curves[data] = _Curve(held, panel, full, least or 0.0)
    if not curves:
        return None
    figure, axes = new_panel(panel.spec.panel or panel.title, height=4.0)
    cities = sorted((data for data in curves if data.startswith("city")), key=lambda data: curves[data].users)
    others = [data for data in curves if data not in cities]
    keys: list[tuple[Any, str]] = []
    for data in (*others, *cities):
        curve = curves[data]
        # Blues are the cities'.
        style = ramp(cities.index(data), len(cities)) if data in cities else look(others.index(data) + 1)
        axes.plot(curve.epsilons, curve.kept, **style | {"markersize": 0})
        for epsilon, kept, worse in zip(curve.epsilons, curve.kept, curve.worse, strict=True):
            mark = {"color": style["color"], "marker": style["marker"], "linestyle": ""}
            axes.plot(epsilon, kept, **mark, markerfacecolor=PAPER if worse else style["color"], zorder=3)
        keys.append((Line2D([], [], **style), f"{data}: {curve.users:,} users" if curve.users else data))
    axes.axhline(_CHEAP, color=FAINT, linewidth=1, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({epsilon for curve in curves.values() for epsilon in curve.epsilons}))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set(xlabel=SWEEPS[panel.sweep], ylabel=f"{words_of(panel.metric).short}, of that without noise")
    hollow = Line2D([], [], color=FAINT, marker="o", markerfacecolor=PAPER, linestyle="")
    dotted = Line2D([], [], color=FAINT, linewidth=1, linestyle=":")
    legend_of(figure, [*keys, (hollow, "popularity does better"), (dotted, "a tenth is lost")])
    sentences = [f"{data} {curve.description()}" for data, curve in curves.items()]
    return figure, f"Of P@10 without noise is kept: {'; '.join(sentences)}."


class _Curve:
    """One data set: how much is kept at each epsilon, and where that is less than popularity has."""

    def __init__(self, rows: Sequence[Row], panel: PanelData, full: float, least: float) -> None:
        ordered = sorted(rows, key=lambda row: float(row.at(panel.sweep)))
        values = [row.mean(panel.metric) or 0.0 for row in ordered]
        self.epsilons = [float(row.at(panel.sweep)) for row in ordered]
        self.kept = [value / full for value in values]
        self.worse = [value < least for value in values]
        self.users: int = int(ordered[0].extra(_COHORT) or 0)

    def description(self) -> str:
        """How much is kept, in words."""
        points = zip(self.epsilons, self.kept, strict=True)
        return ", ".join(f"{kept:.0%} at epsilon {epsilon:g}" for epsilon, kept in points)


def _value(rows: Sequence[Row], group: str, metric: str) -> float | None:
    return next((row.mean(metric) for row in rows if row.group == group), None)
