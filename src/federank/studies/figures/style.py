"""How every figure looks: colours that all can distinguish, markers and dashes that survive a black-and-white print.

Colours are those of Okabe and Ito. Each has a twin for dark pages: a page that shows a figure inline swaps them by
name (`themed`), so that lines and letters stay legible on both. A figure is small (it fits a telephone), its letters
are drawn as outlines (it needs no font), and the same figure gives the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from federank.data.statistics import legible
from federank.studies.report_spec import FigureSpec, ReportSpec
from federank.studies.results import RunRecord
from federank.studies.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH, HEIGHT = 4.8, 3.5
INK, FAINT, GRID, PAPER = "#1b1f24", "#5c636b", "#d9dde2", "#ffffff"
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
RAMP = ("#7db8e4", "#4d97cc", "#2b76b0", "#17568c", "#0b3762")
"""From little to much, light to dark."""

THEME = {
    "ink": (INK, "#e8eaed"),
    "faint": (FAINT, "#a3abb5"),
    "grid": (GRID, "#3a4048"),
    "paper": (PAPER, "#171a1f"),
    "blue": (BLUE, "#4aa8e0"),
    "vermillion": (VERMILLION, "#ff8b3d"),
    "green": (GREEN, "#2fc79a"),
    "purple": (PURPLE, "#e39cc4"),
    "orange": (ORANGE, "#f2b632"),
    "sky": (SKY, "#8fd0f7"),
    **{
        f"ramp{step}": (light, dark)
        for step, (light, dark) in enumerate(
            zip(RAMP, ("#3f6f99", "#5a90c0", "#7db2df", "#a8d2f4", "#dcefff"), strict=True)
        )
    },
}
"""Every colour of a figure by name: on a light page, on a dark one."""

_LOOKS = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (ORANGE, "v", (0, (5, 1, 1, 1, 1, 1))),
    (SKY, "P", (0, (1, 1))),
)
MOST_SERIES = len(_LOOKS)
_LETTERS = 75
"""As many letters of a legend fit side by side."""
_RAMP_DASHES = ("-", (0, (6, 1.5)), "-.", (0, (2, 1)), "-")
_RAMP_MARKERS = ("o", "s", "^", "D", "v")
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "federank",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "text.parse_math": False,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 5,
}


def drawing() -> Any:
    """The common style, for as long as a figure is drawn: `with drawing(): ...`."""
    return mpl.rc_context(_SETTINGS)


def new_panel(title: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """One set of axes with a quiet grid."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor=PAPER)
    axes = figure.subplots()
    axes.set_title(legible(title), fontsize=10, loc="left")
    axes.grid()
    return figure, axes


def look(position: int) -> dict[str, Any]:
    """Colour, marker and dashes of a figure's n-th series."""
    color, marker, linestyle = _LOOKS[position % MOST_SERIES]
    return {"color": color, "marker": marker, "linestyle": linestyle, "markeredgecolor": color}


def ramp(position: int, count: int) -> dict[str, Any]:
    """Colour, marker and dashes of the n-th of a few curves that go from little to much."""
    step = round(position * (len(RAMP) - 1) / max(1, count - 1))
    return {"color": RAMP[step], "linestyle": _RAMP_DASHES[step], "marker": _RAMP_MARKERS[step]}


def legend_of(figure: Figure, entries: Sequence[tuple[Any, str]] = ()) -> None:
    """A legend under the axes, in as many columns as fit: what is drawn, and its name; by default all that is."""
    entries = entries or [one for axes in figure.axes for one in zip(*axes.get_legend_handles_labels(), strict=True)]
    labels = [legible(label) for _, label in entries]
    widest = max(map(len, labels), default=0) + 9  # letters, with space for the line before them
    if entries:
        columns = max(1, min(3, len(entries), _LETTERS // widest))
        figure.set_figheight(figure.get_figheight() + 0.18 * (-(-len(entries) // columns) - 1))
        figure.legend(
            [handle for handle, _ in entries],
            labels,
            loc="outside lower center",
            ncols=columns,
            fontsize=8.5,
            handlelength=2.8,
        )


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Where labels stand that need a gap between them: at their places, or moved beyond their neighbours."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda position: places[position])
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + gap)
    return moved


def label_beside(axes: Axes, values: Sequence[float], names: Sequence[str]) -> None:
    """Write names at the right end of horizontal lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.062 * (high - low)
    heights = apart(values, gap)
    if max(heights, default=high) > high:  # what was pushed beyond the top comes down again, and pushes those below it
        heights = [high - below for below in apart([high - min(height, high) for height in heights], gap)]
    for name, height in zip(names, heights, strict=True):
        axes.annotate(
            legible(name),
            (1.0, height),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=FAINT,
            annotation_clip=False,
            parse_math=False,
        )


def as_svg(figure: Figure) -> str:
    """The figure as an SVG document, the same text every time."""
    sentences = io.StringIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no reason to trouble anyone.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(sentences, format="svg", metadata={"Date": None, "Creator": None}, facecolor=PAPER)
    return sentences.getvalue()


def themed(svg: str, prefix: str) -> str:
    """An SVG document as a part of a page: colours by name, ids of its own, no preamble, no fixed size."""
    inner = svg[svg.index("<svg") :]
    for name, (light, _) in THEME.items():
        inner = inner.replace(light, f"var(--{name})")
    inner = re.sub(r'fill="(var\([^"]+)"', r'style="fill: \1"', inner)  # a pattern's ground is an attribute
    inner = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", inner)
    inner = re.sub(r"<metadata>.*?</metadata>", "", inner, flags=re.DOTALL)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', inner).groups()  # type: ignore[union-attr]
    return re.sub(r"<svg [^>]*>", f'<svg viewBox="0 0 {width} {height}" role="img" aria-hidden="true">', inner, count=1)


class PanelData(NamedTuple):
    """One panel's material."""

    title: str
    """A data set, or a method on one."""
    rows: Sequence[Row]
    metric: str
    """What the study names, or what this kind of figure shows; empty where the runs say it."""
    sweep: str
    """The setting whose values are drawn."""
    spec: FigureSpec
    specs: ReportSpec
    records: Sequence[RunRecord]
    """Every run of the study, also those that chose and those that audits kept."""


Drawing = tuple[Figure, str]
"""A panel that has been drawn, and what it shows, in a sentence made from the numbers."""
