"""`federank study`: a set of runs from one TOML file, run, stored in a folder, and written as a report."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import AT_LEAST_1, FILE, FOLDER, JSON, TRACK_HELP
from federank.cli.tables import new_table, plural, show
from federank.errors import SettingError
from federank.studies.documents import changed, find_study, packaged, quick, read_change, saying_what_changed
from federank.studies.plan import Plan, case_seconds, missing, plan_study
from federank.studies.pool import Pool, RayExecutor
from federank.studies.results import Results, RunRecord, spoken_time, values_line
from federank.studies.run import Bar, changed_data, open_results, run_study
from federank.studies.spec import as_study
from federank.studies.tracking import open_tracker, tracked_record

if TYPE_CHECKING:
    from federank.studies.report import Report


@click.group()
def study() -> None:
    """The papers' tables and figures, or your own: describe runs in a TOML file, start it, come back to a report.

    \b
    Examples:
      federank study list
      federank study run federank-table2 --quick --out results/table2
      federank study report results/table2 --html report.html
    """


@study.command("list")
@JSON
def list_studies(as_json: bool) -> None:
    """The studies that come with the product.

    \b
    Example:
      federank study list
    """
    studies = {name: as_study(document, name) for name, document in packaged().items()}
    if as_json:
        content = {
            name: {"title": one.title, "data": {data.name: not missing(data) for data in one.data}}
            for name, one in studies.items()
        }
        click.echo(json.dumps(content, indent=2))
        return
    table = new_table("Study", "What it makes", "Data")
    for name, one in studies.items():
        table.add_row(name, one.title, ", ".join(data.name + " (missing)" * bool(missing(data)) for data in one.data))
    show(table)
    click.echo("Start one with `federank study run NAME`, or write your own: docs/studies.md.")


@study.command()
@click.argument("name", metavar="NAME_OR_FILE")
@click.option("--out", type=FOLDER, help="The results folder.  [results/NAME]")
@click.option("--workers", type=AT_LEAST_1, metavar="N", help="Runs at a time.  [one for each core]")
@click.option("--seeds", metavar="LIST", help="Other seeds, such as 1,2,3.")
@click.option("--quick", "quick_form", is_flag=True, help="A small form that takes a minute or two.")
@click.option("--set", "changes", metavar="PATH.KEY=VALUE", multiple=True, help="Change the study for this time.")
@click.option("--dry-run", is_flag=True, help="List the runs, and how long they take where similar ones are finished.")
@click.option("--cluster", metavar="ADDRESS", help="Carry runs out on Ray: `local`, or an address (ray://head:10001).")
@click.option("--track", metavar="TRACKER", help=TRACK_HELP)
@click.option("--quiet", is_flag=True, help="No progress.")
def run(
    name: str,
    out: Path | None,
    workers: int | None,
    dry_run: bool,
    cluster: str | None,
    track: str | None,
    quiet: bool,
    **changes: Any,
) -> None:
    """Carry out a study: a packaged one by its name, or a TOML file.

    Started again, it does only what is missing, also after it was killed. The exit code is 1 where every run failed.

    \b
    Examples:
      federank study run federank-table2 --workers 2
      federank study run my.toml --set choose.epochs=5 --dry-run
      federank study run my.toml --track mlflow:mlruns
    """

    study_name, document = find_study(name)
    folder = out or Path("results") / (study_name + "-quick" * changes["quick_form"])
    one = as_study(_changed(document, **changes), study_name)
    plan = plan_study(one)
    earlier = open_results(one, folder) if (folder / "VERSION").is_file() else None  # another study's folder is refused
    for sentence in changed_data(plan, earlier) if earlier is not None else ():
        click.echo(sentence, err=True)
    if dry_run:
        report_plan(plan, earlier.records(every=True) if earlier is not None else [], workers or _cores())
        for note in plan.notes:
            click.echo(note)
        return
    tracker = None if track is None else open_tracker(track, one.title)

    def log(record: RunRecord) -> None:
        if tracker is not None:
            tracker.log(tracked_record(record))

    executor = Pool(workers or _cores()) if cluster is None else RayExecutor(cluster, workers)
    try:
        with executor, Bar(quiet=quiet, log=log) as bar:
            results = run_study(one, folder, executor, bar, plan)
        for record in results.records():  # what the tracker knows is left as it is
            log(record)
    except KeyboardInterrupt:
        click.echo(f"\nWhat is finished is in {folder}; the same command goes on from there.", err=True)
        raise
    for note in plan.notes:
        click.echo(note)
    report_progress(results)
    runs = counts(results)
    if runs["failed"] and not runs["done"]:
        click.echo(f"federank: Every run failed; `federank study report {folder}` shows the reasons.", err=True)
        raise SystemExit(1)
    click.echo(f"Next: federank study report {folder} --html report.html")


@study.command()
@click.argument("folder", metavar="RESULTS", type=FILE)
@JSON
def status(folder: Path, as_json: bool) -> None:
    """How far a study has come: runs that are done, failed, under way, and missing.

    \b
    Example:
      federank study status results/federank-table2
    """
    results = Results.open(folder)
    if as_json:
        content = counts(results)
        failed = [record for record in results.records() if not record.done]
        reasons = [{"id": record.id, "group": record.group, "reason": record.reason} for record in failed]
        click.echo(json.dumps({**content, "failures": reasons}, indent=2))
        return
    report_progress(results)


@study.command()
@click.argument("folder", metavar="RESULTS", type=FILE)
@click.option("--html", type=FILE, help="One page with tables and figures.")
@click.option("--markdown", type=FILE, help="Markdown, figures beside it.")
@click.option("--latex", type=FILE, metavar="FOLDER", help="Every table as LaTeX, a file each.")
@click.option("--csv", type=FILE, metavar="FOLDER", help="Every table as CSV, a file each.")
def report(folder: Path, html: Path | None, markdown: Path | None, latex: Path | None, csv: Path | None) -> None:
    """Tables and figures of a study, ours beside the papers'; without a file to write, the tables here.

    \b
    Examples:
      federank study report results/federank-table2
      federank study report results/federank-table2 --html report.html
    """
    from federank.studies.report import make_report, write_report

    if not any((html, markdown, latex, csv)):
        show_report(make_report(folder))
        return
    write_report(folder, html=html, markdown=markdown, latex=latex, csv=csv)
    for path in (html, markdown, latex, csv):
        if path is not None:
            click.echo(f"Written: {path}")


def _changed(
    document: dict[str, Any], seeds: str | None, changes: tuple[str, ...], *, quick_form: bool
) -> dict[str, Any]:
    """The study with what the command line changes about it."""
    if quick_form:
        document = quick(document)
    read = [read_change(change) for change in changes]
    if seeds is not None:
        try:
            read.insert(0, {"seeds": [int(seed) for seed in seeds.split(",")]})
        except ValueError:
            raise SettingError(f"--seeds is {seeds!r}; integers are needed, such as 1,2,3.") from None
    for change in read:
        document = changed(document, change)
    return saying_what_changed(document, read)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def report_plan(plan: Plan, known: Sequence[RunRecord], workers: int) -> None:
    """The runs of a plan, case by case; and how long they take, where runs of the same kind are finished."""
    there = {record.id for record in known}
    table = new_table("Data", "Group", "Values", "To choose>", "To test>", "About>")
    total = 0.0
    for case in plan.cases:
        choosing, seconds = case.expected, case_seconds(case, known)
        total += seconds or 0.0
        done = sum(run.id in there for run in choosing)
        to_choose = f"{len(choosing)}" + (f" ({done} done)" if done else "")
        name = case.data.name if case.fold is None else f"{case.data.name}, fold {case.fold}"
        time = "-" if seconds is None else spoken_time(seconds)
        table.add_row(name, case.model.group, values_line(case.swept), to_choose, str(len(case.seeds)), time)
    show(table)
    about = f"; about {spoken_time(total / workers)} with {workers} at a time" if total else ""
    click.echo(f"{plan.count:,} runs{about}.")


def counts(results: Results) -> dict[str, int]:
    """How many runs a study has, and how many of them are done, failed, under way and missing.

    A search by halving goes on with all that may still win, so it may come to more runs than its plan expects.
    """
    records = {record.id: record for record in results.records()}.values()
    done = sum(record.done for record in records)
    under_way = len(results.under_way())
    total = max(results.count(), len(records) + under_way)
    return {
        "runs": total,
        "done": done,
        "failed": len(records) - done,
        "under_way": under_way,
        "missing": max(0, total - len(records) - under_way),
    }


def report_progress(results: Results) -> None:
    """How far a study has come, in a line, and why runs have failed."""
    records = {record.id: record for record in results.records()}.values()  # rows may share a run
    content = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts(results).items())
    seconds = sum(record.seconds or 0 for record in records)
    click.echo(f"{results.folder}: {content}; {spoken_time(seconds)} of computing.")
    for record in records:
        if not record.done:
            values = values_line({**record.swept, **record.chosen})
            click.echo(f"  failed: {record.data}, {record.group} ({values}), {record.task}: {record.reason}")


def show_report(report: Report) -> None:
    """The tables of a report on the terminal, as Markdown; figures need a file."""
    from federank.studies.writers import markdown_files

    place = Path("report.md")
    click.echo(markdown_files(replace(report, pictures=()), place)[place], nl=False)
    if report.pictures:
        click.echo(f"\nAnd {plural(len(report.pictures), 'figure')}, with --html FILE or --markdown FILE.")
