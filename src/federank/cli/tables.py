"""Tables on stdout and the progress bar on stderr, the same in every command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from federank.data.statistics import Statistics
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
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

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
    activity, popularity = numbers.activity, numbers.popularity
    table.add_row("Users", f"{numbers.users:,}")
    table.add_row("Items", f"{numbers.items:,}")
    table.add_row("Interactions", f"{numbers.interactions:,}")
    if numbers.repeats_left_out:
        table.add_row("Repeats", f"{numbers.repeats_left_out:,}", "rows left out: their user has the item already")
    table.add_row(
        "Per user",
        f"{numbers.per_user:,.2f}",
        f"{activity.minimum:,} to {activity.maximum:,}, median {activity.median:,g}",
    )
    table.add_row(
        "Per item",
        f"{numbers.per_item:,.2f}",
        f"{popularity.minimum:,} to {popularity.maximum:,}, median {popularity.median:,g}",
    )
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


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
