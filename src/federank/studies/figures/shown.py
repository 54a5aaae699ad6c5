"""What a panel is to show: handed to the function that draws its kind of figure (kinds.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from federank.studies.plan.wishes import FigureWish, Wishes
from federank.studies.results.line import Line
from federank.studies.results.rows import Row


class Shown(NamedTuple):
    """One panel's material."""

    panel: str
    """What it is called: a data set, or a method on one."""
    rows: Sequence[Row]
    metric: str
    """What the study wishes to see, or what this kind of figure shows; empty where the runs themselves tell."""
    sweep: str
    """The setting whose values are drawn."""
    wish: FigureWish
    wishes: Wishes
    lines: Sequence[Line]
    """Every run of the study, also those that chose and those that audits kept."""


class Drawn(NamedTuple):
    """A panel that has been drawn."""

    figure: Figure
    seen: str
    """What it shows, in a sentence made from the numbers."""
