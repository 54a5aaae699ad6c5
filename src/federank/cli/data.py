"""`federank data ...`: known data sets listed, fetched, looked at and split; and the synthetic city."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import FILE, FOLDER, JSON, Command, Reading, reads_data
from federank.errors import BadFile, DataError, DownloadError, SettingError

if TYPE_CHECKING:
    from federank.data.datasets import KnownSet
    from federank.data.splits import Division

# What these commands need is imported when they run: `federank data --help` is fast.


_SHARES = ("temporal", "global-temporal", "random", "strong")
_NAMES = {way.replace("-", "_"): way for way in (*_SHARES, "leave-last-out", "folds")}
"""What Click calls the flag of each way."""


@click.command(cls=Command)
@click.option("--temporal", type=float, metavar="SHARE", help="Test on each user's newest, as the papers do.")
@click.option("--global-temporal", type=float, metavar="SHARE", help="Test on the newest of all: one moment for all.")
@click.option("--leave-last-out", is_flag=True, help="Test on each user's newest interaction.")
@click.option("--random", type=float, metavar="SHARE", help="Test on some of each user's, drawn at random.")
@click.option("--strong", type=float, metavar="SHARE", help="Test on held-out users, a share of all.")
@click.option("--folds", type=int, metavar="K", help="K random folds; each is once the test.")
@click.option(
    "--validation",
    type=float,
    metavar="SHARE",
    default=0.0,
    help="Cut this share of training for validation, in the same way; with --leave-last-out, 1: the newest left.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="S",
    default=1,
    show_default=True,
    help="Seed of --random, --strong and --folds.",
)
@click.option("--mirrored", is_flag=True, help="Let time run backwards first: a stand-in (docs/data.md).")
@click.option("--out", type=FOLDER, required=True, help="The folder to write.")
@click.option("--bare", is_flag=True, help="Write no header line, as Elliot reads it.")
@reads_data
def split(reading: Reading, out: Path, bare: bool, **chosen: Any) -> None:
    """Split a known set or a file into train.tsv and test.tsv.

    Choose one way: --temporal, --global-temporal, --leave-last-out, --random, --strong or --folds. The folder also gets
    split.json, with the settings, the counts and the fingerprint of the data. Without a name or file, the
    synthetic city is split.

    \b
    Examples:
      federank data split city --temporal 0.2 --out city-split
      federank data split city --folds 5 --seed 7 --out city-folds
    """
    from federank.data.split_files import files_of, refuse_foreign_folder, write_split_folder
    from federank.data.splits import divide, refuse_empty_parts

    way, division = _division(chosen)
    refuse_foreign_folder(out)
    data = reading.interactions()
    splits = divide(data, division)
    refuse_empty_parts(splits, division)
    settings = {
        **reading.filters,
        "way": division.way,
        way: chosen[way],
        "validation": division.validation,
        **({"seed": division.seed} if division.way in ("random", "strong", "folds") else {}),
        **({"mirrored": True} if division.mirrored else {}),
        "interactions": len(data),
        "repeats_left_out": data.repeats_left_out,
        "fingerprint": data.fingerprint,
    }
    replaced = out.exists() and any(out.iterdir())
    write_split_folder(out, splits, settings, header=not bare)
    if replaced:
        click.echo(f"An earlier split in {out} was replaced.", err=True)
    click.echo(f"{data.name}: {len(data):,} interactions of {data.n_users:,} users with {data.n_items:,} items")
    if data.repeats_left_out:
        click.echo(f"  {data.repeats_left_out:>12,}  rows of the source repeat a user's item and are left out")
    for path, rows in files_of(splits).items():
        click.echo(f"  {len(rows):>12,}  {out / path}")


def _division(chosen: dict[str, Any]) -> tuple[str, Division]:
    """The one way of splitting that was chosen, and what its flags ask for."""
    from federank.data.splits import Division

    ways = [flag for flag in _NAMES if chosen[flag] not in (None, False)]
    if len(ways) != 1:
        flags = ", ".join(f"--{way}" for way in _NAMES.values())
        problem = "No way of splitting is chosen" if not ways else f"{len(ways)} ways of splitting are chosen"
        raise SettingError(f"{problem}; give exactly one of {flags}.")
    [flag], validation = ways, chosen["validation"]
    if validation and flag == "folds":
        raise SettingError("Folds have no validation part; leave --validation out.")
    if flag == "leave_last_out" and validation not in (0, 1):
        raise SettingError("With --leave-last-out, validation is one interaction of each user: give --validation 1.")
    # The value of a way's flag is the share of its test, or its number of folds.
    amount = {"folds": chosen[flag]} if flag == "folds" else {"test": chosen[flag]} if _NAMES[flag] in _SHARES else {}
    rest = {name: chosen[name] for name in ("validation", "seed", "mirrored")}
    return flag, Division(way=_NAMES[flag], **amount, **rest)


@click.group()
def data() -> None:
    """Known data sets: list, get, look at, split; and the synthetic city.

    FEDERANK_DATA names the folder of the data sets; without it they are in your user cache.

    \b
    Example:
      federank data stats city
    """


data.add_command(split)


@data.command(name="list")
@JSON
def list_known(as_json: bool) -> None:
    """List the known data sets, and which are here.

    \b
    Example:
      federank data list
    """
    from federank.cli.tables import new_table, show
    from federank.data.datasets import KNOWN, data_folder, find

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

    table = new_table("Name", "Data set", "Interactions>", "Download>", "Here")
    for name, known in KNOWN.items():
        here = "always" if known.generated else "yes" if places[name] else "no"
        count = "" if known.interactions is None else f"{known.interactions:,}"
        download = f"{known.size / 1e6:,.0f} MB" if known.size else "none" if known.generated else "by hand"
        table.add_row(name, known.title, count, download, here)
    show(table)
    click.echo(f"They are in {data_folder()}. Install one with `federank data get NAME`.")


@data.command()
@click.argument("name")
@click.option("--from", "copy", type=FILE, help="Install this copy instead.")
def get(name: str, copy: Path | None) -> None:
    """Fetch a known data set from its publisher.

    A download that was cut goes on where it stopped. What arrives is checked, and installed only if it is right.
    A local copy is installed with --from. The publisher's terms are printed: they bind you.

    \b
    Example:
      federank data get ml-100k
    """
    from federank.data.datasets import find, known_set

    known, place = known_set(name), find(name)
    click.echo(known.title)
    for line in (known.terms, f"Cite: {known.citation}" if known.citation else ""):
        if line:
            click.echo(click.wrap_text(line, width=78, initial_indent="  ", subsequent_indent="  "))
    if known.generated:
        click.echo(f"{name} is generated whenever it is used; there is nothing to get.")
    elif copy is None and place is not None:
        click.echo(f"It is already here: {place}")
    else:
        click.echo(f"Installed: {_download(known) if copy is None else _install(known, copy, place)}")
        click.echo(f"Next: federank data stats {name}")


@data.command(cls=Command)
@reads_data
@JSON
@click.option("--plot", type=FILE, help="Also draw a picture (png, pdf, svg).")
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
    from federank.cli.tables import show_statistics
    from federank.data.splits import split_temporal
    from federank.data.statistics import category_shares, draw_statistics, statistics, top_categories

    described = reading.interactions()
    if training:
        described = split_temporal(described, 0.2).train
    numbers = statistics(described)
    top = (
        None
        if described.categories is None
        else category_shares(top_categories(described.categories), described.popularity)
    )
    if plot is not None:
        draw_statistics(described, plot)
    if as_json:
        gathered = {} if top in (None, numbers.categories) else {"top_categories": [asdict(one) for one in top or ()]}
        click.echo(json.dumps(numbers.as_dict() | gathered, indent=2))
        return

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

    It is written to a file, or without one shown in numbers. No real user or place is in it. The same sizes and
    seed give the same city everywhere.

    \b
    Examples:
      federank data city
      federank data city --people 5000 --places 4000 --checkins 200000 --out city.tsv
    """
    from federank.cli.tables import show_statistics
    from federank.data import synthetic
    from federank.data.split_files import write_tsv
    from federank.data.statistics import statistics

    built = synthetic.city(people=people, places=places, checkins=checkins, seed=seed)
    if out is None:
        show_statistics(statistics(built))
        return

    write_tsv(built, out)
    click.echo(f"Written: {len(built):,} synthetic check-ins to {out}")


def _steps(known: KnownSet) -> str:
    """How a user who has the file gets the papers' tables on it: three lines."""
    from federank.studies.documents import packaged

    studies = [name for name, document in packaged().items() if known.name in str(document.get("data"))]
    run = " and ".join(f"`federank study run {name}`" for name in studies)
    third = f"\n3. {run} then runs the papers' tables and figures on it too." if studies else ""
    return f"1. {known.how_to_obtain}\n2. Run `federank data get {known.name} --from FILE`.{third}"


def _install(known: KnownSet, copy: Path, place: Path | None) -> Path:
    """Install a local copy: checked against the publisher's sum, or read once where there is none."""
    from federank.data.datasets import install_path
    from federank.data.download import install_copy
    from federank.data.loading import load

    target = install_path(known, copy.name)
    if place is not None and place != target:
        raise DataError(f"{known.title} is already here, at {place}. Delete that first to install another copy.")
    if known.md5 is None and copy.is_file():
        click.echo(f"Read: {load(copy)!r}")
    try:
        install_copy(copy, target, known.size, known.md5)
    except BadFile as mistake:
        trust = f" If you trust your copy all the same, put it at {target} yourself." if copy.is_file() else ""
        raise BadFile(f"{mistake}{trust}") from mistake
    return target


def _download(known: KnownSet) -> Path:
    """Fetch from the publisher with a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from federank.data.datasets import install_path
    from federank.data.download import fetch

    if known.address is None or known.size is None or known.md5 is None:
        raise DataError(f"{known.title} has no public address that is sure to stay.\n{_steps(known)}")
    target = install_path(known, known.files[0])
    columns = (TextColumn(known.title), BarColumn(None), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=known.size)
            shown = partial(bar.update, task)
            fetch(known.address, target, known.size, known.md5, progress=lambda done: shown(completed=done))
    except DownloadError as mistake:
        raise DownloadError(
            f"{mistake} Or fetch it in another way and run `federank data get {known.name} --from FILE`."
        ) from mistake
    return target
