"""The figures of a report, by kind: one file per picture, a panel per data set (or per method, where it needs one).

`draw_figures` draws what the study wishes for, or, if it wishes for nothing at all, every kind its runs can fill. A
picture is a title, a caption that says what to look at, and its panels as SVG; under each panel stands what it shows,
in a sentence made from the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from federank.checks import no_such
from federank.errors import SettingError
from federank.studies.results.rows import best_of_sweeps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from federank.studies.plan.wishes import Wishes
    from federank.studies.results.rows import Line, Row


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


KINDS = {
    "f1-against-pi": (
        "Accuracy against the share of likes that may leave",
        "Further right, devices send more of what their owners like. A curve that is flat after the first step says "
        "that little has to be shared; level lines are methods that were not swept.",
    ),
    "precision-against-coverage": (
        "Accuracy against variety",
        "Up is more accurate, right is more variety. Follow the arrows from the smallest pi to the largest (the hollow "
        "point).",
    ),
    "cost-against-precision": (
        "Accuracy against what is sent",
        "Up is more accurate, right is cheaper. Points on the broad line are not beaten in both by any other.",
    ),
    "item-updates": (
        "Which items are updated",
        "A level line means that items are updated alike; a steep one that the messages carry the popularity of items. "
        "With pi = 0 only comparisons are sent.",
    ),
    "popularity": (
        "Recommended items against popular items",
        "Coloured lines above the dashed one, at the left: lists favour the top more than people do.",
    ),
    "bias-disparity": (
        "Which categories the lists favour",
        "Bars to the right: more of this category than in people's histories. To the left: less.",
    ),
    "convergence": (
        "How learning goes on",
        "Where a curve is level, more epochs bring nothing; where it turns, the model has begun to learn by heart.",
    ),
    "rho": (
        "What made-up ratings cost",
        "Further right, more unrated items are sent to hide the rated ones. Lower is better; crosses are the paper's.",
    ),
    "privacy": (
        "What messages give away",
        "Short bars are good. The first is what was sent as liked; the others are about what never left. The gap "
        "between those two is what the messages betray beyond what is popular anyway.",
    ),
    "price": (
        "What privacy costs",
        "Right is more accurate, down is more private. In the pale band the best attacker has learnt next to nothing "
        "of what people held back; marks on the broad line are not beaten in both by any other, and larger ones have a "
        "larger pi.",
    ),
}
"""The kinds of figures: title, and what to look at."""


def draw_figures(wishes: Wishes, rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[Picture]:
    """The wished figures (without any wish, every kind); those without anything to show are left out."""
    for wish in wishes.figures or ([] if wishes.tables else [{"kind": kind} for kind in KINDS]):
        kind = wish.get("kind")
        if kind not in KINDS:
            raise SettingError(no_such("kind of figure", kind, KINDS))
        panels = tuple(_panels(wish, wishes, rows, lines))
        if panels:
            title, caption = KINDS[kind]
            yield Picture(kind, wish.get("title", title), wish.get("caption", caption), panels)


def _panels(wish: Mapping[str, Any], wishes: Wishes, rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[Panel]:
    from federank.studies.figures.style import as_svg, drawing

    for name, shown in _parts(wish, rows, lines):
        with drawing():
            drawn = _draw(name, shown, wish, wishes, lines)
            if drawn is not None:
                yield Panel(name, as_svg(drawn[0]), drawn[1])


def _parts(wish: Mapping[str, Any], rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[tuple[str, list[Row]]]:
    """The panels of a figure: data sets, and within them groups or the study's own `panels` (beginnings of labels)."""
    kind, groups = wish["kind"], wish.get("groups")
    sets = list(dict.fromkeys(line["data"] for line in lines))
    for data in wish.get("data") or sets:
        held = [row for row in rows if row.data == data]
        if kind not in ("bias-disparity", "convergence"):
            held = [row for row in held if not row.is_best]  # the sweep has the same point already
        if groups and kind not in ("f1-against-pi", "precision-against-coverage", "rho"):
            held = [row for group in groups for row in held if group in (row.group, row.family)]
        if wish.get("panels"):
            for start in wish["panels"]:
                yield f"{start}, {data}", [row for row in held if row.label.startswith(start)]
        elif kind in ("item-updates", "popularity"):
            for group in dict.fromkeys(row.group for row in held):
                yield f"{group}, {data}", [row for row in held if row.group == group]
        elif kind == "bias-disparity":
            yield from _handfuls(data, best_of_sweeps(held, lambda row: row.mean("precision@10") or 0.0))
        else:
            yield data, held


def _handfuls(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """As many rows a panel as can be told apart."""
    from federank.studies.figures.style import MOST_SERIES

    count = -(-len(rows) // MOST_SERIES)
    size = -(-len(rows) // count) if count else 1
    for number, start in enumerate(range(0, len(rows), size), start=1):
        yield name if count == 1 else f"{name}, {number} of {count}", list(rows[start : start + size])


def _draw(
    name: str, rows: Sequence[Row], wish: Mapping[str, Any], wishes: Wishes, lines: Sequence[Line]
) -> tuple[Figure, str] | None:
    from federank.studies.figures.convergence import draw_convergence
    from federank.studies.figures.cost import draw_cost
    from federank.studies.figures.coverage import draw_coverage
    from federank.studies.figures.disparity import draw_disparity
    from federank.studies.figures.price import draw_price
    from federank.studies.figures.privacy import draw_privacy
    from federank.studies.figures.shares import draw_item_updates, draw_popularity
    from federank.studies.figures.sweep import draw_sweep

    match wish["kind"]:
        case "f1-against-pi":
            return draw_sweep(name, rows, wish, wishes)
        case "rho":
            return draw_sweep(name, rows, {"sweep": "rho", "metric": "rmse"} | dict(wish), wishes)
        case "precision-against-coverage":
            return draw_coverage(name, rows, wish, wishes)
        case "cost-against-precision":
            return draw_cost(name, rows, wish, wishes)
        case "item-updates":
            return draw_item_updates(name, rows, wish, wishes)
        case "popularity":
            return draw_popularity(name, rows, wish, wishes)
        case "bias-disparity":
            return draw_disparity(name, rows, wish, wishes)
        case "convergence":
            return draw_convergence(name, rows, wish, wishes, lines)
        case "price":
            return draw_price(name, rows, wish, wishes)
        case _:
            return draw_privacy(name, lines)
