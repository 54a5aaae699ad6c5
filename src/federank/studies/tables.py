"""Tables: what a report prints, before anyone has decided whether as HTML, Markdown, LaTeX or CSV.

A cell is a text with what a form may make of it: its number, the deviation over seeds, whether it is the best of its
column, whether it deserves a second look. Columns come in bundles: the metric's name stands over ours, the paper's and
the difference.

    results_table   one data set: a row per method, ours | paper | difference in percent, marks of significance; where
                    audits are asked for, a row per method and server, and whether a goal is met (rows.py)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from federank.evaluation.significance import holm, paired, paired_tests
from federank.studies.metric_words import LOSS, has_chance, score, words_of, written, written_once
from federank.studies.report_spec import ReportSpec, TableSpec, by_formula, published
from federank.studies.rows import (
    AUDIT,
    Row,
    asks_for,
    best_attack,
    best_of_sweeps,
    compared,
    meets,
    seen_rows,
)

Marks = dict[tuple[int, str], str]


def significance_marks(
    rows: Sequence[Row],
    metrics: Sequence[str],
    users_of: Callable[[str], Any],
    against: str | None = None,
    *,
    matched: bool = False,
) -> tuple[Marks, str | None]:
    """A mark for each (row's position, metric) that differs from its reference, and what that is called, if any is."""
    users = [_per_user(row, metrics, users_of) for row in rows]
    tested = [metric for metric in metrics if sum(metric in table.columns for table in users) > 1]
    if not tested:
        return {}, None
    references = _references(rows, users, tested[0], against, matched)
    positions, p_values = [], []
    for position, (table, reference) in enumerate(zip(users, references, strict=True)):
        if reference is None or position == reference:
            continue
        for metric in tested:
            if metric in table.columns and metric in users[reference].columns:
                both = paired(table, users[reference], metric)
                differences = (both["first"] - both["second"]).to_numpy()
                if len(differences) > 1:
                    positions.append((position, metric))
                    p_values.append(paired_tests(differences)[0])
    corrected = holm(p_values)
    marks = {key: "**" if p < 0.01 else "*" for key, p in zip(positions, corrected, strict=True) if p < 0.05}
    if not positions:
        return marks, None
    return marks, f"{against} at the same point" if matched else rows[references[0] or 0].label


def _per_user(row: Row, metrics: Sequence[str], users_of: Callable[[str], Any]) -> pl.DataFrame:
    """Each user's mean over the row's seeds; no column for what users have no values of."""
    tables = [table for table in (users_of(record.id) for record in row.records) if table is not None]
    if not tables:
        return pl.DataFrame({"user": []})
    held = [metric for metric in metrics if all(metric in table.columns for table in tables)]
    narrow: pl.DataFrame = pl.concat([table.select("user", *held) for table in tables])
    return narrow.group_by("user", maintain_order=True).agg(pl.col(held).mean())


def _references(
    rows: Sequence[Row], users: Sequence[pl.DataFrame], metric: str, against: str | None, matched: bool
) -> list[int | None]:
    """For each row the position of the row that it is tested against: the best one, or the best of those named.

    With `matched` it is the named group's row at the same swept values.
    """
    if matched:
        at = {(row.data, row.swept): position for position, row in enumerate(rows) if row.group == against}
        return [at.get((row.data, row.swept)) for row in rows]
    held = [position for position, table in enumerate(users) if metric in table.columns]
    named = [position for position in held if against in (rows[position].group, rows[position].label)]
    best = max(named or held, key=lambda position: score(metric, rows[position].mean(metric) or 0.0))
    return [best] * len(rows)


_ATTACK = f"{AUDIT}attack_held_back"
RANDOM = "random"
"""The method whose lists are drawn at random."""
NOTABLE = 10.0
"""A difference from the paper of more percent than this is listed and has to be explained."""


class Cell(NamedTuple):
    """What stands in one place of a table."""

    text: str
    value: float | None = None
    spread: float | None = None
    """The standard deviation over runs (seeds and folds)."""
    mark: str = ""
    """Stars of significance."""
    best: bool = False
    notable: bool = False


class Column(NamedTuple):
    """The head of a column, under the head of its bundle."""

    bundle: str
    name: str
    number: bool = True


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, ready for any form."""

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def slug(self) -> str:
        """The title as the name of a file."""
        return slug(self.title)


class Difference(NamedTuple):
    """Ours beside the paper's, in one place."""

    row: Row
    metric: str
    ours: float
    paper: float
    percent: float
    formula: bool = False
    """Whether the paper's is what a formula says."""


def slug(title: str) -> str:
    """A title as the name of a file: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("+", " plus ")).strip("-") or "table"


def plain_table(title: str, caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of texts; a column whose name ends in '>' is set to the right, 'Order|popularity' stands under Order."""
    heads = []
    for name in columns:
        bundle, _, own = name.removesuffix(">").rpartition("|")
        heads.append(Column(bundle, own, name.endswith(">")))
    return Table(title=title, caption=caption, columns=tuple(heads), rows=tuple(tuple(map(Cell, row)) for row in rows))


def rows_of_table(spec: TableSpec, rows: Sequence[Row], data: str) -> list[Row]:
    """The rows that a table shows of one data set, in the table's order."""
    groups = spec.groups or list(dict.fromkeys(row.group for row in rows))
    chosen = [row for group in groups for row in rows if row.group == group and row.data == data]
    metric = spec.best
    if metric is None:
        return chosen
    return best_of_sweeps(chosen, lambda row: score(metric, row.mean(metric) or 0.0))


def chosen_on_test(spec: TableSpec, shown: Sequence[Row]) -> bool:
    """Whether a table shows the best point of a sweep that nothing but the test part has chosen."""
    return spec.best is not None and any(row.swept and not row.is_best for row in shown)


def results_table(
    spec: TableSpec, specs: ReportSpec, rows: Sequence[Row], data: str, users_of: Callable[[str], Any]
) -> tuple[Table, list[Difference]]:
    """One data set's table, and every difference from the paper in it."""
    metrics, against = list(spec.metrics), spec.against
    rows = compared(rows, metrics, against, spec.twins)
    watched, goal = asks_for(metrics, AUDIT), spec.goal
    shown = seen_rows(rows) if watched else list(enumerate(rows))
    if watched:  # a figure of noise, say, where no row has noise
        there = {metric for metric in metrics if any(len(row.values(metric)) for _, row in shown)}
        metrics = [metric for metric in metrics if metric == _ATTACK or metric in there]
    places = ((position, metric) for position in range(len(rows)) for metric in metrics)
    theirs = {(position, metric): published(specs, rows[position], rows, metric) for position, metric in places}
    published_metrics = {metric for (_, metric), value in theirs.items() if value is not None}
    marks, reference = significance_marks(rows, metrics, users_of, against, matched=asks_for(metrics, LOSS))
    columns = [Column("", "Method", number=False), *([Column("", "Server sees", number=False)] if watched else [])]
    for metric in metrics:
        head = words_of(metric).short
        if metric in published_metrics:
            names = ("counted", "formula", "ratio") if by_formula(specs, metric) else ("ours", "paper", "diff.")
            columns += [Column(head, name) for name in names]
        else:
            is_number = metric != _ATTACK
            # "ours" distinguishes it from the paper's
            beside = any(not by_formula(specs, other) for other in published_metrics)
            columns.append(Column(head, "ours", is_number) if beside else Column("", head, is_number))
    columns += [Column("", "Goal", number=False)] if goal else []
    best = {metric: _best([row for _, row in shown], metric) for metric in metrics}
    body, differences = [], []
    for number, (position, row) in enumerate(shown):
        cells = [Cell(row.label), *([Cell(row.sees or "-")] if watched else [])]
        for metric in metrics:
            if metric == _ATTACK:
                cells.append(Cell(best_attack(row)))
                continue
            ours, paper = row.mean(metric), theirs[position, metric]
            cells.append(_ours(row, metric, marks.get((position, metric), ""), number in best[metric]))
            if metric in published_metrics:
                percent = None if ours is None or not paper else 100 * (ours - paper) / abs(paper)
                cells.append(Cell(written(metric, paper), paper))
                notable = percent is not None and abs(percent) > NOTABLE
                formula = by_formula(specs, metric)
                cells.append(_apart(percent, notable, as_ratio=formula))
                if ours is not None and paper is not None and percent is not None:
                    differences.append(Difference(row, metric, ours, paper, percent, formula))
        if goal:
            cells.append(_GOAL[meets(row, goal)])
        body.append(tuple(cells))
    caption = " ".join(filter(None, [spec.caption, _how_to_read(rows, bool(published_metrics), reference, spec)]))
    title = f"{spec.title}: {data}"
    return Table(title=title, caption=caption, columns=tuple(columns), rows=tuple(body)), differences


def _apart(percent: float | None, notable: bool, *, as_ratio: bool) -> Cell:
    """How far ours is from the paper's: in percent, or as ours divided by what a formula says."""
    if percent is None:
        return Cell("-")
    if as_ratio:
        return Cell(f"{1 + percent / 100:.2f}", 1 + percent / 100, notable=notable)
    return Cell(f"{percent:+.1f} %", percent, notable=notable)


ALIKE = 1e-9
"""How far apart, relatively, two figures may be that differ by rounding alone."""
_GOAL = {True: Cell("met", best=True), False: Cell("not met"), None: Cell("-")}


def _ours(row: Row, metric: str, mark: str, best: bool) -> Cell:
    mean, spread = row.mean(metric), row.deviation(metric)
    text = written_once(metric, mean)
    if spread is not None:
        text = f"{written(metric, mean)} ± {written(metric, spread).lstrip('+')}"
    return Cell(text, mean, spread, mark, best)


def _best(rows: Sequence[Row], metric: str) -> frozenset[int]:
    """The positions of the best rows of a column, all that are alike; none where there is no better, or few to beat.

    Lists drawn at random are as even and as new as lists can be, and of no use: they are a yardstick, never the best.
    """
    if words_of(metric).better is None:
        return frozenset()
    held = {position: row.mean(metric) for position, row in enumerate(rows) if not drawn_at_random(row)}
    scores = {position: score(metric, value) for position, value in held.items() if value is not None}
    best = max(scores.values(), default=math.nan)
    alike = frozenset(position for position, result in scores.items() if math.isclose(result, best, rel_tol=ALIKE))
    return alike if 2 * len(alike) <= len(scores) else frozenset()  # what most have is nothing to point at


def drawn_at_random(row: Row) -> bool:
    """Whether its lists were drawn at random."""
    return any(record.model == RANDOM for record in row.records)


def _how_to_read(rows: Sequence[Row], compared: bool, reference: str | None, spec: TableSpec) -> str:
    seeds = sorted({len(row.records) for row in rows})
    sentences = []
    if seeds and seeds[-1] > 1:
        counts = " to ".join(map(str, sorted({seeds[0], seeds[-1]})))
        sentences.append(f"Mean ± standard deviation over {counts} runs (seeds and folds).")
    elif seeds and any(map(has_chance, spec.metrics)):
        sentences.append("One run each: differences of some percent may be luck.")
    elif seeds:
        sentences.append("One run each: these figures follow from the training part and the settings, not from chance.")
    if spec.best is not None and chosen_on_test(spec, rows):
        sentences.append(f"Of each sweep the row with the best {words_of(spec.best).short} on the test part.")
    aside = next((f", {row.group} aside" for row in rows if drawn_at_random(row)), "")
    sentences.append(f"Bold: the best of a column{aside}.")
    if reference is not None:
        sentences.append(
            f"* and **: differs from {reference} with p below 0.05 and 0.01 (paired t-test over users, "
            "corrected after Holm for all tests of the table)."
        )
    if spec.goal:
        bounds = (f"{words_of(metric).short} {written(metric, bound)}" for metric, bound in spec.goal.items())
        sentences.append(f"Goal: at most {' and '.join(bounds)}, {'both in' if len(spec.goal) > 1 else 'in'} the mean.")
    if compared:
        sentences.append(f"Differences of more than {NOTABLE:.0f} % are highlighted.")
    return " ".join(sentences)
