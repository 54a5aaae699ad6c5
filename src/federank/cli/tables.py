"""Tables on stdout and the progress bar on stderr, the same in every command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from federank.data.interactions import Interactions
    from federank.data.statistics import Spread, Statistics
    from federank.methods.recommender import Recommender
    from federank.simulation.options import Progress

CATEGORIES_SHOWN = 12


def new_table(*columns: str) -> Table:
    """An empty table; a column whose name ends in '>' is set to the right, as numbers are."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removesuffix(">"), justify="right" if column.endswith(">") else "left")
    return table


def show(table: Table) -> None:
    """Print a table with space around it."""
    Console().print(Padding(table, (0, 0, 1, 2), expand=False))


@contextmanager
def training_bar(method: type[Recommender], quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A progress bar on stderr: epoch, triples or ratings per second, time left."""
    if quiet or not method.in_rounds:
        yield None
        return

    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f}%  {task.fields[now]}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, now="getting ready (the first run compiles for some seconds)")

        def update(now: Progress) -> None:
            speed = f"{now.triples_per_second / 1e6:.1f} million {method.learns_from}/s"
            bar.update(
                task, completed=now.round_number, total=now.rounds, now=f"epoch {now.epoch}/{now.epochs}, {speed}"
            )

        yield update


def show_statistics(numbers: Statistics) -> None:
    """Print a data set's numbers and, where it has categories, the largest of them."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")

    def spread(counts: Spread) -> str:
        return f"{counts.minimum:,} to {counts.maximum:,}, median {counts.median:,g}"

    table.add_row("Users", f"{numbers.users:,}")
    table.add_row("Items", f"{numbers.items:,}")
    table.add_row("Interactions", f"{numbers.interactions:,}")
    if numbers.repeats_left_out:
        table.add_row("Repeats", f"{numbers.repeats_left_out:,}", "rows left out: their user has the item already")
    table.add_row("Per user", f"{numbers.per_user:,.2f}", spread(numbers.activity))
    table.add_row("Per item", f"{numbers.per_item:,.2f}", spread(numbers.popularity))
    table.add_row("Density", f"{numbers.density:.4%}", "of all pairs of a user and an item")
    table.add_row("Top 1 % of items", f"{numbers.top_1_percent:.1%}", "of the interactions")
    table.add_row("Top 10 % of items", f"{numbers.top_10_percent:.1%}", "of the interactions")
    table.add_row("Gini index", f"{numbers.gini:.3f}", "0: all items alike, 1: one has everything")
    if numbers.ratings is not None:
        ratings = numbers.ratings
        table.add_row("Mean rating", f"{ratings.mean:.2f}", f"{ratings.minimum:g} to {ratings.maximum:g}")
    if numbers.period is not None:
        period = numbers.period
        table.add_row("Days", f"{period.days:,.0f}", f"{_day(period.first)} to {_day(period.last)}")
    Console().print(plain(numbers.name), style="bold")
    show(table)
    if numbers.categories:
        _show_categories(numbers)


def plain(name: str) -> Text:
    """A name out of someone's data: shown as it is, with no power over the terminal or the table."""
    return Text("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name))


def _show_categories(numbers: Statistics) -> None:
    categories = sorted(numbers.categories or (), key=lambda category: -category.share_of_interactions)
    table = new_table("Category", "Of items>", "Of interactions>", "Bias>")
    for category in categories[:CATEGORIES_SHOWN]:
        table.add_row(
            plain(category.name),
            f"{category.share_of_items:.1%}",
            f"{category.share_of_interactions:.1%}",
            f"{category.bias:.2f}",
        )
    if len(categories) > CATEGORIES_SHOWN:
        table.add_row(f"and {len(categories) - CATEGORIES_SHOWN:,} smaller ones (all with --json)", style="dim")
    show(table)


def plural(count: int, noun: str) -> str:
    """A count with its noun: 1 upload, 2 uploads."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


# The report of `federank train`: how much data, how fast, what was sent, and the privacy guarantee.


_WAYS = {"up": "up", "down_changed": "down, changed rows only", "down_dense": "down, full model"}


def count_communication(model: Recommender, wanted: bool) -> None:
    """Put into the report what the run has sent, where the method sends anything."""
    if wanted and hasattr(model, "communication") and (sent := model.communication()):
        model.report["communication"] = sent


def warn_of_named_items(settings: Any) -> None:
    """Say on stderr where nothing hides which items were rated."""
    if not getattr(settings, "federated", False) or getattr(settings, "rho", None) != 0:
        return
    remedy = (
        "SVD++ does so with any rho"
        if settings.implicit
        else "--rho 1 hides them among as many virtual ratings of other items"
    )
    click.echo(f"rho is 0: each upload names exactly the items that its user has rated; {remedy}.", err=True)


def report(model: Recommender, out: Path, part: Interactions) -> None:
    """Print the report, and what to do next."""
    figures, learnt_from = model.report, model.learns_from
    click.echo(f"{type(model).__name__} learnt from {len(part):,} interactions of {plain(part.name)}.")
    if part.repeats_left_out:
        click.echo(f"{part.repeats_left_out:,} rows of the source repeat a user's item and were left out.")
    if learnt_from in figures:
        speed = figures[learnt_from] / max(figures["seconds"], 1e-9)
        rate = f"{speed / 1e6:.1f} million" if speed >= 1e5 else f"{speed:,.0f}"
        click.echo(
            f"{figures['rounds']:,} rounds with {figures[learnt_from]:,} {learnt_from} in {figures['seconds']:.2f} s "
            f"({rate} a second)."
        )
    if figures.get("skipped_users"):
        who = "1 user takes" if figures["skipped_users"] == 1 else f"{figures['skipped_users']:,} users take"
        click.echo(f"{who} no part: they share nothing, or have the full catalogue, so no pair can be drawn.")
    if "privacy" in figures:
        click.echo(_privacy(figures["privacy"]))
    if "adjacency" in figures:
        click.echo(fill(reported_guarantee(figures), 79))
    if "communication" in figures:
        _report_communication(figures["communication"])
    click.echo(f"\nKept in {out}. Next: federank recommend {out} --user {part.user_ids[part.users[0]]}")


def reported_guarantee(report: dict[str, Any]) -> str:
    """The differential privacy guarantee of a report in a sentence."""
    if report["epsilon"] is None:
        return "The sums carry no noise: there is no differential privacy guarantee."
    uploads = f"The {report['messages']} uploads of a client together" if "messages" in report else "A user's data"
    against = f", against {report['against']}" if "against" in report else ""
    return f"{uploads}: epsilon {report['epsilon']:.3g} at delta {report['delta']:g}{against}."


def _privacy(guarantee: dict[str, Any]) -> str:
    """The guarantee of clipping and noise, or why no figure is stated."""
    if guarantee["epsilon"] is None:
        return f"No differential-privacy figure can be stated: {guarantee['reason']}"
    against = f" against a server that sees {guarantee['against']}" if "against" in guarantee else ""
    text = f"Differential privacy{against}: epsilon {guarantee['epsilon']:.3g} at delta {guarantee['delta']:g}"
    if "rounds" in guarantee:
        text += f" for the user with the most rounds ({guarantee['rounds']:,})"
    return f"{text}, {guarantee['epsilon_median']:.3g} for the median." if "epsilon_median" in guarantee else f"{text}."


def _report_communication(sent: dict[str, Any]) -> None:
    click.echo(f"\nWhat was sent, in {sent['downloads']:,} downloads and {sent['uploads']:,} uploads:\n")
    table = new_table("", "Rows>", "Rows a round>", "Megabytes>")
    for key, name in _WAYS.items():
        if key in sent:
            way = sent[key]
            table.add_row(name, f"{way['rows']:,}", f"{way['rows_per_round']:,.1f}", f"{way['bytes'] / 1e6:,.1f}")
    show(table)
    papers = sent.get("papers", {})
    if not papers:
        return
    if "cce" in papers:
        click.echo(
            f"The papers' measures: CCE {papers['cce']:,.0f} rows an epoch, freshness {papers['freshness']:,} "
            f"(normalised {papers['normalised_freshness']:.4g})."
        )
    else:
        click.echo(
            f"An iteration's traffic: {papers['counted_per_iteration'] / 1e6:,.1f} megabytes; by the paper's formula "
            f"(PMF, bare numbers) {papers['bytes_per_iteration'] / 1e6:,.1f}."
        )
