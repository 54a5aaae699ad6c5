"""A metric against what was swept: F1 against pi (FedeRank Figure 1, FPL Figure 2), RMSE against rho (FedRec Figure 2).

A line per method, its deviation over seeds as a pale band; methods without the swept setting are level lines with
their names at the right. What the paper printed for a point is a cross. The papers' F1 is the harmonic mean of the
mean precision and the mean recall, and so it is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, INK, label_beside, legend_below, look, new_panel
from federank.studies.plan.wishes import published
from federank.studies.results.metric_words import score, words_of, written_once
from federank.studies.results.rows import Row

SWEEPS = {
    "pi": "π: how often a liked item's update may leave the device",
    "epsilon": "ε: what all messages of a person may tell",
    "rho": "ρ: made-up ratings for every real one",
}


def draw_sweep(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where nothing was swept."""
    sweep, metric, wishes = shown.sweep, shown.metric, shown.wishes
    families = swept_families(shown.rows, sweep, shown.wish.groups)
    families = {
        group: held for group, held in families.items() if any(value_of(row, metric) is not None for row in held)
    }
    if not families:
        return None
    figure, axes = new_panel(shown.wish.panel or shown.panel)
    crosses = False
    for position, (group, held) in enumerate(families.items()):
        points = [row for row in held if value_of(row, metric) is not None]
        xs = [float(row.at(sweep)) for row in points]
        ys = np.array([value_of(row, metric) for row in points], dtype=np.float64)
        spread = np.array([deviation_of(row, metric) for row in points], dtype=np.float64)
        axes.plot(xs, ys, label=group, **look(position))
        if spread.any():
            axes.fill_between(xs, ys - spread, ys + spread, color=look(position)["color"], alpha=0.18, linewidth=0)
        theirs = [(x, published(wishes, row, points, metric)) for x, row in zip(xs, points, strict=True)]
        theirs = [(x, y) for x, y in theirs if y is not None]
        if theirs:
            axes.plot(*zip(*theirs, strict=True), "x", color=INK, markersize=6, label=None if crosses else "paper")
            crosses = True
    valued = ((row.label, value_of(row, metric)) for row in level_rows(shown))
    level = {name: value for name, value in valued if value is not None}
    for value in level.values():
        axes.axhline(value, color=FAINT, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.margins(y=0.08)
    label_beside(axes, list(level.values()), list(level))
    axes.set(xlabel=SWEEPS.get(sweep, sweep), ylabel=words_of(metric).axis.split(":")[0])
    if sweep == "rho":
        axes.set_xticks(sorted({float(row.at(sweep)) for held in families.values() for row in held}))
    legend_below(figure)
    return Drawn(figure, _seen(families, sweep, metric))


def swept_families(rows: Sequence[Row], sweep: str, groups: Sequence[str]) -> dict[str, list[Row]]:
    """The groups that have several values of what is swept, each in its order."""
    families: dict[str, list[Row]] = {}
    for group in groups or dict.fromkeys(row.group for row in rows):
        held = [row for row in rows if row.group == group and isinstance(row.at(sweep), int | float)]
        if len({row.at(sweep) for row in held}) > 1:
            families[group] = sorted(held, key=lambda row: float(row.at(sweep)))
    return families


def level_rows(shown: Shown) -> list[Row]:
    """The baselines: those the study names, or all that were not swept."""
    named, sweep = shown.wish.baselines, shown.sweep
    return [
        row
        for row in shown.rows
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
