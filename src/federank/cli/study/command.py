"""`federank study`: a set of runs from one TOML file, carried out, kept in a folder, and told as a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.train.tracking import TRACK_HELP
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.studies.run.pool import Executor


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
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_studies(as_json: bool) -> None:
    """The studies that come with the product.

    \b
    Example:
      federank study list
    """
    from federank.cli.tables import new_table, show
    from federank.studies.plan.shelf import packaged
    from federank.studies.plan.sources import missing
    from federank.studies.plan.study_file import as_study

    studies = {name: as_study(document, name) for name, document in packaged().items()}
    if as_json:
        content = {
            name: {"title": one.title, "data": {data.name: missing(data) is None for data in one.data}}
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
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The results folder.  [results/NAME]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Runs at a time.  [one for each core]")
@click.option("--seeds", metavar="LIST", help="Other seeds, such as 1,2,3.")
@click.option("--quick", "quick_form", is_flag=True, help="A small form that takes a minute or two.")
@click.option("--set", "changes", metavar="PATH.KEY=VALUE", multiple=True, help="Change the study for this time.")
@click.option("--dry-run", is_flag=True, help="List the runs and about how long they take; do nothing.")
@click.option("--cluster", metavar="ADDRESS", help="Carry runs out on Ray: `local`, or an address (ray://head:10001).")
@click.option("--track", metavar="TRACKER", help=TRACK_HELP)
@click.option("--quiet", is_flag=True, help="No progress.")
def run(
    name: str,
    out: Path | None,
    workers: int | None,
    seeds: str | None,
    quick_form: bool,
    changes: tuple[str, ...],
    dry_run: bool,
    cluster: str | None,
    track: str | None,
    quiet: bool,
) -> None:
    """Carry out a study: a packaged one by its name, or a TOML file.

    Started again, it does only what is missing, also after it was killed. The exit code is 1 where every run failed.

    \b
    Examples:
      federank study run federank-table2 --workers 2
      federank study run my.toml --set choose.epochs=5 --dry-run
      federank study run my.toml --track mlflow:mlruns
    """
    from federank.cli.study.summary import counts, tell, tell_plan
    from federank.studies.plan.plan import plan_study
    from federank.studies.plan.shelf import find_study
    from federank.studies.plan.study_file import as_study
    from federank.studies.run.progress import Bar
    from federank.studies.run.run import carry_out_study, changed_data, open_results
    from federank.studies.tracking.tracked import open_tracker
    from federank.studies.tracking.watching import Tracking, track_all

    found, document = find_study(name)
    one = as_study(_changed(document, seeds, changes, quick_form=quick_form), found)
    folder = out or Path("results") / (found + "-quick" * quick_form)
    plan = plan_study(one)
    kept = open_results(one, folder) if (folder / "VERSION").is_file() else None  # another study's folder is refused
    if dry_run:
        tell_plan(plan, folder, workers or _cores())
        return
    for sentence in changed_data(plan, kept) if kept is not None else ():
        click.echo(sentence, err=True)
    tracker = None if track is None else open_tracker(track, one.title)
    executor = _executor(cluster, workers)
    try:
        with Bar(quiet=quiet) as bar:
            watch = bar if tracker is None else Tracking(bar, tracker)
            results = carry_out_study(one, folder, executor, watch, plan)
        if tracker is not None:
            track_all(results, tracker)
    except KeyboardInterrupt:
        click.echo(f"\nWhat is finished is in {folder}; the same command goes on from there.", err=True)
        raise
    finally:
        executor.close()
    for note in plan.notes:
        click.echo(note)
    tell(results)
    runs = counts(results)
    if runs["failed"] and not runs["done"]:
        click.echo(f"federank: Every run failed; `federank study report {folder}` tells the reasons.", err=True)
        raise SystemExit(1)
    click.echo(f"Next: federank study report {folder} --html report.html")


@study.command()
@click.argument("folder", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(folder: Path, as_json: bool) -> None:
    """How far a study has come: runs that are done, failed, under way, and missing.

    \b
    Example:
      federank study status results/federank-table2
    """
    from federank.cli.study.summary import counts, tell
    from federank.studies.results.results import Results

    results = Results.open(folder)
    if as_json:
        content = counts(results)
        failed = [line for line in results.lines() if not line.done]
        reasons = [{"id": line.id, "group": line.group, "reason": line.reason} for line in failed]
        click.echo(json.dumps({**content, "failures": reasons}, indent=2))
        return
    tell(results)


@study.command()
@click.argument("folder", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="One page with tables and figures.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Markdown, figures beside it.")
@click.option("--latex", type=click.Path(path_type=Path), metavar="FOLDER", help="Every table as LaTeX, a file each.")
@click.option("--csv", type=click.Path(path_type=Path), metavar="FOLDER", help="Every table as CSV, a file each.")
def report(folder: Path, html: Path | None, markdown: Path | None, latex: Path | None, csv: Path | None) -> None:
    """Tables and figures of a study, ours beside the papers'; without a file to write, the tables here.

    \b
    Examples:
      federank study report results/federank-table2
      federank study report results/federank-table2 --html report.html
    """
    from federank.studies.report.report import make_report, write_report

    if not any((html, markdown, latex, csv)):
        from federank.cli.study.summary import show_report

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
    from federank.studies.plan.overrides import changed, quick, read_change, saying_what_changed

    if quick_form:
        document = quick(document)
    read = [read_change(change) for change in changes]
    if seeds is not None:
        try:
            read.insert(0, {"seeds": [int(seed) for seed in seeds.split(",")]})
        except ValueError:
            raise SettingError(f"--seeds is {seeds!r}; whole numbers are needed, such as 1,2,3.") from None
    for change in read:
        document = changed(document, change)
    return saying_what_changed(document, read)


def _executor(cluster: str | None, workers: int | None) -> Executor:
    if cluster is None:
        from federank.studies.run.pool import Pool

        return Pool(workers or _cores())
    from federank.studies.run.ray_executor import RayExecutor

    return RayExecutor(cluster, workers)


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
