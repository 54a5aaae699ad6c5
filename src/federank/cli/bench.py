"""`federank bench`: one method on a public benchmark, beside the published figures.

A benchmark is a packaged study with a `benchmark` line: its data, split, metrics, published figures and search ranges.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from federank.checks import unknown_name
from federank.cli.options import AT_LEAST_1, FOLDER, JSON
from federank.cli.study import report_progress, show_report
from federank.cli.tables import new_table, show
from federank.errors import SettingError
from federank.methods.registry import recommender_class
from federank.studies.documents import packaged
from federank.studies.plan import missing
from federank.studies.pool import Pool
from federank.studies.run import Bar, run_study
from federank.studies.spec import as_study


@click.group()
def bench() -> None:
    """Public benchmarks: data, split and protocol that others have published figures on.

    \b
    Examples:
      federank bench list
      federank bench run gowalla --method userknn
    """


def _benchmarks() -> dict[str, dict[str, Any]]:
    return {name: document for name, document in packaged().items() if "benchmark" in document}


@bench.command("list")
@JSON
def list_benchmarks(as_json: bool) -> None:
    """Data, split, protocol and metrics of each benchmark, and the published figures with their source.

    \b
    Example:
      federank bench list
    """
    content = {}
    for name, document in _benchmarks().items():
        study = as_study(document, name)
        content[name] = {
            "title": study.title,
            "data": {data.name: not missing(data) for data in study.data},
            "split": {data.name: data.split.as_dict() for data in study.data},
            "protocol": document["benchmark"],
            "metrics": [f"{metric}@{n}" for metric in study.metrics or () for n in study.at],
            "methods": sorted({model.method for model in study.models}),
            "published": document.get("paper", []),
        }
    if as_json:
        click.echo(json.dumps(content, indent=2))
        return
    for name, about in content.items():
        click.echo(f"{name}: {about['title']}")
        for data, there in about["data"].items():
            click.echo(f"  Data: {data}{'' if there else ' (not installed)'}, split {about['split'][data]['way']}")
        click.echo(f"  Protocol: {about['protocol']}")
        click.echo(f"  Methods: {', '.join(about['methods'])}\n")
        _show_published(about["published"])


def _show_published(papers: list[dict[str, Any]]) -> None:
    metrics = list(dict.fromkeys(metric for paper in papers for metric in paper["metrics"]))
    table = new_table("Method", "Data", *(f"{metric}>" for metric in metrics), "Source")
    for paper in papers:
        group = paper["group"] if isinstance(paper["group"], str) else paper["group"][0]
        values = [f"{paper['metrics'][metric]:.4f}" if metric in paper["metrics"] else "" for metric in metrics]
        table.add_row(group, str(paper["data"]), *values, paper["source"])
    show(table)


@bench.command()
@click.argument("name")
@click.option(
    "--method", required=True, metavar="METHOD", help="The method to run; one outside the list runs as it is."
)
@click.option("--data", metavar="NAME", help="Only on this data set of the benchmark.")
@click.option("--out", type=FOLDER, help="Results folder [results/NAME-METHOD].")
@click.option("--workers", type=AT_LEAST_1, default=1, show_default=True, help="Runs at a time.")
@click.option("--quiet", is_flag=True, help="No progress.")
def run(name: str, method: str, data: str | None, out: Path | None, workers: int, quiet: bool) -> None:
    """Tune a method on the validation part, test it once, and print it beside the published figures.

    Started again, it does only what is missing.

    \b
    Examples:
      federank bench run gowalla --method userknn
      federank bench run gowalla --method rp3beta --out results/rp3beta
    """
    from federank.studies.report import make_report

    study = as_study(benchmark(name, method, data), f"{name}-{method}")
    folder = out or Path("results") / study.name
    with Pool(workers) as pool, Bar(quiet=quiet) as bar:
        results = run_study(study, folder, pool, bar)
    report_progress(results)
    if not any(record.done for record in results.records()):
        raise SystemExit(1)
    show_report(make_report(folder))


def benchmark(name: str, method: str, data: str | None = None) -> dict[str, Any]:
    """The study of one method on a benchmark; a method that has no row there runs with its defaults."""
    known = _benchmarks()
    if name not in known:
        raise SettingError(unknown_name("benchmark", name, known))
    recommender_class(method)
    document = known[name]
    models = [model for model in document["model"] if model["method"] == method] or [{"method": method}]
    sets = [entry for entry in document["data"] if data in (None, entry["name"])]
    if not sets:
        names = [entry["name"] for entry in document["data"]]
        raise SettingError(unknown_name("data set of this benchmark", str(data), names))
    groups = {model.get("group", method) for model in models}
    tables = [{**table, "groups": []} for table in document.get("table", [])]
    for table in tables:
        if table.get("against") not in groups:
            table.pop("against", None)
    dropped = {"figure", "note", "quick"}
    rest = {key: value for key, value in document.items() if key not in dropped}
    return {**rest, "model": models, "data": sets, "table": tables}
