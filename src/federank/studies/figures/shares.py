"""How updates and recommendations spread over items, by pi (FedeRank Figures 2 and 3).

Items are sorted, the most frequent first, on logarithmic axes: a level line means that all items are treated alike, a
steep one that few get most. For recommendations the black dashed line is the feedback they were learnt from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import INK, VERMILLION, legend_below, new_panel, ramp

MOST_CURVES = 6
_POINTS = 120


def draw_item_updates(shown: Shown) -> Drawn | None:
    """One method's panel: which share of the updates the most updated items got."""
    curves = _curves(shown, "item_updates")
    if not curves:
        return None
    figure, axes = new_panel(shown.panel)
    _draw(axes, curves)
    axes.set(xlabel="Items, most updated first (rank)", ylabel="Share of all updates")
    legend_below(figure)
    steep = {value: shares[0] / shares[-1] for value, shares in curves.items() if shares[-1] > 0}
    last = max(len(shares) for shares in curves.values())
    sentences = ", ".join(f"{ratio:,.1f} (pi = {value:g})" for value, ratio in _ends(steep))
    seen = f"The most updated item has {sentences} times the updates of item number {last:,}." if sentences else ""
    return Drawn(figure, seen)


def draw_popularity(shown: Shown) -> Drawn | None:
    """One method's panel: which share of the recommendations the most recommended items got."""
    curves = _curves(shown, "recommended")
    if not curves:
        return None
    figure, axes = new_panel(shown.panel)
    _draw(axes, curves)
    feedback = next((row.extra("feedback") for row in shown.rows if row.extra("feedback")), None)
    if feedback:
        axes.plot(*_thinned(feedback), color=INK, linestyle="--", linewidth=1.5, label="feedback")
    axes.set(xlabel="Items, most frequent first (rank)", ylabel="Share of all recommendations")
    legend_below(figure)
    sentences = [f"pi = {value:g}: {sum(shares[:10]):.0%}" for value, shares in _ends(curves)]
    known = f" (of the feedback, the ten most popular have {sum(feedback[:10]):.0%})" if feedback else ""
    return Drawn(figure, f"Share of the lists that the ten most recommended items take: {', '.join(sentences)}{known}.")


def _curves(shown: Shown, name: str) -> dict[float, Sequence[float]]:
    """At most six curves by their value of what was swept, from the smallest to the largest."""
    rows, sweep = shown.rows, shown.sweep
    held = {float(row.at(sweep)): row.extra(name) for row in rows if isinstance(row.at(sweep), int | float)}
    held = {value: shares for value, shares in sorted(held.items()) if shares}
    values = list(held)
    kept = {
        0,
        *(round(position) for position in np.linspace(min(1, len(values) - 1), len(values) - 1, MOST_CURVES - 1)),
    }
    return {value: held[value] for position, value in enumerate(values) if position in kept}


def _draw(axes: Any, curves: Mapping[float, Sequence[float]]) -> None:
    """Nothing sent is a case of its own and drawn apart; the others go from light to dark."""
    graded = [value for value in curves if value > 0]
    for value, shares in curves.items():
        xs, ys = _thinned(shares)
        position = graded.index(value) if value > 0 else 0
        style = (
            ramp(position, len(graded)) if value > 0 else {"color": VERMILLION, "linestyle": (0, (1, 1)), "marker": "x"}
        )
        axes.plot(xs, ys, label=f"π = {value:g}", markevery=0.22, markersize=4, **style)
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _thinned(shares: Sequence[float]) -> tuple[Any, Any]:
    """Ranks and shares of a hundred points, evenly spread on a logarithmic axis; items never met are left out."""
    held = np.array([share for share in shares if share > 0], dtype=np.float64)
    ranks = np.unique(np.geomspace(1, max(1, len(held)), _POINTS).round().astype(np.int64))
    return (ranks, held[ranks - 1]) if len(held) else (ranks[:0], held)


def _ends(values: Mapping[float, Any]) -> list[tuple[float, Any]]:
    """The first, the second and the last."""
    listed = list(values.items())
    return listed[:2] + listed[2:][-1:]
