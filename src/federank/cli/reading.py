"""What every command asks about data: which set or file, how to read it, and what to keep of it.

A command takes these options with `@reads_data` (the data as an argument) or `@reads_data_option` (as `--data`) and
gets one `Reading`, whose `interactions()` are the data. Without a name or file the data are the synthetic city.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from federank.data.interactions import Interactions, Repeats


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A source of data, how it is read, and what is kept."""

    source: str
    users: str | None
    items: str | None
    ratings: str | None
    times: str | None
    header: bool | None
    delimiter: str | None
    repeats: Repeats
    item_file: str | None
    min_rating: float | None
    min_interactions: int | None
    k_core: int | None

    def interactions(self) -> Interactions:
        """Read the data and keep what was asked for."""
        from federank.data.loading import load

        data = load(
            self.source,
            users=_column(self.users),
            items=_column(self.items),
            ratings=_column(self.ratings),
            times=_column(self.times),
            header=self.header,
            delimiter=None if self.delimiter is None else self.delimiter.replace("\\t", "\t"),
            repeats=self.repeats,
            item_file=self.item_file,
        )
        if self.min_rating is not None:
            data = data.binarise(self.min_rating)
        if self.min_interactions is not None:
            data = data.keep_users(self.min_interactions)
        return data if self.k_core is None else data.k_core(self.k_core)

    def kept(self) -> dict[str, float]:
        """The filters that were asked for, by name, for a record of what was done."""
        filters = {
            "min_rating": self.min_rating,
            "min_interactions": self.min_interactions,
            "k_core": self.k_core,
        }
        return {name: value for name, value in filters.items() if value is not None}


_AS_ARGUMENT = click.argument("source", metavar="[NAME_OR_FILE]", default="city")
_AS_OPTION = click.option(
    "--data", "source", metavar="NAME_OR_FILE", default="city", show_default=True, help="A known set, or a file."
)
_OPTIONS = (
    click.option("--min-interactions", type=int, metavar="N", help="Keep users with at least N interactions."),
    click.option("--k-core", type=int, metavar="K", help="Keep users and items with at least K each."),
    click.option("--min-rating", type=float, metavar="X", help="Keep ratings of at least X, as likes."),
    click.option("--users", metavar="COLUMN", help="Column of users: a name, or a position from 0."),
    click.option("--items", metavar="COLUMN", help="Column of items."),
    click.option("--ratings", metavar="COLUMN", help="Column of ratings; 'none' to leave them out."),
    click.option("--times", metavar="COLUMN", help="Column of times; 'none' to leave them out."),
    click.option("--header/--no-header", default=None, help="Whether the first line names the columns."),
    click.option("--delimiter", metavar="TEXT", help="What stands between columns, such as ',' or '\\t'."),
    click.option(
        "--repeats",
        type=click.Choice(["latest", "first", "refuse"]),
        default="latest",
        show_default=True,
        help="Which row of a repeated (user, item) pair to keep: of many check-ins at one place one counts, so that no "
        "test is of a known place.",
    ),
    click.option("--item-file", metavar="FILE", help="A file with titles or categories of the items."),
)


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument and options of a `Reading`, handed to it as `reading`."""
    return _with_reading(command, _AS_ARGUMENT)


def reads_data_option(command: Callable[..., None]) -> Callable[..., None]:
    """The same, with the data named by `--data`."""
    return _with_reading(command, _AS_OPTION)


def _with_reading(command: Callable[..., None], source: Callable[[Any], Any]) -> Callable[..., None]:
    @wraps(command)
    def with_reading(**given: Any) -> None:
        asked = {name: given.pop(name) for name in Reading.__dataclass_fields__}
        command(reading=Reading(**asked), **given)

    for option in reversed((source, *_OPTIONS)):
        with_reading = option(with_reading)
    return with_reading


def _column(text: str | None) -> str | int | bool | None:
    """A column as the readers want it: a position where the text is an integer, False for 'none'."""
    if text == "none":
        return False
    return int(text) if text is not None and text.isdecimal() else text
