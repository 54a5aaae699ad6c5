"""What liars reach, attack by attack: without the defences, and with them; between the two is what these stop."""

from __future__ import annotations

import re
from collections.abc import Sequence

from federank.studies.figures.shown import Drawn, Shown
from federank.studies.figures.style import FAINT, INK, legend_of, look, new_panel
from federank.studies.results.rows import Row

_EXPOSURE = re.compile(r"exposure_undefended_([0-9.]+)")
USUAL, GOAL = 5.0, 0.05
"""The share of liars, in per cent, that is drawn where it was played, and the exposure that is aimed at."""
_ROW_INCHES = 0.27


def draw_poisoning(shown: Shown) -> Drawn | None:
    """One data set's panel and what it shows, or None where nobody has pushed anything."""
    share = _share(shown.rows)
    if share is None:
        return None
    reached = [(row, row.mean(f"exposure_undefended_{share:g}"), row.mean(f"exposure_{share:g}")) for row in shown.rows]
    pushed = [(row.label, free, held) for row, free, held in reached if free is not None and held is not None]
    pushed = [entry for entry in pushed if max(entry[1:]) >= 0.01]
    if not pushed:
        return None
    figure, axes = new_panel(shown.panel, 0.9 + _ROW_INCHES * len(pushed))
    free_look, held_look = ({**look(place), "linestyle": "none", "markersize": 6} for place in (1, 0))
    places = range(len(pushed), 0, -1)
    for place, (_, free, held) in zip(places, pushed, strict=True):
        axes.plot([free, held], [place, place], color=FAINT, linewidth=1.2, zorder=1)
    [without] = axes.plot([free for _, free, _ in pushed], [*places], **free_look | {"markerfacecolor": "none"})
    [defended] = axes.plot([held for _, _, held in pushed], [*places], **held_look)
    goal = axes.axvline(GOAL, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlabel=f"People who see the item,\n{share:g} % of devices lying", xlim=(-0.03, 1.03))
    axes.set_yticks([*places], [label for label, _, _ in pushed], fontsize=8)
    axes.grid(visible=False, axis="y")
    legend_of(figure, [(without, "without the defences"), (defended, "with the defences"), (goal, "the goal")])
    within = sum(held <= GOAL for _, _, held in pushed)
    worst, _, most = max(pushed, key=lambda entry: entry[2])
    return Drawn(
        figure,
        f"With the defences on, {within} of {len(pushed)} attacks show the item to {GOAL:.0%} of people at most; "
        f"{worst} shows it to {most:.1%}.",
    )


def _share(rows: Sequence[Row]) -> float | None:
    """The share of liars that is drawn, in per cent."""
    names = {name for row in rows for line in row.lines for name in line.metrics}
    shares = sorted(float(match[1]) for match in map(_EXPOSURE.fullmatch, names) if match is not None)
    return None if not shares else USUAL if USUAL in shares else shares[-1]
