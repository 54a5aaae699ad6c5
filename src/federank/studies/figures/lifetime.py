"""Accuracy against what one device sends and receives in its life, on a logarithmic axis.

A method that was run with several numbers of messages is a path in a colour of its own; the path with the most points
has the numbers beside them. A method of one number of messages is a black mark at its best point, or, where it is a
path's own variant (its name goes on after a comma), a hollow star in the path's colour. Methods that see every history
have no such cost and are level lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, INK, PAPER, legend_below, legible, look, new_panel
from federank.studies.results.metric_words import words_of, written_once
from federank.studies.results.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COST, _MESSAGES = "lifetime_megabytes", "lifetime_messages"
_HEIGHT = 4.1
_MARKS = ("o", "s", "^", "D", "X", "v", "P")

_NAME_HEIGHT = 0.05
"""How much of the panel's height a level line's name takes."""
_LETTER_WIDTH = 0.018
"""How much of the panel's width one of its letters takes."""

Points = list[tuple[float, float]]


def draw_lifetime(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where no run has counted what it sent."""
    up = shown.metric
    judged = [row for row in shown.rows if row.mean(up) is not None]
    costly = [row for row in judged if row.mean(_COST)]
    if not costly:
        return None
    figure, axes = new_panel(shown.panel, _HEIGHT)
    groups = {group: _steps(costly, group, up) for group in dict.fromkeys(row.group for row in costly)}
    paths = {group: rows for group, rows in groups.items() if len(rows) > 1}
    _draw_paths(axes, paths, up)
    _draw_single(axes, {group: rows for group, rows in groups.items() if len(rows) == 1}, list(paths), up)
    axes.set_xscale("log")
    axes.margins(0.1)
    _draw_levels(axes, [row for row in judged if not row.mean(_COST)], up)
    axes.set(xlabel=words_of(_COST).axis, ylabel=words_of(up).axis)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    legend_below(figure)
    best = max(costly, key=lambda row: row.mean(up) or 0.0)
    dearest = max(costly, key=lambda row: row.mean(_COST) or 0.0)
    reached, spent = written_once(up, best.mean(up)), written_once(up, dearest.mean(up))
    return Drawn(
        figure,
        f"Best: {best.label} ({words_of(up).short} {reached}) with {_megabytes(best)} a device in its life. "
        f"Dearest: {dearest.label} ({spent}) with {_megabytes(dearest)}.",
    )


def _megabytes(row: Row) -> str:
    """What a device of this row sends and receives, in three digits that count: 1,930 MB."""
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
    marks = iter(_MARKS * len(single))
    for group, rows in single.items():
        [point] = _points(rows, up)
        parent = next((position for position, path in enumerate(paths) if group.startswith(f"{path},")), None)
        if parent is None:
            axes.plot(*point, label=group, marker=next(marks), color=INK, markersize=5.5, linestyle="none")
        else:
            held = {"color": look(parent)["color"], "marker": "*", "markersize": 10, "linestyle": "none"}
            axes.plot(*point, label=group, markerfacecolor=PAPER, zorder=4, **held)


def _draw_levels(axes: Axes, rows: Sequence[Row], up: str) -> None:
    """Level lines with their names at the right; where lines are close, names stand side by side."""
    for row in rows:
        axes.axhline(row.mean(up) or 0.0, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
    bottom, top = axes.get_ylim()
    room = _NAME_HEIGHT * (top - bottom)
    lowest, place = bottom - room, 0.0
    for row in sorted(rows, key=lambda row: row.mean(up) or 0.0):
        level, name = row.mean(up) or 0.0, legible(row.label)
        if level - lowest >= room:
            lowest, place = level, 0.995
        beside = axes.get_yaxis_transform()
        axes.text(place, level, name, transform=beside, fontsize=8, color=FAINT, ha="right", va="bottom")
        place -= _LETTER_WIDTH * (len(name) + 1)
