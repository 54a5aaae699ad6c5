"""What audited runs gave away: bars per way of sharing.

Three shares of a person's history: what was sent openly as liked, what the server names with all its attacks, and what
it would name from popularity alone. Certainty is not the point, the gap between the last two is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from federank.studies.figures.style import BLUE, FAINT, ORANGE, PAPER, VERMILLION, legend_below, legible, new_panel
from federank.studies.rows import Line

BARS = (
    ("disclosed_share", "sent openly", ORANGE, ".."),
    ("fused/recall", "named by the server", VERMILLION, ""),
    ("popularity/recall", "named from popularity alone", BLUE, "//"),
)


def draw_privacy(data: str, lines: Sequence[Line]) -> tuple[Figure, str] | None:
    """One data set's panel and what it shows, or None where nothing was audited."""
    audits = [line for line in lines if (line.get("task"), line["data"]) == ("audit", data)]
    audits = [line for line in audits if line.get("status", "done") == "done"]
    if not audits:
        return None
    labels = [_label(line) for line in audits]
    figure, axes = new_panel(data, height=1.5 + 0.55 * len(audits))
    places = np.arange(len(audits))[::-1]
    for order, (metric, name, color, hatch) in enumerate(BARS):
        values = [line["metrics"].get(metric) or 0.0 for line in audits]
        offset = 0.27 * (1 - order)
        axes.barh(
            places + offset, values, height=0.25, color=color, hatch=hatch, edgecolor=PAPER, linewidth=0, label=name
        )
        for place, value in zip(places, values, strict=True):
            note: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": FAINT}
            axes.annotate(f"{value:.0%}", (value, place + offset), (3, -0.5), **note)
    axes.set_yticks(places, [legible(label) for label in labels], parse_math=False)
    axes.set_xlim(0, 1.1)
    axes.set_xticks(np.arange(0, 1.01, 0.25))
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("Share of a person's history")
    legend_below(figure, len(BARS))
    worst = max(audits, key=lambda line: line["metrics"].get("fused/recall") or 0.0)
    return figure, (
        f"With {_label(worst)} the server names {worst['metrics'].get('fused/recall') or 0:.0%} of a history, and "
        f"{worst['metrics'].get('fused/precision') or 0:.0%} of what it names is right."
    )


def _label(line: Line) -> str:
    pi = line.get("settings", {}).get("pi")
    return line["group"] if pi is None or "pi" in line["group"] else f"{line['group']}, pi = {pi:g}"
