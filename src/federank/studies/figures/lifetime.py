"""Accuracy against what one device sends and receives in its life, on a logarithmic axis.

Each federated method is a path through its numbers of messages, or a single point; methods that see every history have
no such cost and are level lines.
"""

from __future__ import annotations

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, legend_below, legible, look, new_panel
from federank.studies.results.metric_words import words_of

_COST = "lifetime_megabytes"


def draw_lifetime(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where no run has counted what it sent."""
    up = shown.metric
    judged = [row for row in shown.rows if row.mean(up) is not None]
    costly = [row for row in judged if row.mean(_COST)]
    if not costly:
        return None
    figure, axes = new_panel(shown.panel)
    for position, group in enumerate(dict.fromkeys(row.group for row in costly)):
        held = sorted((row for row in costly if row.group == group), key=lambda row: row.mean(_COST) or 0.0)
        points = [(row.mean(_COST) or 0.0, row.mean(up) or 0.0) for row in held]
        axes.plot(*zip(*points, strict=True), label=group, **look(position) | {"markersize": 5, "linewidth": 1.3})
    for row in judged:
        if not row.mean(_COST):
            level = row.mean(up) or 0.0
            axes.axhline(level, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
            right = axes.get_yaxis_transform()
            axes.text(
                0.995, level, legible(row.label), transform=right, fontsize=8, color=FAINT, ha="right", va="bottom"
            )
    axes.set_xscale("log")
    axes.margins(0.08)
    axes.set(xlabel=words_of(_COST).axis, ylabel=words_of(up).axis)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    legend_below(figure)
    best = max(costly, key=lambda row: row.mean(up) or 0.0)
    dearest = max(costly, key=lambda row: row.mean(_COST) or 0.0)
    return Drawn(
        figure,
        f"Best: {best.label} ({best.mean(up):.4f}) with {best.mean(_COST):,.3g} MB a device in its life. Dearest: "
        f"{dearest.label} ({dearest.mean(up):.4f}) with {dearest.mean(_COST):,.3g} MB.",
    )
