"""Convergence: a metric after each epoch (FedRec Figure 3, and any study that kept curves).

The curve of a row is the mean over its seeds. Where test runs kept none, the curves of the runs that chose their
settings are drawn instead, and the axis says that they were taken on the validation part. Where
there are more curves than can be distinguished, each method is drawn at the best point of its sweep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from federank.studies.figures.style import (
    FAINT,
    INK,
    MOST_SERIES,
    PAPER,
    Drawing,
    PanelData,
    label_beside,
    legend_of,
    look,
    new_panel,
)
from federank.studies.metric_words import score, words_of, written_once
from federank.studies.results import Point, RunRecord
from federank.studies.rows import Row, best_of_sweeps

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Curve = dict[int, float]


def draw_convergence(panel: PanelData) -> Drawing | None:
    """One panel and what it shows, or None where no run has a curve of this metric."""
    rows, records = panel.rows, panel.records
    traced = (point for record in (*(one for row in rows for one in row.records), *records) for point in record.curve)
    metric = panel.metric or next((name for point in traced for name in point.values), None)
    if metric is None:
        return None
    if len(rows) > MOST_SERIES and len({row.family for row in rows}) > 1:
        rows = best_of_sweeps(rows, lambda row: score(metric, row.mean(metric) or 0.0))
    elif len(rows) > 1:
        rows = [row for row in rows if not row.is_best]  # the sweep has the same point already
    on_test = _mean_curves({row.label: [record.curve for record in row.records] for row in rows}, metric)
    curves = on_test or _mean_curves({row.label: _curves_of_choice(row, records) for row in rows}, metric)
    if not curves:
        return None
    labels = list(curves)
    if len(labels) > MOST_SERIES:  # as many as can be distinguished, the first and the last among them
        labels = [labels[round(position)] for position in np.linspace(0, len(labels) - 1, MOST_SERIES)]
    shared = shared_beginning(labels)
    figure, axes = new_panel(f"{shared}{panel.title}")
    for position, label in enumerate(labels):
        curve = curves[label]
        every = max(1, len(curve) // 8)
        # Where curves overlap, their markers do not.
        style = look(position) | {"markevery": (position * every // len(labels), every), "markersize": 4}
        axes.plot(list(curve), list(curve.values()), label=label.removeprefix(shared), **style)
    _leave_out_the_start(axes, [curves[label] for label in labels], metric)
    axes.set(xlabel="Epoch", ylabel=words_of(metric).axis + ("" if on_test else "\n(on the validation part)"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    sentences = []
    for label in labels:
        best = max(curves[label], key=lambda epoch: score(metric, curves[label][epoch]))
        sentences.append(f"{label} after {best} epoch{'s' * (best > 1)} ({written_once(metric, curves[label][best])})")
    return figure, f"Best by {words_of(metric).short}: {'; '.join(sentences)}."


def shared_beginning(labels: Sequence[str]) -> str:
    """What all labels begin with, up to a comma and a space: it is said once, in the title."""
    if len(labels) < 2:
        return ""
    columns = zip(*(label.split(", ")[:-1] for label in labels), strict=False)
    alike = takewhile(lambda words: len(set(words)) == 1, columns)
    return "".join(f"{words[0]}, " for words in alike)


def _mean_curves(rows: Mapping[str, Sequence[Sequence[Point]]], metric: str) -> dict[str, Curve]:
    """For each row with two points or more the mean of its curves, at each epoch that all with the metric have."""
    means: dict[str, Curve] = {}
    for label, curves in rows.items():
        values = [{point.epoch: point.values[metric] for point in one if metric in point.values} for one in curves]
        held = [curve for curve in values if curve]
        epochs = sorted(set.intersection(*map(set, held))) if held else []
        means[label] = {epoch: float(np.mean([curve[epoch] for curve in held])) for epoch in epochs}
    return {label: curve for label, curve in means.items() if len(curve) > 1}


def _curves_of_choice(row: Row, records: Sequence[RunRecord]) -> list[Sequence[Point]]:
    """The curves of the runs in which the row's settings won: the same settings, but for how long to train.

    A search by halving has tried them for some epochs and then for more: the longest curve of each seed is drawn.
    """
    wanted = [_but_epochs(record) for record in row.records]
    longest: dict[tuple[int | None, int | None], Sequence[Point]] = {}
    for record in records:
        is_choice = record.task == "choose" and (record.data, record.group) == (row.data, row.family)
        if is_choice and _but_epochs(record) in wanted:
            run = record.seed, record.fold
            longest[run] = max(longest.get(run, ()), record.curve, key=len)
    return list(longest.values())


def _but_epochs(record: RunRecord) -> dict[str, Any]:
    return {name: value for name, value in record.settings.items() if name != "epochs"}


def _leave_out_the_start(axes: Any, curves: Sequence[Curve], metric: str) -> None:
    """Errors fall from far above in the first epochs; the axis shows where the curves can be distinguished."""
    if words_of(metric).better != "lower":
        return
    low = min(min(curve.values()) for curve in curves)
    end = max(list(curve.values())[-1] for curve in curves)
    start = max(max(curve.values()) for curve in curves)
    top = end + 1.5 * (end - low) + 0.05 * end
    if start > top:
        axes.set_ylim(low - 0.05 * (top - low), top)


# Accuracy against what one client sends and receives over its lifetime, on a logarithmic axis.


_COST, _MESSAGES = "lifetime_megabytes", "lifetime_messages"
_HEIGHT = 4.1
_MARKS = ("o", "s", "^", "D", "X", "v", "P")
_VARIANTS = (("*", 10), ("D", 6), ("^", 7), ("P", 7))
"""Marks of a drawn method's variants, each with its size."""

Points = list[tuple[float, float]]


def draw_lifetime(panel: PanelData) -> Drawing | None:
    """One data set's panel and what it shows, or None where no run has counted what it sent."""
    up = panel.metric
    judged = [row for row in panel.rows if row.mean(up) is not None]
    costly = [row for row in judged if row.mean(_COST)]
    if not costly:
        return None
    figure, axes = new_panel(panel.title, _HEIGHT)
    groups = {group: _steps(costly, group, up) for group in dict.fromkeys(row.group for row in costly)}
    paths = {group: rows for group, rows in groups.items() if len(rows) > 1}
    _draw_paths(axes, paths, up)
    _draw_single(axes, {group: rows for group, rows in groups.items() if len(rows) == 1}, list(paths), up)
    axes.set_xscale("log")
    axes.margins(0.1)
    level = {row.label: row.mean(up) or 0.0 for row in judged if not row.mean(_COST)}
    for value in level.values():
        axes.axhline(value, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
    label_beside(axes, list(level.values()), list(level))
    axes.set(xlabel=words_of(_COST).axis, ylabel=words_of(up).axis)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    best = max(costly, key=lambda row: row.mean(up) or 0.0)
    dearest = max(costly, key=lambda row: row.mean(_COST) or 0.0)
    reached, spent = written_once(up, best.mean(up)), written_once(up, dearest.mean(up))
    return (
        figure,
        f"Best: {best.label} ({words_of(up).short} {reached}) with {_megabytes(best)} per client. "
        f"Most expensive: {dearest.label} ({spent}) with {_megabytes(dearest)}.",
    )


def _megabytes(row: Row) -> str:
    """What a client of this row sends and receives, in three digits that count: 1,930 MB."""
    return f"{float(f'{row.mean(_COST) or 0.0:.3g}'):,g} MB"


def _steps(costly: Sequence[Row], group: str, up: str) -> list[Row]:
    """A method's rows, the cheapest first; the best of them where they all have the same number of messages."""
    rows = sorted((row for row in costly if row.group == group), key=lambda row: row.mean(_COST) or 0.0)
    if len({row.mean(_MESSAGES) for row in rows}) == 1:
        return [max(rows, key=lambda row: row.mean(up) or 0.0)]
    return rows


def _points(rows: Sequence[Row], up: str) -> Points:
    return [(row.mean(_COST) or 0.0, row.mean(up) or 0.0) for row in rows]


def _draw_paths(axes: Axes, paths: Mapping[str, Sequence[Row]], up: str) -> None:
    longest = max(paths, key=lambda group: len(paths[group]), default=None)
    for position, (group, rows) in enumerate(paths.items()):
        points = _points(rows, up)
        axes.plot(*zip(*points, strict=True), label=group, **look(position) | {"markersize": 5, "linewidth": 1.4})
        if group == longest:
            for row, point in zip(rows, points, strict=True):
                number = f"{row.mean(_MESSAGES) or 0.0:,.0f}"
                held = {"color": look(position)["color"], "fontsize": 7.5, "ha": "center"}
                axes.annotate(number, point, xytext=(0, -12), textcoords="offset points", **held)


def _draw_single(axes: Axes, single: Mapping[str, Sequence[Row]], paths: Sequence[str], up: str) -> None:
    marks, variants = iter(_MARKS * len(single)), iter(_VARIANTS * len(single))
    for group, rows in single.items():
        [point] = _points(rows, up)
        parent = next((position for position, path in enumerate(paths) if group.startswith(f"{path},")), None)
        if parent is None:
            axes.plot(*point, label=group, marker=next(marks), color=INK, markersize=5.5, linestyle="none")
        else:
            mark, size = next(variants)
            held = {"color": look(parent)["color"], "marker": mark, "markersize": size, "linestyle": "none"}
            axes.plot(*point, label=group, markerfacecolor=PAPER, zorder=4, **held)


# What malicious clients reach, attack by attack: without the defences, and with them; between the two is what these
# stop.


_EXPOSURE = re.compile(r"exposure_undefended_([0-9.]+)")
USUAL, GOAL = 5.0, 0.05
"""The share of malicious clients, in per cent, that is drawn where it was played, and the exposure that is aimed at."""
_ROW_INCHES = 0.27


def draw_poisoning(panel: PanelData) -> Drawing | None:
    """One data set's panel and what it shows, or None where no one has pushed anything."""
    names = {name for row in panel.rows for record in row.records for name in record.metrics}
    shares = sorted(float(match[1]) for match in map(_EXPOSURE.fullmatch, names) if match is not None)
    if not shares:
        return None
    share = USUAL if USUAL in shares else shares[-1]
    reached = [(row, row.mean(f"exposure_undefended_{share:g}"), row.mean(f"exposure_{share:g}")) for row in panel.rows]
    pushed = [(row.label, free, held) for row, free, held in reached if free is not None and held is not None]
    pushed = [entry for entry in pushed if max(entry[1:]) >= 0.01]
    if not pushed:
        return None
    figure, axes = new_panel(panel.title, 0.9 + _ROW_INCHES * len(pushed))
    free_look, held_look = ({**look(place), "linestyle": "none", "markersize": 6} for place in (1, 0))
    places = range(len(pushed), 0, -1)
    for place, (_, free, held) in zip(places, pushed, strict=True):
        axes.plot([free, held], [place, place], color=FAINT, linewidth=1.2, zorder=1)
    [without] = axes.plot([free for _, free, _ in pushed], [*places], **free_look | {"markerfacecolor": "none"})
    [defended] = axes.plot([held for _, _, held in pushed], [*places], **held_look)
    goal = axes.axvline(GOAL, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlabel=f"Users who see the item,\n{share:g} % of clients malicious", xlim=(-0.03, 1.03))
    axes.set_yticks([*places], [label for label, _, _ in pushed], fontsize=8)
    axes.grid(visible=False, axis="y")
    legend_of(figure, [(without, "without the defences"), (defended, "with the defences"), (goal, "the goal")])
    within = sum(held <= GOAL for _, _, held in pushed)
    worst, _, most = max(pushed, key=lambda entry: entry[2])
    return (
        figure,
        f"With the defences on, {within} of {len(pushed)} attacks show the item to {GOAL:.0%} of users at most; "
        f"{worst} shows it to {most:.1%}.",
    )
