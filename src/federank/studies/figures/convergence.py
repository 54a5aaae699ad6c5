"""Convergence: a metric after each epoch (FedRec Figure 3, and any study that kept curves).

The curve of a row is the mean over its seeds. Where test runs kept none, the curves of the runs that chose their
settings are drawn instead, and the axis says that they were taken on the validation part. Where
there are more curves than can be told apart, each method is drawn at the best point of its sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import MOST_SERIES, legend_below, look, new_panel
from federank.studies.results.line import Line, Point
from federank.studies.results.metric_words import score, words_of, written_once
from federank.studies.results.rows import Row, best_of_sweeps

Curve = dict[int, float]


def draw_convergence(shown: Shown) -> Drawn | None:
    """One panel and what it shows, or None where no run has a curve of this metric."""
    rows, lines = shown.rows, shown.lines
    metric = shown.metric or _first_metric(rows, lines)
    if metric is None:
        return None
    if len(rows) > MOST_SERIES and len({row.family for row in rows}) > 1:
        rows = best_of_sweeps(rows, lambda row: score(metric, row.mean(metric) or 0.0))
    elif len(rows) > 1:
        rows = [row for row in rows if not row.is_best]  # the sweep has the same point already
    tested = {row.label: _mean_curve([line.curve for line in row.lines], metric) for row in rows}
    curves = {label: curve for label, curve in tested.items() if len(curve) > 1}
    on_test = bool(curves)
    if not on_test:
        chosen = {row.label: _mean_curve(_curves_of_choice(row, lines), metric) for row in rows}
        curves = {label: curve for label, curve in chosen.items() if len(curve) > 1}
    if not curves:
        return None
    labels = thin_out(list(curves))
    shared = shared_beginning(labels)
    figure, axes = new_panel(f"{shared}{shown.panel}")
    for position, label in enumerate(labels):
        curve = curves[label]
        every = max(1, len(curve) // 8)
        # Where curves lie on each other, their markers do not.
        style = look(position) | {"markevery": (position * every // len(labels), every), "markersize": 4}
        axes.plot(list(curve), list(curve.values()), label=label.removeprefix(shared), **style)
    _leave_out_the_start(axes, [curves[label] for label in labels], metric)
    axes.set(xlabel="Epoch", ylabel=words_of(metric).axis + ("" if on_test else "\n(on the validation part)"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure)
    sentences = []
    for label in labels:
        best = max(curves[label], key=lambda epoch: score(metric, curves[label][epoch]))
        sentences.append(f"{label} after {best} epoch{'s' * (best > 1)} ({written_once(metric, curves[label][best])})")
    return Drawn(figure, f"Best by {words_of(metric).short}: {'; '.join(sentences)}.")


def thin_out(labels: Sequence[str]) -> list[str]:
    """As many as can be told apart: evenly chosen, the first and the last among them."""
    if len(labels) <= MOST_SERIES:
        return list(labels)
    return [labels[round(position)] for position in np.linspace(0, len(labels) - 1, MOST_SERIES)]


def shared_beginning(labels: Sequence[str]) -> str:
    """What all labels begin with, up to a comma and a space: it is said once, in the title."""
    if len(labels) < 2:
        return ""
    columns = zip(*(label.split(", ")[:-1] for label in labels), strict=False)
    alike = takewhile(lambda words: len(set(words)) == 1, columns)
    return "".join(f"{words[0]}, " for words in alike)


def _mean_curve(curves: Sequence[Sequence[Point]], metric: str) -> Curve:
    """The mean over the curves that have the metric, for each epoch that all of them have."""
    held = [{point.epoch: float(point.values[metric]) for point in curve if metric in point.values} for curve in curves]
    held = [curve for curve in held if curve]
    epochs = sorted(set.intersection(*map(set, held))) if held else []
    return {epoch: float(np.mean([curve[epoch] for curve in held])) for epoch in epochs}


def _curves_of_choice(row: Row, lines: Sequence[Line]) -> list[Sequence[Point]]:
    """The curves of the runs in which the row's settings won: the same settings, but for how long to train.

    A search by halving has tried them for some epochs and then for more: the longest curve of each seed is drawn.
    """
    wanted = [_but_epochs(line) for line in row.lines]
    longest: dict[tuple[int | None, int | None], Sequence[Point]] = {}
    for line in lines:
        is_choice = line.task == "choose" and (line.data, line.group) == (row.data, row.family)
        if is_choice and _but_epochs(line) in wanted:
            run = line.seed, line.fold
            longest[run] = max(longest.get(run, ()), line.curve, key=len)
    return list(longest.values())


def _but_epochs(line: Line) -> dict[str, Any]:
    return {name: value for name, value in line.settings.items() if name != "epochs"}


def _first_metric(rows: Sequence[Row], lines: Sequence[Line]) -> str | None:
    every = [line for row in rows for line in row.lines] + list(lines)
    points = (point for line in every for point in line.curve[:1])
    return next((name for point in points for name in point.values), None)


def _leave_out_the_start(axes: Any, curves: Sequence[Curve], metric: str) -> None:
    """Errors fall from far above in the first epochs; the axis shows where the curves can be told apart."""
    if words_of(metric).better != "lower":
        return
    low = min(min(curve.values()) for curve in curves)
    end = max(list(curve.values())[-1] for curve in curves)
    start = max(max(curve.values()) for curve in curves)
    top = end + 1.5 * (end - low) + 0.05 * end
    if start > top:
        axes.set_ylim(low - 0.05 * (top - low), top)
