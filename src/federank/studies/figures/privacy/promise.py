"""What a promise costs in federations of different size: the share of accuracy that is kept, against epsilon.

One panel for all data sets, a curve each: the metric at each epsilon over that of the same method without noise.
The study names the swept method (`groups`), and as `baselines` the one without noise and the most popular. Made-up
cities go from light to dark with their size. A hollow mark does worse than what is popular.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, PAPER, legend_of, look, new_panel, ramp
from federank.studies.figures.sweep import SWEEPS
from federank.studies.results.metric_words import words_of
from federank.studies.results.rows import Row

_CHEAP = 0.9
"""A promise that keeps so much costs less than a tenth."""
_PEOPLE = "leader:cohort"


def draw_promise(shown: Shown) -> Drawn | None:
    """The panel and what it shows, or None where nothing was run with and without noise."""
    without, popular, *_ = *(shown.wish.baselines or ()), "", ""
    curves = {}
    for data in dict.fromkeys(row.data for row in shown.rows):
        of_data = [row for row in shown.rows if row.data == data]
        full, least = (_value(of_data, group, shown.metric) for group in (without, popular))
        held = [row for row in of_data if row.group in shown.wish.groups and row.mean(shown.metric) is not None]
        if full and held:
            curves[data] = _Curve(held, shown, full, least or 0.0)
    if not curves:
        return None
    figure, axes = new_panel(shown.wish.panel or shown.panel, height=4.0)
    cities = sorted((data for data in curves if data.startswith("city")), key=lambda data: curves[data].people)
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
        keys.append((Line2D([], [], **style), f"{data}: {curve.people:,} people" if curve.people else data))
    axes.axhline(_CHEAP, color=FAINT, linewidth=1, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({epsilon for curve in curves.values() for epsilon in curve.epsilons}))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set(xlabel=SWEEPS[shown.sweep], ylabel=f"{words_of(shown.metric).short}, of that without noise")
    hollow = Line2D([], [], color=FAINT, marker="o", markerfacecolor=PAPER, linestyle="")
    dotted = Line2D([], [], color=FAINT, linewidth=1, linestyle=":")
    legend_of(figure, [*keys, (hollow, "popularity does better"), (dotted, "a tenth is lost")])
    sentences = [f"{data} {curve.told()}" for data, curve in curves.items()]
    return Drawn(figure, f"Of P@10 without noise is kept: {'; '.join(sentences)}.")


class _Curve:
    """One data set: how much is kept at each epsilon, and where that is less than popularity has."""

    def __init__(self, rows: Sequence[Row], shown: Shown, full: float, least: float) -> None:
        ordered = sorted(rows, key=lambda row: float(row.at(shown.sweep)))
        values = [row.mean(shown.metric) or 0.0 for row in ordered]
        self.epsilons = [float(row.at(shown.sweep)) for row in ordered]
        self.kept = [value / full for value in values]
        self.worse = [value < least for value in values]
        self.people: int = int(ordered[0].extra(_PEOPLE) or 0)

    def told(self) -> str:
        """How much is kept, in words."""
        points = zip(self.epsilons, self.kept, strict=True)
        return ", ".join(f"{kept:.0%} at epsilon {epsilon:g}" for epsilon, kept in points)


def _value(rows: Sequence[Row], group: str, metric: str) -> float | None:
    return next((row.mean(metric) for row in rows if row.group == group), None)
