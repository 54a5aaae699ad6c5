"""What `federank study` says: the plan before a study, how far it has come, and what has failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from federank.cli.tables import new_table, show
from federank.studies.plan.plan import Plan
from federank.studies.results.results import Results
from federank.studies.run.estimate import case_seconds
from federank.studies.run.run import changed_data

if TYPE_CHECKING:
    from federank.studies.report.report import Report


def tell_plan(plan: Plan, folder: Path, workers: int) -> None:
    """The runs of a plan, case by case, with about how long they take."""
    results = Results.open(folder) if (folder / "VERSION").is_file() else None
    known = results.lines(every=True) if results is not None else []
    there = {line.id for line in known}
    table = new_table("Data", "Group", "Values", "To choose>", "To test>", "About>")
    total = 0.0
    for case in plan.cases:
        choosing = case.expected
        seconds = case_seconds(case, known)
        total += seconds
        values = ", ".join(f"{name} {value}" for name, value in case.swept.items())
        done = sum(run.id in there for run in choosing)
        to_choose = f"{len(choosing)}" + (f" ({done} done)" if done else "")
        name = case.data.name if case.fold is None else f"{case.data.name}, fold {case.fold}"
        table.add_row(name, case.model.group, values, to_choose, str(len(case.seeds)), _duration(seconds))
    show(table)
    for note in (*plan.notes, *(changed_data(plan, results) if results is not None else ())):
        click.echo(note)
    click.echo(f"{plan.count:,} runs; about {_duration(total / workers)} with {workers} at a time.")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def counts(results: Results) -> dict[str, int]:
    """How many runs a study has, and how many of them are done, failed, under way and missing.

    A search by halving goes on with all that may still win, so it may come to more runs than its plan expects.
    """
    lines = {line.id: line for line in results.lines()}.values()
    done = sum(line.done for line in lines)
    under_way = len(results.under_way())
    total = max(results.count(), len(lines) + under_way)
    return {
        "runs": total,
        "done": done,
        "failed": len(lines) - done,
        "under_way": under_way,
        "missing": max(0, total - len(lines) - under_way),
    }


def tell(results: Results) -> None:
    """How far a study has come, in a line, and why runs have failed."""
    seconds = sum(line.seconds or 0 for line in {line.id: line for line in results.lines()}.values())
    content = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts(results).items())
    click.echo(f"{results.folder}: {content}; {_duration(seconds)} of computing.")
    told: set[str] = set()
    for line in results.lines():
        if not line.done and line.id not in told:  # rows may share a run
            told.add(line.id)
            values = ", ".join(f"{name} {value}" for name, value in {**line.swept, **line.chosen}.items())
            click.echo(f"  failed: {line.data}, {line.group} ({values}), {line.task}: {line.reason}")


def show_report(report: Report) -> None:
    """The tables of a report on the terminal, as Markdown; figures need a file."""
    from federank.studies.report.markdown import markdown_files

    place = Path("report.md")
    click.echo(markdown_files(replace(report, pictures=()), place)[place], nl=False)
    if report.pictures:
        figures = "1 figure" if len(report.pictures) == 1 else f"{len(report.pictures)} figures"
        click.echo(f"\nAnd {figures}, with --html FILE or --markdown FILE.")
