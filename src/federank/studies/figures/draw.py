"""Drawing the figures of a report: a panel per data set (or per method, where a kind of figure needs one).

`draw_figures` draws the figures of the study's report, or, if it names none, every kind its runs can fill. A
picture is a title, a caption that says what to look at, and its panels as SVG; under each panel stands what it shows,
in a sentence made from the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from federank.checks import unknown_name
from federank.errors import SettingError
from federank.studies.figures.curves import draw_convergence, draw_lifetime, draw_poisoning
from federank.studies.figures.privacy import draw_full_price, draw_guarantee, draw_price
from federank.studies.figures.style import MOST_SERIES, Drawing, PanelData, as_svg, drawing, legend_of
from federank.studies.figures.sweep import (
    draw_cost,
    draw_coverage,
    draw_disparity,
    draw_item_updates,
    draw_popularity,
    draw_sweep,
)
from federank.studies.report_spec import FigureSpec, ReportSpec
from federank.studies.results import RunRecord
from federank.studies.rows import Row, best_of_sweeps


class Kind(NamedTuple):
    """A kind of figure."""

    draw: Callable[[PanelData], Drawing | None]
    """Draws one panel; None where the runs have nothing for it."""
    title: str
    caption: str
    """What to look at."""
    metric: str = ""
    """What it shows unless the study names another; empty where the runs say it."""
    sweep: str = "pi"
    """The setting whose values it draws."""
    panels: Literal["data", "groups", "handfuls", "all"] = "data"
    """A panel for each data set, for each method on one, for as many rows as can be distinguished, or one for all."""
    shows_best: bool = False
    """Whether the best point of a sweep is drawn though the sweep has the same point already."""
    keeps_others: bool = False
    """Whether rows outside of the wished groups stay, as level lines."""


KINDS = {
    "f1-against-pi": Kind(
        draw_sweep,
        title="Accuracy against the share of likes that may leave",
        caption="Further right, clients send more of what their users like. A curve that is flat after the first "
        "step says that little has to be shared; level lines are methods that were not swept.",
        metric="f1@10",
        keeps_others=True,
    ),
    "precision-against-coverage": Kind(
        draw_coverage,
        title="Accuracy against variety",
        caption="Up is more accurate, right is more variety. Follow the arrows from the smallest pi to the largest "
        "(the hollow point).",
        metric="precision@10",
        keeps_others=True,
    ),
    "cost-against-precision": Kind(
        draw_cost,
        title="Accuracy against what is sent",
        caption="Up is more accurate, right is cheaper. Points on the broad line are not beaten in both by any other.",
        metric="precision@10",
    ),
    "lifetime": Kind(
        draw_lifetime,
        title="Accuracy against what a client sends and receives over its lifetime",
        caption="Up is more accurate, left is cheaper; each step along the bottom is ten times as much. Lines join the "
        "numbers of messages of one method, black marks are the best of methods with one such number, level lines see "
        "every history.",
        metric="precision@10",
    ),
    "item-updates": Kind(
        draw_item_updates,
        title="Which items are updated",
        caption="A level line means that items are updated alike; a steep one that the messages carry the popularity "
        "of items. With pi = 0 only comparisons are sent.",
        panels="groups",
    ),
    "popularity": Kind(
        draw_popularity,
        title="Recommended items against popular items",
        caption="Coloured lines above the dashed one, at the left: lists favour the top more than users do.",
        panels="groups",
    ),
    "bias-disparity": Kind(
        draw_disparity,
        title="Which categories the lists favour",
        caption="Bars to the right: more of this category than in the users' histories. To the left: less.",
        metric="bias_disparity@10",
        panels="handfuls",
        shows_best=True,
    ),
    "convergence": Kind(
        draw_convergence,
        title="How learning goes on",
        caption="Where a curve is level, more epochs bring nothing; where it turns, the model has begun to learn by "
        "heart.",
        shows_best=True,
    ),
    "rho": Kind(
        draw_sweep,
        title="What synthetic ratings cost",
        caption="Further right, more unrated items are sent to hide the rated ones. Lower is better; crosses are the "
        "paper's.",
        metric="rmse",
        sweep="rho",
        keeps_others=True,
    ),
    "poisoning": Kind(
        draw_poisoning,
        title="What malicious clients reach",
        caption="Hollow: the federation as published. Filled: with the defences that a server has by default, or "
        "that the name says. Attacks that reach no one are left out.",
    ),
    "price": Kind(
        draw_price,
        title="What privacy costs",
        caption="Right is more accurate, down is more private. In the pale band the best attacker has learnt next to "
        "nothing of what users held back; marks on the broad line are not beaten in both by any other, and "
        "larger ones have a larger pi.",
        metric="precision@10",
    ),
    "gain": Kind(
        draw_full_price,
        title="Accuracy against what the best attacker gains",
        caption="Right is more accurate, down is more private. In the pale band the best attacker has learnt next to "
        "nothing about users beyond what is popular; marks on the broad line are not beaten in both by any other.",
        metric="precision@10",
    ),
    "guarantee": Kind(
        draw_guarantee,
        title="Accuracy against epsilon, for federations of different size",
        caption="Further left, uploads leak less. The noise is the same for any number of users, so the larger a "
        "federation, the less it costs. Hollow marks do worse than what is popular.",
        metric="precision@10",
        sweep="epsilon",
        panels="all",
        keeps_others=True,
    ),
}
"""Every kind of figure that a study may have."""


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


def draw_figures(specs: ReportSpec, rows: Sequence[Row], records: Sequence[RunRecord]) -> Iterator[Picture]:
    """The figures of the report (every kind where none is named); those without anything to show are left out."""
    everything = [] if specs.tables else [FigureSpec(kind=name) for name in KINDS]
    for spec in specs.figures or everything:
        if spec.kind is None or spec.kind not in KINDS:
            raise SettingError(unknown_name("kind of figure", spec.kind, KINDS))
        kind = KINDS[spec.kind]
        panels = tuple(_panels(kind, spec, specs, rows, records))
        if panels:
            yield Picture(spec.kind, spec.title or kind.title, spec.caption or kind.caption, panels)


def _panels(
    kind: Kind, spec: FigureSpec, specs: ReportSpec, rows: Sequence[Row], records: Sequence[RunRecord]
) -> Iterator[Panel]:
    metric, sweep = spec.metric or kind.metric, spec.sweep or kind.sweep
    for name, held in _parts(kind, spec, rows, records):
        with drawing():
            drawn = kind.draw(PanelData(name, held, metric, sweep, spec, specs, records))
            if drawn is not None:
                figure, seen = drawn
                if not figure.legends:
                    legend_of(figure)
                yield Panel(name, as_svg(figure), seen)


def _parts(
    kind: Kind, spec: FigureSpec, rows: Sequence[Row], records: Sequence[RunRecord]
) -> Iterator[tuple[str, list[Row]]]:
    """The panels of a figure: data sets, and within them groups or the study's own `panels` (beginnings of labels)."""
    if kind.panels == "all":
        yield spec.panel or "all data", [row for row in rows if not spec.data or row.data in spec.data]
        return
    for data in spec.data or list(dict.fromkeys(record.data for record in records)):
        held = [row for row in rows if row.data == data and (kind.shows_best or not row.is_best)]
        if spec.groups and not kind.keeps_others:
            held = [row for group in spec.groups for row in held if group in (row.group, row.family)]
        if spec.panels:
            for start in spec.panels:
                yield f"{start}, {data}", [row for row in held if row.label.startswith(start)]
        elif kind.panels == "groups":
            for group in dict.fromkeys(row.group for row in held):
                yield f"{group}, {data}", [row for row in held if row.group == group]
        elif kind.panels == "handfuls":
            yield from _handfuls(data, best_of_sweeps(held, lambda row: row.mean("precision@10") or 0.0))
        else:
            yield data, held


def _handfuls(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """As many rows a panel as can be distinguished."""
    count = -(-len(rows) // MOST_SERIES)
    size = -(-len(rows) // count) if count else 1
    for number, start in enumerate(range(0, len(rows), size), start=1):
        yield name if count == 1 else f"{name}, {number} of {count}", list(rows[start : start + size])
