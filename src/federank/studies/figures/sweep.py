"""A metric against what was swept: F1 against pi (FedeRank Figure 1, FPL Figure 2), RMSE against rho (FedRec Figure 2).

A line per method, its deviation over seeds as a pale band; methods without the swept setting are level lines with
their names at the right. What the paper printed for a point is a cross. The papers' F1 is the harmonic mean of the
mean precision and the mean recall, and so it is here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from federank.data.statistics import legible
from federank.studies.figures.style import (
    FAINT,
    INK,
    ORANGE,
    PAPER,
    VERMILLION,
    Drawing,
    PanelData,
    label_beside,
    look,
    new_panel,
    ramp,
)
from federank.studies.metric_words import parts, score, words_of, written_once
from federank.studies.report_spec import published
from federank.studies.rows import Row

SWEEPS = {
    "pi": "π: how often a liked item's update may leave the client",
    "epsilon": "ε: differential privacy of all uploads of a client",
    "rho": "ρ: synthetic ratings for every real one",
}


def draw_sweep(panel: PanelData) -> Drawing | None:
    """One data set's panel and what it shows, or None where nothing was swept."""
    sweep, metric, specs = panel.sweep, panel.metric, panel.specs
    families = swept_families(panel.rows, sweep, panel.spec.groups)
    families = {
        group: held for group, held in families.items() if any(value_of(row, metric) is not None for row in held)
    }
    if not families:
        return None
    figure, axes = new_panel(panel.spec.panel or panel.title)
    crosses = False
    for position, (group, held) in enumerate(families.items()):
        points = [row for row in held if value_of(row, metric) is not None]
        xs = [float(row.at(sweep)) for row in points]
        ys = np.array([value_of(row, metric) for row in points], dtype=np.float64)
        spread = np.array([deviation_of(row, metric) for row in points], dtype=np.float64)
        axes.plot(xs, ys, label=group, **look(position))
        if spread.any():
            axes.fill_between(xs, ys - spread, ys + spread, color=look(position)["color"], alpha=0.18, linewidth=0)
        theirs = [(x, published(specs, row, points, metric)) for x, row in zip(xs, points, strict=True)]
        theirs = [(x, y) for x, y in theirs if y is not None]
        if theirs:
            axes.plot(*zip(*theirs, strict=True), "x", color=INK, markersize=6, label=None if crosses else "paper")
            crosses = True
    valued = ((row.label, value_of(row, metric)) for row in level_rows(panel))
    level = {name: value for name, value in valued if value is not None}
    for value in level.values():
        axes.axhline(value, color=FAINT, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.margins(y=0.08)
    label_beside(axes, list(level.values()), list(level))
    axes.set(xlabel=SWEEPS.get(sweep, sweep), ylabel=words_of(metric).axis.split(":")[0])
    if sweep == "rho":
        axes.set_xticks(sorted({float(row.at(sweep)) for held in families.values() for row in held}))
    return figure, _seen(families, sweep, metric)


def swept_families(rows: Sequence[Row], sweep: str, groups: Sequence[str]) -> dict[str, list[Row]]:
    """The groups that have several values of what is swept, each in its order."""
    families: dict[str, list[Row]] = {}
    for group in groups or dict.fromkeys(row.group for row in rows):
        held = [row for row in rows if row.group == group and isinstance(row.at(sweep), int | float)]
        if len({row.at(sweep) for row in held}) > 1:
            families[group] = sorted(held, key=lambda row: float(row.at(sweep)))
    return families


def level_rows(panel: PanelData) -> list[Row]:
    """The baselines: those the study names, or all that were not swept."""
    named, sweep = panel.spec.baselines, panel.sweep
    return [
        row
        for row in panel.rows
        if (row.group in named if named is not None else sweep not in dict(row.swept))
        and not (named is None and isinstance(row.at(sweep), int | float))
    ]


def value_of(row: Row, metric: str) -> float | None:
    """The row's mean; F1 as the papers have it."""
    name, _, n = metric.partition("@")
    if name != "f1":
        return row.mean(metric)
    precision, recall = row.mean(f"precision@{n}"), row.mean(f"recall@{n}")
    if precision is None or recall is None:
        return row.mean(metric)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def deviation_of(row: Row, metric: str) -> float:
    """The deviation over seeds, 0 with one seed."""
    name, _, n = metric.partition("@")
    if name != "f1":
        return row.deviation(metric) or 0.0
    precision, recall = row.values(f"precision@{n}"), row.values(f"recall@{n}")
    if len(precision) != len(recall) or len(precision) < 2:
        return 0.0
    return float((2 * precision * recall / np.maximum(precision + recall, 1e-12)).std())


def _seen(families: Mapping[str, Sequence[Row]], sweep: str, metric: str) -> str:
    """Where each line is best, in words."""
    sentences = []
    for group, held in families.items():
        valued = [(row, value) for row in held if (value := value_of(row, metric)) is not None]
        best, value = max(valued, key=lambda pair: score(metric, pair[1]))
        sentences.append(
            f"{group} is best at {sweep} = {best.at(sweep):g} ({words_of(metric).short} {written_once(metric, value)})"
        )
    return "; ".join(sentences) + "."


# How updates and recommendations spread over items, by pi (FedeRank Figures 2 and 3).


MOST_CURVES = 6
_POINTS = 120


def draw_item_updates(panel: PanelData) -> Drawing | None:
    """One method's panel: which share of the updates the most updated items got."""
    curves = _curves(panel, "item_updates")
    if not curves:
        return None
    figure, axes = new_panel(panel.title)
    _draw(axes, curves)
    axes.set(xlabel="Items, most updated first (rank)", ylabel="Share of all updates")
    steep = {value: shares[0] / shares[-1] for value, shares in curves.items() if shares[-1] > 0}
    last = max(len(shares) for shares in curves.values())
    sentences = ", ".join(f"{ratio:,.1f} (pi = {value:g})" for value, ratio in _ends(steep))
    seen = f"The most updated item has {sentences} times the updates of item number {last:,}." if sentences else ""
    return figure, seen


def draw_popularity(panel: PanelData) -> Drawing | None:
    """One method's panel: which share of the recommendations the most recommended items got."""
    curves = _curves(panel, "recommended")
    if not curves:
        return None
    figure, axes = new_panel(panel.title)
    _draw(axes, curves)
    feedback = next((row.extra("feedback") for row in panel.rows if row.extra("feedback")), None)
    if feedback:
        axes.plot(*_thinned(feedback), color=INK, linestyle="--", linewidth=1.5, label="feedback")
    axes.set(xlabel="Items, most frequent first (rank)", ylabel="Share of all recommendations")
    sentences = [f"pi = {value:g}: {sum(shares[:10]):.0%}" for value, shares in _ends(curves)]
    known = f" (of the feedback, the ten most popular have {sum(feedback[:10]):.0%})" if feedback else ""
    return figure, f"Share of the lists that the ten most recommended items take: {', '.join(sentences)}{known}."


def _curves(panel: PanelData, name: str) -> dict[float, Sequence[float]]:
    """At most six curves by their value of what was swept, from the smallest to the largest."""
    rows, sweep = panel.rows, panel.sweep
    held = {float(row.at(sweep)): row.extra(name) for row in rows if isinstance(row.at(sweep), int | float)}
    held = {value: shares for value, shares in sorted(held.items()) if shares}
    values = list(held)
    kept = {
        0,
        *(round(position) for position in np.linspace(min(1, len(values) - 1), len(values) - 1, MOST_CURVES - 1)),
    }
    return {value: held[value] for position, value in enumerate(values) if position in kept}


def _draw(axes: Any, curves: Mapping[float, Sequence[float]]) -> None:
    """Nothing sent is a case of its own and drawn apart; the others go from light to dark."""
    graded = [value for value in curves if value > 0]
    for value, shares in curves.items():
        xs, ys = _thinned(shares)
        position = graded.index(value) if value > 0 else 0
        style = (
            ramp(position, len(graded)) if value > 0 else {"color": VERMILLION, "linestyle": (0, (1, 1)), "marker": "x"}
        )
        axes.plot(xs, ys, label=f"π = {value:g}", markevery=0.22, markersize=4, **style)
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _thinned(shares: Sequence[float]) -> tuple[Any, Any]:
    """Ranks and shares of a hundred points, evenly spread on a logarithmic axis; items never met are left out."""
    held = np.array([share for share in shares if share > 0], dtype=np.float64)
    ranks = np.unique(np.geomspace(1, max(1, len(held)), _POINTS).round().astype(np.int64))
    return (ranks, held[ranks - 1]) if len(held) else (ranks[:0], held)


def _ends(values: Mapping[float, Any]) -> list[tuple[float, Any]]:
    """The first, the second and the last."""
    listed = list(values.items())
    return listed[:2] + listed[2:][-1:]


# Precision against item coverage, with arrows along growing pi (FPL Figure 3).


def draw_coverage(panel: PanelData) -> Drawing | None:
    """One data set's panel and what it shows, or None where nothing was swept."""
    sweep, across, up = panel.sweep, "item_coverage@10", panel.metric
    valued = [row for row in panel.rows if None not in (row.mean(across), row.mean(up))]
    families = swept_families(valued, sweep, panel.spec.groups)
    if not families:
        return None
    figure, axes = new_panel(panel.title)
    sentences = []
    for position, (group, held) in enumerate(families.items()):
        points = [(row.mean(across) or 0.0, row.mean(up) or 0.0) for row in held]
        draw_path(axes, points, [float(row.at(sweep)) for row in held], group, position)
        widest = max(held, key=lambda row: row.mean(across) or 0.0)
        sentences.append(f"{group} shows most items at {sweep} = {widest.at(sweep):g} ({widest.mean(across):,.0f})")
    if panel.spec.baselines:
        for row in level_rows(panel):
            x, y = row.mean(across), row.mean(up)
            if x is not None and y is not None:
                axes.plot(x, y, "x", color=FAINT)
                axes.annotate(legible(row.label), (x, y), (4, 3), textcoords="offset points", fontsize=8, color=FAINT)
    axes.margins(0.1)
    axes.set(xlabel=words_of(across).axis, ylabel=words_of(up).axis)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure, "; ".join(sentences) + "."


def draw_path(
    axes: Any, points: Sequence[tuple[float, float]], values: Sequence[float], name: str, position: int
) -> None:
    """A method's way through its sweep: arrows from little to much, ends labelled, the last point hollow."""
    style = look(position)
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, label=name, **style | {"markersize": 4, "linewidth": 1.3})
    axes.plot(xs[-1:], ys[-1:], marker=style["marker"], color=PAPER, markeredgecolor=style["color"], markersize=7)
    for start, end in pairwise(points):
        if start != end:
            middle = tuple(a + 0.62 * (b - a) for a, b in zip(start, end, strict=True))
            arrow = {"arrowstyle": "-|>", "color": style["color"], "linewidth": 0, "mutation_scale": 13}
            axes.annotate("", middle, start, arrowprops=arrow)
    for at in (0, len(points) - 1):
        # Ends of several paths may be close together: each has its own side for the label.
        across, up = ((8, 4), (8, -10), (-8, 6), (-8, -12))[position % 4]
        axes.annotate(
            f"{values[at]:g}",
            points[at],
            (across, up),
            textcoords="offset points",
            ha="left" if across > 0 else "right",
            fontsize=8,
            color=style["color"],
        )


# Precision against the reciprocal of the communication cost, with the Pareto front (FPL Figure 4).


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_cost(panel: PanelData) -> Drawing | None:
    """One data set's panel and what it shows, or None where no run has a cost."""
    sweep, up = panel.sweep, panel.metric
    priced = [row for row in panel.rows if row.mean("cce") and row.mean(up) is not None]
    families = swept_families(priced, sweep, panel.spec.groups)
    if not families:
        return None
    figure, axes = new_panel(panel.title)
    power = math.floor(math.log10(max(1 / (row.mean("cce") or 1) for held in families.values() for row in held)))
    points: dict[tuple[float, float], Row] = {}
    for position, (group, held) in enumerate(families.items()):
        path = [(10**-power / (row.mean("cce") or 1), row.mean(up) or 0.0) for row in held]
        draw_path(axes, path, [float(row.at(sweep)) for row in held], group, position)
        points |= dict(zip(path, held, strict=True))
    front = pareto_front(list(points))
    axes.plot(*zip(*front, strict=True), color=ORANGE, linewidth=4, alpha=0.7, zorder=1, label="Pareto front")
    axes.margins(0.1)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
    axes.set(xlabel=f"1 / item vectors sent per epoch, in 10{str(power).translate(_RAISED)}", ylabel=words_of(up).axis)
    names = "; ".join(points[point].label for point in front)
    return figure, f"No other run is both cheaper and more precise than {names}."


def pareto_front(points: Sequence[tuple[float, float]], alike: float = 0.0) -> list[tuple[float, float]]:
    """The points that no other equals or beats in both directions, from left to right; more is better in both.

    Second values that are at most `alike` apart count as equal.
    """
    front: list[tuple[float, float]] = []
    for point in sorted(set(points), reverse=True):
        if not front or point[1] > front[-1][1] + alike:
            front.append(point)
    return front[::-1]


# Bias disparity, bars per category (FPL Table 4 and section 5.4).


_HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def draw_disparity(panel: PanelData) -> Drawing | None:
    """One data set's panel and what it shows, or None where items have no categories."""
    metric, rows = panel.metric, panel.rows
    categories = list(
        dict.fromkeys(
            parts(name)[2]
            for row in rows
            for record in row.records
            for name in record.metrics
            if name.startswith(f"{metric}/")
        )
    )
    if not categories:
        return None
    figure, axes = new_panel(panel.title, height=1.6 + 0.075 * len(categories) * (len(rows) + 1.5))
    positions = np.arange(len(categories))[::-1]
    thickness = 0.8 / len(rows)
    means: dict[str, float] = {}
    for order, row in enumerate(rows):
        values = np.array([row.mean(f"{metric}/{category}") or 0.0 for category in categories])
        means[row.label] = float(np.abs(values).mean())
        offset = 0.4 - thickness * (order + 0.5)
        axes.barh(
            positions + offset,
            values,
            height=0.92 * thickness,
            color=look(order)["color"],
            hatch=_HATCHES[order],
            edgecolor=PAPER,
            linewidth=0,
            label=row.label,
        )
    axes.axvline(0, color=INK, linewidth=0.8)
    low, high = axes.dataLim.intervalx
    axes.set_xscale("symlog", linthresh=1, linscale=2)
    axes.set_xlim(min(low, -1) * 1.06, max(high, 0.5) * 1.1)
    ticks = [tick for tick in (-1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= max(0.5, high)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.minorticks_off()
    axes.set_yticks(positions, [legible(category) for category in categories])
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("Bias disparity: 0 as in histories, -1 left out")
    by_test = any(row.swept for row in rows)
    nearest, farthest = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    return (
        figure,
        f"On average over categories {nearest} stays nearest to histories ({means[nearest]:.2f}), {farthest} strays "
        f"farthest ({means[farthest]:.2f})."
        + " Of each sweep the value with the best precision on the test part is shown."
        * by_test,
    )
