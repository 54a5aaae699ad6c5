"""What audited runs gave away: bars per way of sharing.

First the share of a history that was sent openly as liked. Then, of what never left: how often the server ranks one of
a person's items above another item, with all its attacks and by popularity alone (half the time is chance). What the
messages betray is the gap between the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import PercentFormatter

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import BLUE, FAINT, ORANGE, PAPER, VERMILLION, legend_below, legible, new_panel
from federank.studies.results.line import Line

BARS = (
    ("disclosed_share", "sent openly", ORANGE, ".."),
    ("fused/auc_held_back", "of the rest, ranked right by the server", VERMILLION, ""),
    ("popularity/auc_held_back", "of the rest, ranked right by popularity", BLUE, "//"),
)


def draw_privacy(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where nothing was audited."""
    audits = [line for line in shown.lines if (line.task, line.data, line.done) == ("audit", shown.panel, True)]
    if not audits:
        return None
    labels = [_label(line) for line in audits]
    figure, axes = new_panel(shown.panel, height=1.5 + 0.55 * len(audits))
    positions = np.arange(len(audits))[::-1]
    for order, (metric, name, color, hatch) in enumerate(BARS):
        values = [line.metrics.get(metric) or 0.0 for line in audits]
        offset = 0.27 * (1 - order)
        axes.barh(
            positions + offset, values, height=0.25, color=color, hatch=hatch, edgecolor=PAPER, linewidth=0, label=name
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
    axes.set_xlabel("Share sent, share ranked right (dotted: chance)")
    legend_below(figure)
    sentences = [
        f"{_label(line)}: {line.metrics.get('disclosed_share') or 0:.0%} sent openly, the rest ranked right "
        f"{line.metrics.get('fused/auc_held_back') or 0:.0%} of the time"
        for line in audits
    ]
    return Drawn(figure, f"{'; '.join(sentences)}.")


def _label(line: Line) -> str:
    pi = line.settings.get("pi")
    return line.group if pi is None or "pi" in line.group else f"{line.group}, pi = {pi:g}"
