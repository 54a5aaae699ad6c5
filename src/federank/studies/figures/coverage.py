"""Precision against item coverage, with arrows along growing pi (FPL Figure 3).

Up is more accurate, right is more different items in all lists together. Each method is a path through its values of
pi; the hollow point is the largest, so that the direction can be read without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, PAPER, legend_below, legible, look, new_panel
from federank.studies.figures.sweep import level_rows, swept_families
from federank.studies.results.metric_words import words_of


def draw_coverage(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where nothing was swept."""
    sweep, across, up = shown.sweep, "item_coverage@10", shown.metric
    valued = [row for row in shown.rows if None not in (row.mean(across), row.mean(up))]
    families = swept_families(valued, sweep, shown.wish.groups)
    if not families:
        return None
    figure, axes = new_panel(shown.panel)
    sentences = []
    for position, (group, held) in enumerate(families.items()):
        points = [(row.mean(across) or 0.0, row.mean(up) or 0.0) for row in held]
        draw_path(axes, points, [float(row.at(sweep)) for row in held], group, position)
        widest = max(held, key=lambda row: row.mean(across) or 0.0)
        sentences.append(f"{group} shows most items at {sweep} = {widest.at(sweep):g} ({widest.mean(across):,.0f})")
    if shown.wish.baselines:
        for row in level_rows(shown):
            x, y = row.mean(across), row.mean(up)
            if x is not None and y is not None:
                axes.plot(x, y, "x", color=FAINT)
                axes.annotate(legible(row.label), (x, y), (4, 3), textcoords="offset points", fontsize=8, color=FAINT)
    axes.margins(0.1)
    axes.set(xlabel=words_of(across).axis, ylabel=words_of(up).axis)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    legend_below(figure)
    return Drawn(figure, "; ".join(sentences) + ".")


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
        # Ends of several paths may lie close together: each has its own side for the label.
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
