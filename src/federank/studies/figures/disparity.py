"""Bias disparity, bars per category (FPL Table 4 and section 5.4).

0 means that lists favour a category exactly as histories do; 1 that they favour it twice as much; -1 that they leave it
out. The axis is even from -1 to 1 and logarithmic beyond, where popularity alone can reach far.
"""

from __future__ import annotations

import numpy as np

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import INK, PAPER, legend_below, legible, look, new_panel
from federank.studies.results.metric_words import parts

_HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def draw_disparity(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where items have no categories."""
    metric, rows = shown.metric, shown.rows
    categories = list(
        dict.fromkeys(
            parts(name)[2]
            for row in rows
            for line in row.lines
            for name in line.metrics
            if name.startswith(f"{metric}/")
        )
    )
    if not categories:
        return None
    figure, axes = new_panel(shown.panel, height=1.6 + 0.075 * len(categories) * (len(rows) + 1.5))
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
    legend_below(figure)
    by_test = any(row.swept for row in rows)
    nearest, farthest = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    return Drawn(
        figure,
        f"On average over categories {nearest} stays nearest to histories ({means[nearest]:.2f}), {farthest} strays "
        f"farthest ({means[farthest]:.2f})."
        + " Of each sweep the value with the best precision on the test part is shown."
        * by_test,
    )
