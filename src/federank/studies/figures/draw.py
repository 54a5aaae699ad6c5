"""Drawing the figures of a report: a panel per data set (or per method, where a kind of figure needs one).

`draw_figures` draws what the study wishes for, or, if it wishes for nothing at all, every kind its runs can fill. A
picture is a title, a caption that says what to look at, and its panels as SVG; under each panel stands what it shows,
in a sentence made from the numbers. The kinds are in kinds.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from federank.checks import no_such
from federank.errors import SettingError
from federank.studies.figures.kinds import KINDS, Kind
from federank.studies.figures.shown import Shown
from federank.studies.figures.style import MOST_SERIES, as_svg, drawing
from federank.studies.plan.wishes import FigureWish, Wishes
from federank.studies.results.line import Line
from federank.studies.results.rows import Row, best_of_sweeps


class Panel(NamedTuple):
    """One drawing of a picture."""

    name: str
    svg: str
    seen: str
    """What it shows, in a sentence."""


class Picture(NamedTuple):
    """A figure of the report."""

    kind: str
    title: str
    caption: str
    panels: tuple[Panel, ...]


def draw_figures(wishes: Wishes, rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[Picture]:
    """The wished figures (without any wish, every kind); those without anything to show are left out."""
    everything = [] if wishes.tables else [FigureWish(kind=name) for name in KINDS]
    for wish in wishes.figures or everything:
        if wish.kind is None or wish.kind not in KINDS:
            raise SettingError(no_such("kind of figure", wish.kind, KINDS))
        kind = KINDS[wish.kind]
        panels = tuple(_panels(kind, wish, wishes, rows, lines))
        if panels:
            yield Picture(wish.kind, wish.title or kind.title, wish.caption or kind.caption, panels)


def _panels(
    kind: Kind, wish: FigureWish, wishes: Wishes, rows: Sequence[Row], lines: Sequence[Line]
) -> Iterator[Panel]:
    metric, sweep = wish.metric or kind.metric, wish.sweep or kind.sweep
    for name, held in _parts(kind, wish, rows, lines):
        with drawing():
            drawn = kind.draw(Shown(name, held, metric, sweep, wish, wishes, lines))
            if drawn is not None:
                yield Panel(name, as_svg(drawn.figure), drawn.seen)


def _parts(kind: Kind, wish: FigureWish, rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[tuple[str, list[Row]]]:
    """The panels of a figure: data sets, and within them groups or the study's own `panels` (beginnings of labels)."""
    if kind.panels == "all":
        yield wish.panel or "all data", [row for row in rows if not wish.data or row.data in wish.data]
        return
    for data in wish.data or list(dict.fromkeys(line.data for line in lines)):
        held = [row for row in rows if row.data == data and (kind.shows_best or not row.is_best)]
        if wish.groups and not kind.keeps_others:
            held = [row for group in wish.groups for row in held if group in (row.group, row.family)]
        if wish.panels:
            for start in wish.panels:
                yield f"{start}, {data}", [row for row in held if row.label.startswith(start)]
        elif kind.panels == "groups":
            for group in dict.fromkeys(row.group for row in held):
                yield f"{group}, {data}", [row for row in held if row.group == group]
        elif kind.panels == "handfuls":
            yield from _handfuls(data, best_of_sweeps(held, lambda row: row.mean("precision@10") or 0.0))
        else:
            yield data, held


def _handfuls(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """As many rows a panel as can be told apart."""
    count = -(-len(rows) // MOST_SERIES)
    size = -(-len(rows) // count) if count else 1
    for number, start in enumerate(range(0, len(rows), size), start=1):
        yield name if count == 1 else f"{name}, {number} of {count}", list(rows[start : start + size])
