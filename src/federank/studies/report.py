"""The report of a study: its results folder as a page to read.

1. The runs are gathered into rows (rows.py), the specification is read from the TOML (report_spec.py). What came
   out is said in the first sentence.
2. Each table is filled for each data set, ours beside the paper's (tables.py); then what differs and why,
   how long the runs took, which failed, and with what versions (run_tables.py).
3. Each wished figure is drawn (figures/).
4. All of it is written in the forms that were asked for: one HTML page with everything inside, Markdown with its
   figures beside it, LaTeX and CSV with a file per table. Files are written atomically.

Where anything was chosen on the test part, the line under the title says so: such figures flatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from federank.errors import BadFile, SettingError
from federank.files import atomic_write
from federank.methods.registry import audited_names
from federank.studies.figures.draw import Picture, draw_figures
from federank.studies.metric_words import FORMULA, LOSS, SHARE, score, words_of, written, written_once
from federank.studies.report_spec import ReportSpec, TableSpec, read_report_spec, tables_of
from federank.studies.results import Results, RunRecord
from federank.studies.rows import AUDIT, Row, compared, gather
from federank.studies.run_tables import (
    comparison,
    differences_table,
    explanations,
    failures_table,
    groups_table,
    price_table,
    runs_table,
    versions_table,
)
from federank.studies.tables import (
    ALIKE,
    Difference,
    Table,
    chosen_on_test,
    drawn_at_random,
    results_table,
    rows_of_table,
)

_EXPOSED, FEW = "exposure_", 0.05
MOST_DATA = 3
"""Data sets that one sentence can hold."""


def finding(specs: ReportSpec, rows: Sequence[Row]) -> str:
    """The sentence; empty where nothing has finished, or where nothing is better or worse."""
    spec = next(iter(tables_of(specs, rows)), None)
    if spec is not None and any(metric.startswith(SHARE) for metric in spec.metrics):
        return _shares(spec, rows)
    metric = None if spec is None else _reported_metric(spec)
    if spec is None or metric is None:
        return ""
    names = spec.data or list(dict.fromkeys(row.data for row in rows))
    reported = (metric for metric in spec.metrics if metric.startswith(_EXPOSED) and "undefended" not in metric)
    exposure = next(reported, None)
    if exposure is not None:
        clauses = [clause for data in names if (clause := _held_off(rows_of_table(spec, rows, data), data, exposure))]
        return f"With the defences, {'; '.join(clauses)}." if clauses else ""
    clauses = [clause for data in names if (clause := _clause(rows_of_table(spec, rows, data), data, metric))]
    more = f"; and {len(clauses) - MOST_DATA} more data sets below" if len(clauses) > MOST_DATA else ""
    return f"{words_of(metric).axis}: {'; '.join(clauses[:MOST_DATA])}{more}." if clauses else ""


def _shares(spec: TableSpec, rows: Sequence[Row]) -> str:
    """From where to where the other rows' shares go, formulas aside."""
    metrics = [metric for metric in spec.metrics if metric.startswith(SHARE) and FORMULA not in metric]
    sentences = []
    for data in spec.data or list(dict.fromkeys(row.data for row in rows)):
        shown = compared(rows_of_table(spec, rows, data), spec.metrics, spec.against, spec.twins)
        shares = []
        for metric in metrics:
            held = [value for row in shown if row.group != spec.against and (value := row.mean(metric)) is not None]
            if held:
                name = words_of(metric.removeprefix(SHARE)).short
                ends = f"{written(metric, min(held))} to {written(metric, max(held))}"
                shares.append(f"{name[0].lower()}{name[1:]} {ends}")
        sentences += [f"On {data}, as shares of what {spec.against} takes: {'; '.join(shares)}."] if shares else []
    return " ".join(sentences)


def _held_off(rows: Sequence[Row], data: str, exposure: str) -> str:
    """How many attacks that reach someone without the defences show their item to few users with them."""
    without = exposure.replace(_EXPOSED, f"{_EXPOSED}undefended_")
    reached = [
        (held, row) for row in rows if (row.mean(without) or 0.0) >= 0.01 and (held := row.mean(exposure)) is not None
    ]
    if not reached:
        return ""
    few = sum(held <= FEW for held, _ in reached)
    most, worst = max(reached, key=lambda pair: pair[0])
    return (
        f"{few} of {len(reached)} attacks on {data} show the pushed item to {FEW:.0%} of users at most, and "
        f"{worst.label} to {most:.0%}"
    )


def _reported_metric(spec: TableSpec) -> str | None:
    plain = (metric for metric in spec.metrics if not metric.startswith((AUDIT, LOSS)))
    return next((metric for metric in plain if words_of(metric).better is not None), None)


def _clause(rows: Sequence[Row], data: str, metric: str) -> str:
    fair = [row for row in rows if not row.records[0].settings.get("leak")]  # what has seen the test part is no result
    local = {*audited_names(), "local"}
    at_home = _best([row for row in fair if row.records[0].model in local], metric)
    collected = _best([row for row in fair if row.records[0].model not in local], metric)
    if at_home and collected:
        return f"on {data}, {at_home} with histories left on the clients, {collected} with histories collected"
    best = at_home or collected
    return f"on {data}, {best} is the best" if best else ""


def _best(rows: Sequence[Row], metric: str) -> str:
    held = [
        (score(metric, value), row)
        for row in rows
        if (value := row.mean(metric)) is not None and not drawn_at_random(row)
    ]
    if not held:
        return ""
    best = max(result for result, _ in held)
    alike = [row.label for result, row in held if math.isclose(result, best, rel_tol=ALIKE)]
    value = next(row.mean(metric) for result, row in held if result == best)
    named = " and ".join(alike) if len(alike) < 3 else f"{alike[0]} and {len(alike) - 1} others"
    return f"{written_once(metric, value)} by {named}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a report says, before it has a form."""

    title: str
    finding: str
    """The first sentences: what came out, how near the paper that is, and what differs from it."""
    warnings: tuple[str, ...]
    """What a reader must know before the first number."""
    description: str
    results: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    about: tuple[Table, ...]
    """Differences, runs, failures, versions."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """All of them, in their order."""
        return self.results + self.about


def write_report(
    results_folder: str | Path,
    *,
    html: str | Path | None = None,
    markdown: str | Path | None = None,
    latex: str | Path | None = None,
    csv: str | Path | None = None,
) -> list[Path]:
    """Write the report of a results folder in the forms that are asked for; the files that were written.

    `html` and `markdown` are files (Markdown's figures go into a folder beside it); `latex` and `csv` are folders
    that get a file per table, or one file for all tables where the name ends in .tex or .csv.
    """
    from federank.studies.writers import csv_files, html_files, latex_files, markdown_files

    forms = ((html_files, html), (markdown_files, markdown), (latex_files, latex), (csv_files, csv))
    if all(place is None for _, place in forms):
        raise SettingError("No form of the report is asked for; give html, markdown, latex or csv a place to write to.")
    for position in (html, markdown):
        if position is not None and Path(position).is_dir():
            raise BadFile(f"The report cannot be written to {position}: that is a folder. Name a file in it.")
    report = make_report(Path(results_folder))
    files: dict[Path, str] = {}
    for make, place in forms:
        if place is not None:
            files |= make(report, Path(place))
    for path, content in files.items():
        atomic_write(path, content, parents=True)
    return list(files)


def make_report(folder: Path) -> Report:
    """Read a results folder and make all tables and pictures of its report."""
    specs = read_report_spec(folder)
    results = Results.open(folder)
    records = results.records()
    rows = gather(records)
    users_of = cache(lambda run: results.users(run) if results.has_users(run) else None)  # each file is read once
    tables, differences = _results(specs, rows, users_of)
    explain = explanations(specs, differences, rows)
    about = (
        price_table(rows),
        groups_table(rows),
        differences_table(differences, explain),
        failures_table(records),
        runs_table(rows, records) if rows else None,
        versions_table(records) if records else None,
    )
    return Report(
        title=specs.title,
        finding=" ".join(filter(None, [finding(specs, rows), comparison(differences, explain)])),
        warnings=tuple(_warnings(specs, records, rows, results.count() - len({record.id for record in records}))),
        description=specs.description,
        results=tuple(tables),
        pictures=tuple(draw_figures(specs, rows, records)),
        about=tuple(table for table in about if table is not None),
    )


def _results(
    specs: ReportSpec, rows: Sequence[Row], users_of: Callable[[str], Any]
) -> tuple[list[Table], list[Difference]]:
    tables: list[Table] = []
    differences: list[Difference] = []
    for spec in tables_of(specs, rows):
        for data in spec.data or list(dict.fromkeys(row.data for row in rows)):
            shown = rows_of_table(spec, rows, data)
            if shown:
                table, result = results_table(spec, specs, shown, data, users_of)
                same = sum(other.title == table.title or other.title.startswith(f"{table.title} (") for other in tables)
                tables.append(replace(table, title=f"{table.title} ({same + 1})") if same else table)
                differences += result
    return tables, differences


def _warnings(specs: ReportSpec, records: Sequence[RunRecord], rows: Sequence[Row], to_come: int) -> list[str]:
    sentences = []
    if records and to_come > 0:
        sentences.append(
            f"Unfinished: {to_come:,} of the study's runs are still to come; start it again to go on with them."
        )
    if any(record.chosen_on == "test" for record in records):
        sentences.append("Settings were chosen on the test part: these figures flatter the methods.")
    known = {row.data for row in rows}
    if any(chosen_on_test(spec, rows_of_table(spec, rows, data)) for spec in specs.tables for data in known):
        sentences.append(
            "The best row of a sweep was chosen on the test part, as the papers did: it flatters the method."
        )
    each = {record.id: record for record in records}  # rows may share a run
    failed = sum(not record.done for record in each.values())
    if failed:
        sentences.append(f"{failed:,} of {len(each):,} runs failed; the reasons are below.")
    missing = [name for name in specs.data if not any(record.data == name for record in records)]
    if not records:
        sentences.append("No run has finished yet.")
    elif missing:
        sentences.append(
            f"Left out: {', '.join(missing)}; there is no run on {'it' if len(missing) == 1 else 'them'}, as where a "
            "data set is not installed."
        )
    return sentences
