"""`federank data split`, or `federank split` for short: a data set as files to train on and to test on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.reading import Reading, reads_data
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.data.interactions import Interactions
    from federank.data.splits import Split

WAYS = ("temporal", "global_temporal", "leave_last_out", "random", "folds")


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
    refuse_foreign_folder(out)
    data = reading.interactions()
    splits = _split(data, way, chosen)
    _refuse_empty_parts(splits, chosen["validation"])
    settings = {
        **reading.kept(),
        "way": way.replace("_", "-"),
        way: chosen[way],
        "validation": chosen["validation"],
        **({"seed": chosen["seed"]} if way in ("random", "folds") else {}),
        "interactions": len(data),
        "fingerprint": data.fingerprint,
    }
    replaced = out.exists() and any(out.iterdir())
    write_split_folder(out, splits, settings, header=not bare)
    if replaced:
        click.echo(f"An earlier split in {out} was replaced.", err=True)
    click.echo(f"{data.name}: {len(data):,} interactions of {data.n_users:,} users with {data.n_items:,} items")
    for path, rows in files_of(splits).items():
        click.echo(f"  {len(rows):>12,}  {out / path}")


def _way(chosen: dict[str, Any]) -> str:
    """The one way of splitting that was chosen."""
    ways = [way for way in WAYS if chosen[way] not in (None, False)]
    flags = ", ".join(f"--{way.replace('_', '-')}" for way in WAYS)
    if len(ways) != 1:
        found = "No way of splitting is chosen" if not ways else f"{len(ways)} ways of splitting are chosen"
        raise SettingError(f"{found}; give exactly one of {flags}.")
    if chosen["validation"] and ways[0] == "folds":
        raise SettingError("Folds have no validation part; leave --validation out.")
    if ways[0] == "leave_last_out" and chosen["validation"] not in (0, 1):
        raise SettingError("With --leave-last-out, validation is one interaction of each user: give --validation 1.")
    return ways[0]


def _refuse_empty_parts(splits: list[Split], validation: float) -> None:
    """A part that nobody has anything in cannot be tested on: say so before anything is written."""
    for split in splits:
        empty = [] if len(split.test) else ["test"]
        if validation and not split.validation:
            empty.append("validation")
        if empty:
            raise SettingError(
                f"The {empty[0]} part would be empty: a share of everybody's history is rounded down, and nobody has "
                "enough of it. Ask for a larger share, or keep users with more interactions (--min-interactions)."
            )


def _split(data: Interactions, way: str, chosen: dict[str, Any]) -> list[Split]:
    from federank.data import splits

    share, validation, seed = chosen[way], chosen["validation"], chosen["seed"]
    if way == "temporal":
        return [splits.split_temporal(data, test=share, validation=validation)]
    if way == "global_temporal":
        return [splits.split_temporal_global(data, test=share, validation=validation)]
    if way == "leave_last_out":
        return [splits.split_leave_last_out(data, validation=validation == 1)]
    if way == "random":
        return [splits.split_random(data, test=share, validation=validation, seed=seed)]
    return splits.split_folds(data, folds=share, seed=seed)
