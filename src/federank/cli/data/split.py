"""`federank data split`: a data set as files to train on and to test on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from federank.cli.reading import Reading, reads_data
from federank.data.ways import FOLDS, WAYS, Division, divide, refuse_empty_parts
from federank.errors import SettingError

_NAMES = {way.replace("-", "_"): way for way in (*WAYS, FOLDS)}
"""What Click calls the flag of each way."""


@click.command()
@click.option("--temporal", type=float, metavar="SHARE", help="Test on each user's newest, as the papers do.")
@click.option("--global-temporal", type=float, metavar="SHARE", help="Test on the newest of all: one moment for all.")
@click.option("--leave-last-out", is_flag=True, help="Test on each user's newest interaction.")
@click.option("--random", type=float, metavar="SHARE", help="Test on some of each user's, drawn at random.")
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
    help="Seed of --random and --folds.",
)
@click.option("--mirrored", is_flag=True, help="Let time run backwards first: a stand-in (docs/data.md).")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", required=True, help="The folder to write.")
@click.option("--bare", is_flag=True, help="Write no header line, as Elliot reads it.")
@reads_data
def split(reading: Reading, out: Path, bare: bool, **chosen: Any) -> None:
    """Split a known set or a file into train.tsv and test.tsv.

    Choose one way: --temporal, --global-temporal, --leave-last-out, --random or --folds. The folder also gets
    split.json, with the settings, the counts and the fingerprint of the data. Without a name or file, the
    synthetic city is split.

    \b
    Examples:
      federank data split city --temporal 0.2 --out city-split
      federank data split city --folds 5 --seed 7 --out city-folds
    """
    from federank.data.stored.split_folder import files_of, refuse_foreign_folder, write_split_folder

    way = _way(chosen)
    division = _division(way, chosen)
    refuse_foreign_folder(out)
    data = reading.interactions()
    splits = divide(data, division)
    refuse_empty_parts(splits, division)
    settings = {
        **reading.kept(),
        "way": division.way,
        way: chosen[way],
        "validation": division.validation,
        **({"seed": division.seed} if division.way in ("random", FOLDS) else {}),
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


def _way(chosen: dict[str, Any]) -> str:
    """The flag of the one way of splitting that was chosen."""
    ways = [flag for flag in _NAMES if chosen[flag] not in (None, False)]
    flags = ", ".join(f"--{way}" for way in _NAMES.values())
    if len(ways) != 1:
        found = "No way of splitting is chosen" if not ways else f"{len(ways)} ways of splitting are chosen"
        raise SettingError(f"{found}; give exactly one of {flags}.")
    if chosen["validation"] and ways[0] == "folds":
        raise SettingError("Folds have no validation part; leave --validation out.")
    if ways[0] == "leave_last_out" and chosen["validation"] not in (0, 1):
        raise SettingError("With --leave-last-out, validation is one interaction of each user: give --validation 1.")
    return ways[0]


def _division(flag: str, chosen: dict[str, Any]) -> Division:
    """What the flags ask for; the value of a way's flag is the share of its test, or its number of folds."""
    way, rest = (
        _NAMES[flag],
        {
            "validation": chosen["validation"],
            "seed": chosen["seed"],
            "mirrored": chosen["mirrored"],
        },
    )
    if way == FOLDS:
        return Division(way=way, folds=chosen[flag], **rest)
    return Division(way=way, **rest) if way == "leave-last-out" else Division(way=way, test=chosen[flag], **rest)
