"""The specification of a report: the tables, figures, published values and notes of its TOML.

    [[table]]    title, metrics; groups (which rows, in which order), data, against (the row that others are tested
                 against, and with `loss:` and `share:` metrics compared with at the same swept values), goal,
                 twins (for `md:` and `stdr:` metrics, each federated group's unfederated one)
                 (bounds that the means of a row must not pass), best (only the best row of each sweep by this metric,
                 which is choosing on the test part)
    [[figure]]   kind; title, groups, baselines, data, metric, sweep
    [[paper]]    data, group, metrics = { "precision@10" = 0.118 }, source; settings = { pi = 0.1 }: at one point;
                 formulas = ["server_operations"]: where the paper has a formula, worked out for each run
    [[note]]     text; data, group, metric: why ours differs from the paper's there (a missing one: everywhere);
                 shown_by = { group, data, sweep, test, paper }: what shows that it is so (run_tables.py)

A study without one gets a table of the usual metrics, and every figure that its runs can fill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from federank.errors import BadFile
from federank.studies.documents import as_tables, read_document
from federank.studies.metric_words import COMPLEXITY, FORMULA, parts
from federank.studies.rows import Row

USUAL = ("precision@10", "recall@10", "ndcg@10", "item_coverage@10", "gini_diversity@10")
OF_RATINGS = ("mae", "rmse")


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """A table of a study."""

    title: str = "Results"
    caption: str = ""
    metrics: Sequence[str] = ()
    groups: Sequence[str] = ()
    """Which rows, in which order; all of them if none is named."""
    data: Sequence[str] = ()
    best: str | None = None
    """Only the best row of each sweep, by this metric."""
    against: str | None = None
    """The row that others are tested against."""
    goal: Mapping[str, float] = field(default_factory=dict)
    """Bounds that the means of a row must not pass."""
    twins: Mapping[str, str] = field(default_factory=dict)
    """For federated groups their unfederated ones, which `md:` and `stdr:` metrics compare them with."""


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """A figure of a study; what it leaves open follows from the kind (figures/draw.py)."""

    kind: str | None = None
    title: str | None = None
    caption: str | None = None
    groups: Sequence[str] = ()
    baselines: Sequence[str] | None = None
    """Which rows are drawn beside what was swept."""
    data: Sequence[str] = ()
    metric: str | None = None
    sweep: str | None = None
    panel: str | None = None
    """The title of its one panel."""
    panels: Sequence[str] = ()
    """Beginnings of labels: a panel for each."""
    families: Sequence[str] = ()
    """Beginnings of groups that have a colour in common."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a paper has for a row."""

    data: str | Sequence[str] | None = None
    group: str | Sequence[str] | None = None
    """Which rows are held against it: where a method is there in two forms, both may be."""
    source: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """At which point of a sweep."""
    formulas: Sequence[str] = ()
    """Metrics for which the paper has a formula and no number: each run has worked out what it says for it."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """Why ours differs from the paper's somewhere; what is not said holds everywhere."""

    text: str = ""
    data: str | Sequence[str] = ()
    group: str | Sequence[str] = ()
    metric: str | Sequence[str] = ()
    shown_by: Mapping[str, str] = field(default_factory=dict)
    """What shows it: a row (group, data), a sweep, a test or the paper itself. A note without it explains nothing."""


@dataclass(frozen=True, kw_only=True)
class ReportSpec:
    """The part of a study that is about its report."""

    title: str
    description: str = ""
    data: Sequence[str] = ()
    """The data sets that the study is about, whether they were there or not."""
    tables: Sequence[TableSpec] = ()
    figures: Sequence[FigureSpec] = ()
    papers: Sequence[Published] = ()
    notes: Sequence[Note] = ()


_RECORDS: dict[str, type[Any]] = {"paper": Published, "table": TableSpec, "figure": FigureSpec, "note": Note}
KEYS = {kind: tuple(one.name for one in fields(record)) for kind, record in _RECORDS.items()}
"""What each table of the report's may say."""
SHOWN_BY = ("group", "data", "sweep", "test", "paper")
"""What a note may name as its evidence."""

NEEDS = {"cost-against-precision": "communication", "item-updates": "item_updates", "popularity": "popularity"}
"""Which extra each kind of figure draws (task.py); all other kinds are drawn from metrics and curves."""
_NEEDED_BY_METRICS = {
    **dict.fromkeys(("cce", "rounds_per_epoch", "normalised_freshness"), "communication"),
    **dict.fromkeys(COMPLEXITY, "complexity"),
}
EXTRAS = {*NEEDS.values(), *_NEEDED_BY_METRICS.values()}
"""All extras that there are."""


def wanted_extras(specs: ReportSpec, group: str | None = None) -> set[str]:
    """What these figures and tables will ask of a group's runs beyond their metrics; without a group, of any run's.

    Counting the updates of each item takes a third of the time of the training it is about: what no figure shows of
    a group is not counted.
    """
    wanted = {NEEDS[figure.kind] for figure in specs.figures if figure.kind in NEEDS and _shows(figure, group)}
    shown = [metric.rpartition(":")[2] for table in specs.tables if _shows(table, group) for metric in table.metrics]
    return wanted | {_NEEDED_BY_METRICS[metric] for metric in shown if metric in _NEEDED_BY_METRICS}


def _shows(spec: FigureSpec | TableSpec, group: str | None) -> bool:
    """Whether a figure or table is about this group, or about the best point of its sweep."""
    named = [*spec.groups, *((spec.baselines or ()) if isinstance(spec, FigureSpec) else ())]
    return (
        group is None or not spec.groups or any(name == group or name.startswith(f"{group}, best ") for name in named)
    )


def asks_for_traffic(specs: ReportSpec) -> bool:
    """Whether a table or figure compares what clients sent: then it is counted for every seed, else for the first."""
    metrics = [metric for table in specs.tables for metric in table.metrics]
    return any(metric.startswith("lifetime_") for metric in metrics) or any(
        figure.kind == "lifetime" or str(figure.metric).startswith("lifetime_") for figure in specs.figures
    )


def read_report_spec(folder: Path) -> ReportSpec:
    """The report specification of the study in a folder of results."""
    if not (folder / "study.toml").is_file():
        raise BadFile(
            f"{folder} has no study.toml, so it is not a study's results; name the folder that `federank study run` "
            "wrote with --out."
        )
    return report_spec_of(read_document(folder / "study.toml"), folder.name)


def report_spec_of(study: Mapping[str, Any], name: str) -> ReportSpec:
    """The report specification in a study's document; unknown keys are refused in spec.py."""
    return ReportSpec(
        title=str(study.get("title") or name),
        description=str(study.get("description") or ""),
        data=[
            str(one.get("name", one.get("source"))) for one in as_tables(study.get("data", [])) if not one.get("skip")
        ],
        tables=_read(TableSpec, study.get("table", ())),
        figures=_read(FigureSpec, study.get("figure", ())),
        papers=_read(Published, study.get("paper", ())),
        notes=_read(Note, study.get("note", ())),
    )


Record = TypeVar("Record")


def _read(record: type[Record], content: Any) -> list[Record]:
    known = {one.name for one in fields(record)}  # type: ignore[arg-type]
    entries = [content] if isinstance(content, Mapping) else content
    return [record(**{name: value for name, value in entry.items() if name in known}) for entry in entries]


def tables_of(specs: ReportSpec, rows: Sequence[Row]) -> list[TableSpec]:
    """The study's tables, or one of the usual metrics that its runs have."""
    if specs.tables or not rows:
        return list(specs.tables)
    metrics = [metric for metric in (*USUAL, *OF_RATINGS) if any(len(row.values(metric)) for row in rows)]
    if not metrics:
        metrics = sorted({name for row in rows for record in row.records for name in record.metrics if "/" not in name})
    return [TableSpec(metrics=metrics)]


def published(specs: ReportSpec, row: Row, rows: Sequence[Row], metric: str) -> float | None:
    """What the paper has for a row: `rows` are those of its table, which say whether its group is one row there."""
    alone = sum(other.data == row.data and other.group == row.group for other in rows) == 1
    for paper in specs.papers:
        if not _among(row.data, paper.data) or not _among(row.group, paper.group):
            continue
        fits = all(row.at(name) == value for name, value in paper.settings.items()) if paper.settings else alone
        if fits and metric in paper.metrics:
            return float(paper.metrics[metric])
        if metric in paper.formulas and (worked_out := row.mean(f"{FORMULA}{metric}")) is not None:
            return worked_out
    return None


def by_formula(specs: ReportSpec, metric: str) -> bool:
    """Whether what a paper has for this metric is a formula."""
    return any(metric in paper.formulas for paper in specs.papers)


def _among(name: str, named: str | Sequence[str] | None) -> bool:
    return named is None or name in _listed(named)


def note_on(specs: ReportSpec, row: Row, metric: str) -> Note | None:
    """The study's note on a difference in this position, if it has one."""
    positions = ((row.data,), (row.group, row.label), (metric, parts(metric)[0]))
    for note in specs.notes:
        said = (_listed(named) for named in (note.data, note.group, note.metric))
        if all(not names or set(names).intersection(position) for names, position in zip(said, positions, strict=True)):
            return note
    return None


def _listed(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
