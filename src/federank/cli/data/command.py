"""`federank data ...`: known data sets listed, fetched, looked at and split; and the synthetic city."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from federank.cli.data.split import split
from federank.cli.reading import Reading, reads_data

if TYPE_CHECKING:
    from federank.data.known.sets import KnownSet


@click.group()
def data() -> None:
    """Known data sets: list, get, look at, split; and the synthetic city.

    FEDERANK_DATA names the folder that data sets lie in; without it they lie in your user cache.

    \b
    Example:
      federank data stats city
    """


data.add_command(split)


@data.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def list_known(as_json: bool) -> None:
    """List the known data sets, and which are here.

    \b
    Example:
      federank data list
    """
    from federank.data.known.sets import KNOWN, data_folder, find

    places = {name: find(name) for name in KNOWN}
    if as_json:
        rows = [
            {
                "name": known.name,
                "title": known.title,
                "interactions": known.interactions,
                "bytes": known.size,
                "installed": known.generated or places[name] is not None,
                "path": None if places[name] is None else str(places[name]),
            }
            for name, known in KNOWN.items()
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    from federank.cli.tables import new_table, show

    table = new_table("Name", "Data set", "Interactions>", "Download>", "Here")
    for name, known in KNOWN.items():
        here = "always" if known.generated else "yes" if places[name] else "no"
        count = "" if known.interactions is None else f"{known.interactions:,}"
        download = f"{known.size / 1e6:,.0f} MB" if known.size else "none" if known.generated else "by hand"
        table.add_row(name, known.title, count, download, here)
    show(table)
    click.echo(f"They lie in {data_folder()}. Install one with `federank data get NAME`.")


@data.command()
@click.argument("name")
@click.option("--from", "copy", type=click.Path(path_type=Path), metavar="FILE", help="Install this copy instead.")
def get(name: str, copy: Path | None) -> None:
    """Fetch a known data set from its publisher.

    A download that was cut goes on where it stopped. What arrives is checked, and installed only if it is right.
    A copy that is at hand is installed with --from. The publisher's terms are printed: they bind you.

    \b
    Example:
      federank data get ml-100k
    """
    from federank.data.known.sets import find, how_to_get, install_path, known_set
    from federank.errors import DataError

    known = known_set(name)
    _say_whose(known)
    place = find(name)
    if known.generated:
        click.echo(f"{name} is generated whenever it is used; there is nothing to get.")
        return
    if copy is not None:
        place = _install(known, copy, install_path(known, copy.name), place)
    elif place is not None:
        click.echo(f"It is already here: {place}")
        return
    elif known.address is None:
        raise DataError(f"{known.title} has no public address that is sure to stay. {how_to_get(known)}")
    else:
        place = _download(known, install_path(known, known.files[0]))
    click.echo(f"Installed: {place}")
    click.echo(f"Next: federank data stats {name}")


@data.command()
@reads_data
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Also draw a picture (png, pdf, svg).")
@click.option(
    "--training", is_flag=True, help="Describe what is left to train on when each user's newest fifth is not."
)
def stats(reading: Reading, as_json: bool, plot: Path | None, training: bool) -> None:
    """Show a known set or a file in numbers.

    How many users, items and interactions there are, how they are spread, and what categories get more than
    their share: Foursquare's hundreds of kinds of places as the papers' nine categories. Without a name or file: the
    synthetic city.

    \b
    Examples:
      federank data stats city
      federank data stats city --min-interactions 20 --json
      federank data stats city --plot city.png
      federank data stats city --min-interactions 20 --training
    """
    from federank.data.splits import split_temporal
    from federank.data.statistics.statistics import category_shares, statistics
    from federank.evaluation.categories import top_categories

    found = reading.interactions()
    if training:
        found = split_temporal(found, 0.2).train
    numbers = statistics(found)
    top = None if found.categories is None else category_shares(top_categories(found.categories), found.popularity)
    if plot is not None:
        from federank.data.statistics.plot import draw_statistics

        draw_statistics(found, plot)
    if as_json:
        gathered = {} if top in (None, numbers.categories) else {"top_categories": [asdict(one) for one in top or ()]}
        click.echo(json.dumps(numbers.as_dict() | gathered, indent=2))
        return
    from federank.cli.tables import show_statistics

    show_statistics(replace(numbers, categories=top))
    if plot is not None:
        click.echo(f"Drawn: {plot}")


@data.command()
@click.option("--people", type=int, default=1000, show_default=True, metavar="N")
@click.option("--places", type=int, default=1500, show_default=True, metavar="N")
@click.option("--checkins", type=int, default=40_000, show_default=True, metavar="N")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, metavar="S")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it as TSV.")
def city(people: int, places: int, checkins: int, seed: int, out: Path | None) -> None:
    """Make a synthetic city of check-ins.

    It is written to a file, or without one shown in numbers. No real person or place is in it. The same sizes and
    seed give the same city everywhere.

    \b
    Examples:
      federank data city
      federank data city --people 5000 --places 4000 --checkins 200000 --out city.tsv
    """
    from federank.data.city import city as made_up

    built = made_up.city(people=people, places=places, checkins=checkins, seed=seed)
    if out is None:
        from federank.cli.tables import show_statistics
        from federank.data.statistics.statistics import statistics

        show_statistics(statistics(built))
        return
    from federank.data.stored.text import write_tsv

    write_tsv(built, out)
    click.echo(f"Written: {len(built):,} synthetic check-ins to {out}")


def _say_whose(known: KnownSet) -> None:
    click.echo(known.title)
    for line in (known.terms, f"Cite: {known.citation}" if known.citation else ""):
        if line:
            click.echo(click.wrap_text(line, width=78, initial_indent="  ", subsequent_indent="  "))


def _install(known: KnownSet, copy: Path, target: Path, place: Path | None) -> Path:
    """Install a copy at hand: checked against the publisher's sum, or read once where there is none."""
    from federank.data.known.download import Expected, install_copy
    from federank.data.loading import load
    from federank.errors import BadFile, DataError

    if place is not None and place != target:
        raise DataError(f"{known.title} is already here, at {place}. Delete that first to install another copy.")
    if known.md5 is None and copy.is_file():
        click.echo(f"Read: {load(copy)!r}")
    try:
        install_copy(copy, target, Expected(size=known.size, md5=known.md5))
    except BadFile as mistake:
        trust = f" If you trust your copy all the same, put it at {target} yourself." if copy.is_file() else ""
        raise BadFile(f"{mistake}{trust}") from mistake
    return target


def _download(known: KnownSet, target: Path) -> Path:
    """Fetch from the publisher with a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from federank.data.known.download import Expected, fetch
    from federank.errors import DownloadError

    columns = (TextColumn(known.title), BarColumn(None), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=known.size)
            fetch(
                str(known.address),
                target,
                Expected(size=known.size, md5=known.md5),
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    except DownloadError as mistake:
        raise DownloadError(
            f"{mistake} Or fetch it in another way and run `federank data get {known.name} --from FILE`."
        ) from mistake
    return target
