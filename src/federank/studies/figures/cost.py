"""Precision against the reciprocal of the communication cost, with the Pareto front (FPL Figure 4).

Right is cheaper, up is more accurate: the front joins the points that no other beats in both. Costs are the papers'
CCE, item vectors per epoch; they differ little, because nearly all of it is the download of the whole model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from federank.studies.figures.coverage import draw_path
from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import ORANGE, legend_below, new_panel
from federank.studies.figures.sweep import swept_families
from federank.studies.results.metric_words import words_of
from federank.studies.results.rows import Row

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_cost(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where no run has a cost."""
    sweep, up = shown.sweep, shown.metric
    priced = [row for row in shown.rows if row.mean("cce") and row.mean(up) is not None]
    families = swept_families(priced, sweep, shown.wish.groups)
    if not families:
        return None
    figure, axes = new_panel(shown.panel)
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
    legend_below(figure)
    names = "; ".join(points[point].label for point in front)
    return Drawn(figure, f"No other run is both cheaper and more precise than {names}.")


def pareto_front(points: Sequence[tuple[float, float]], alike: float = 0.0) -> list[tuple[float, float]]:
    """The points that no other equals or beats in both directions, from left to right; more is better in both.

    Second values that are at most `alike` apart count as equal.
    """
    front: list[tuple[float, float]] = []
    for point in sorted(set(points), reverse=True):
        if not front or point[1] > front[-1][1] + alike:
            front.append(point)
    return front[::-1]
