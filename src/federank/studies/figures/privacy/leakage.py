"""What audited runs gave away: bars per way of learning and sharing.

How often the server ranks one of a person's items above another item, with its best attack and by popularity alone
(half the time is chance). What messages betray is the gap between the two. Accuracy stands beside the name; in a
figure of its own it is drawn against that gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import PercentFormatter

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import BLUE, FAINT, PAPER, VERMILLION, legend_below, legible, look, new_panel
from federank.studies.results.line import Line

BARS = (
    ("auc", "histories, ranked right by the server", VERMILLION, ""),
    ("popularity", "ranked right by popularity alone", BLUE, "//"),
)
"""The mark of each bar: the best attack's, and popularity's."""


def draw_privacy(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where nothing was audited."""
    audits = [line for line in shown.lines if (line.task, line.data, line.done) == ("audit", shown.panel, True)]
    if not audits:
        return None
    labels = [_label(line) for line in audits]
    figure, axes = new_panel(shown.panel, height=1.5 + 0.5 * len(audits))
    positions = np.arange(len(audits))[::-1]
    for order, (mark, name, color, hatch) in enumerate(BARS):
        values = [_mark(line, mark) for line in audits]
        offset = 0.19 - 0.38 * order
        axes.barh(
            positions + offset, values, height=0.34, color=color, hatch=hatch, edgecolor=PAPER, linewidth=0, label=name
        )
        for position, value in zip(positions, values, strict=True):
            note: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": FAINT}
            axes.annotate(f"{value:.0%}", (value, position + offset), (3, -0.5), **note)
    axes.set_yticks(positions, [legible(label) for label in labels])
    axes.set_xlim(0, 1.1)
    axes.set_xticks(np.arange(0, 1.01, 0.25))
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(axis="y", visible=False)
    axes.axvline(0.5, color=FAINT, linestyle=":", linewidth=1.2)
    axes.set_xlabel("Ranked right (dotted: chance)")
    legend_below(figure)
    sentences = [
        f"{_label(line)}: {_mark(line, BARS[0][0]):.0%} ranked right by the server, {_mark(line, BARS[1][0]):.0%} by "
        "popularity"
        for line in audits
    ]
    return Drawn(figure, f"{'; '.join(sentences)}.")


def draw_leakage(shown: Shown) -> Drawn | None:
    """Accuracy against what was given away: a mark for each audited way of learning, with its name beside it."""
    audits = [line for line in shown.lines if (line.task, line.data, line.done) == ("audit", shown.panel, True)]
    points = [
        (line.group, precision, _mark(line, BARS[0][0]) - _mark(line, BARS[1][0]))
        for line in audits
        if (precision := line.metrics.get("precision@10")) is not None
    ]
    if len(points) < 2:
        return None
    figure, axes = new_panel(shown.panel)
    axes.axhline(0, color=FAINT, linestyle=":", linewidth=1.2)
    for position, (name, precision, gain) in enumerate(points):
        axes.plot(precision, gain, markersize=8, **(look(position) | {"linestyle": "", "label": legible(name)}))
    widest = max(precision for _, precision, _ in points)
    highest = max([0.05, *(gain for *_, gain in points)])
    axes.set_xlim(0, 1.12 * widest)
    axes.set_ylim(min(0.0, *(gain for *_, gain in points)) - 0.06 * highest, 1.12 * highest)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.2f}" if value else "0")
    axes.set_xlabel("Precision of the first 10 (share of hits)")
    axes.set_ylabel("Best attack above popularity\n(area under the curve)")
    legend_below(figure)
    told = "; ".join(
        f"{name}: precision {precision:.3g}, {gain:+.3f} over popularity" for name, precision, gain in points
    )
    return Drawn(figure, f"{told}.")


def _mark(line: Line, name: str) -> float:
    return line.metrics.get(name) or 0.0


def _label(line: Line) -> str:
    pi = line.settings.get("pi")
    named = line.group if pi is None or "pi" in line.group or "%" in line.group else f"{line.group}, pi = {pi:g}"
    precision = line.metrics.get("precision@10")
    return named if precision is None else f"{named} (P@10 {precision:.3f})"
