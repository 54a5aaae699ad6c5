"""`federank demo`: the papers' method on a synthetic city, what its server learns, then Frugal; and a page to look at.

1. A synthetic city is generated and split, as the papers do it.
2. The packaged study `demo` is carried out: centralised methods, FPL at several values of pi, each at its best epoch,
   and Frugal. `federank study run demo` gives the same numbers.
3. An honest-but-curious server has observed runs of FPL and of Frugal, the latter plain and under secure aggregation.
4. The report is written: report.html, and the results it was made from.

Nothing is fetched. Everything is written to a folder of its own: under a temporary name first, so that it is there
complete or not at all. A folder that the demo made before gives way; any other is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from federank.cli.options import FOLDER
from federank.errors import BadFile, SettingError
from federank.files import folder_in_place

if TYPE_CHECKING:
    from federank.studies.rows import Row

MARK = "made-by-federank-demo.txt"
"""The file by which the demo knows a folder of its own."""

STUDY = "demo"
CONFIGURATIONS = (
    ("FPL, pi = 1", "FPL, audited", 1.0, "updates", "operator"),
    ("FPL, pi = 0.1", "FPL, audited", 0.1, "updates", "operator"),
    ("Frugal, plain", "Frugal, audited", 5, "plain", "operator"),
    ("Frugal, helper", "Frugal, audited", 5, "sums", "neither"),
)
"""What is compared: a name, the study's row and its swept value, what the server sees, and who can read an upload."""


@click.command()
@click.option("--out", type=FOLDER, default=Path("federank-demo"), show_default=True, help="Where the report goes.")
@click.option("--seed", type=click.IntRange(min=0), metavar="S", default=1, show_default=True, help="Seed of the runs.")
@click.option("--serve", is_flag=True, help="Open the city to your browser instead, with simulated clients.")
@click.option("--films", is_flag=True, help="With --serve: real films, with synthetic tastes, instead of the city.")
@click.option(
    "--host",
    metavar="ADDRESS",
    help="With --serve: for phones too, over https, at this address of the network; 0.0.0.0 finds it.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="Where --serve listens.")
def demo(out: Path, seed: int, serve: bool, films: bool, host: str | None, port: int) -> None:
    """Run the papers' method on a synthetic city, audit it, then run Frugal, and write a report.

    Nothing is fetched: the city is synthetic, and no real user or place is in it.

    \b
    Examples:
      federank demo
      federank demo --serve
      federank demo --serve --films
      federank demo --serve --films --host 0.0.0.0
    """
    if films and not serve:
        raise SettingError("--films is a catalogue to visit; say --serve with it, or leave it out.")
    if host is not None and not serve:
        raise SettingError("--host is where --serve listens; say --serve with it, or leave it out.")
    if serve:
        from federank.service.demo import serve_demo

        world = "films" if films else "city"
        sys.exit(serve_demo(world=world, seed=seed, host=host or "127.0.0.1", port=port, say=click.echo))
    with _written_atomically(out) as folder:
        _report_story(folder, seed)
    click.echo(f"Open {out / 'report.html'} in a browser.")


def _report_story(folder: Path, seed: int) -> None:
    from federank.cli.tables import new_table, show, show_statistics
    from federank.data.splits import split_temporal
    from federank.data.statistics import statistics
    from federank.data.synthetic import city
    from federank.studies.report import write_report

    click.echo("1. A city. It is synthetic: synthetic users check in at synthetic places.\n")
    data = city()
    split = split_temporal(data.keep_users(min_interactions=20), test=0.2)
    show_statistics(statistics(data))
    click.echo("2. A split, as the papers make it: of everyone with 20 check-ins or more,")
    click.echo("   the newest fifth is for the test.\n")
    table = new_table("Part", "Interactions>", "Users>", "Places>")
    for name, part in (("train", split.train), ("test", split.test)):
        held = part.compact()
        table.add_row(name, f"{len(held):,}", f"{held.n_users:,}", f"{held.n_items:,}")
    show(table)

    click.echo("3. The papers' method. Centralised methods see every history. FPL sees none: a")
    click.echo("   client sends gradients, and those of places its user likes only with")
    click.echo("   probability pi. Each runs at its best epoch, chosen on a validation part.")
    click.echo("   (The first time, this compiles for some seconds.)\n")
    rows = _learn(folder / "results", seed)
    _show_methods(rows)

    click.echo("4. What the server learns. An honest-but-curious server keeps every upload and")
    click.echo("   ranks places by how likely each user was there. Attacker: how often it ranks")
    click.echo("   a place of the history above another (AUC; 0.5 is chance). Popularity: the")
    click.echo("   same by popularity alone. The attacker has no side knowledge.\n")
    _show_configurations(rows, "FPL")
    click.echo("   A low pi is no privacy: what is held back today is sent another day.\n")

    click.echo("5. Frugal, our method: a client solves for its own factors and uploads 5 times.")
    click.echo("   Plain uploads are as readable as FPL's. With a helper, a second server run by")
    click.echo("   another organisation, each upload is split, and both read only the sum over")
    click.echo("   all clients; that takes more megabytes. MB are up and down, per client.\n")
    _show_configurations(rows, "")
    click.echo("   An attacker who knows some places of a user reads more from sums than this")
    click.echo("   one: docs/privacy.md says who, and what noise does about it.\n")

    write_report(folder / "results", html=folder / "report.html")
    click.echo("6. A report of all this, with figures, is written.")
    click.echo("   Next: .venv/bin/federank train federank --data city --out runs/city\n")


def _learn(results: Path, seed: int) -> list[Row]:
    """Carry out the demo's study in a process of its own; the rows of its tables."""
    from federank.studies.documents import packaged
    from federank.studies.pool import Pool
    from federank.studies.rows import gather
    from federank.studies.run import Bar, run_study
    from federank.studies.spec import as_study

    study = as_study(packaged()[STUDY] | {"seeds": [seed]}, STUDY)
    with Bar(quiet=not sys.stderr.isatty()) as bar, Pool(1) as pool:
        records = run_study(study, results, pool, bar).records()
    return gather(records)


def _show_methods(rows: list[Row]) -> None:
    from federank.cli.tables import new_table, show

    table = new_table("Method", "Precision@10>", "nDCG@10>", "Places shown>")
    for row in rows:
        if row.group == "FPL":
            table.add_row(f"FPL, pi = {row.at('pi'):g}", *_scores(row))
        elif not row.swept and not row.group.endswith("audited"):
            table.add_row(row.group if row.group == "Random" else f"{row.group} (centralised)", *_scores(row))
    show(table)


def _scores(row: Row) -> tuple[str, str, str]:
    precision, gain, shown = (row.mean(f"{metric}@10") or 0.0 for metric in ("precision", "ndcg", "item_coverage"))
    return f"{precision:.4f}", f"{gain:.4f}", f"{shown:,.0f}"


def _show_configurations(rows: list[Row], names: str) -> None:
    """One line per configuration: cost, accuracy and leakage of the same mode."""
    from federank.cli.tables import new_table, show

    table = new_table("", "Read by", "Uploads>", "MB>", "P@10>", "Attacker>", "Popularity>")
    for name, group, value, sees, readers in CONFIGURATIONS:
        if name.startswith(names):
            [row] = [row for row in rows if row.group == group and value in dict(row.swept).values()]
            megabytes = "lifetime_written_out" if sees == "sums" else "lifetime_megabytes"
            metrics = ("lifetime_messages", megabytes, "precision@10", f"{sees}:auc", f"{sees}:popularity")
            uploads, size, *rest = (row.mean(metric) or 0.0 for metric in metrics)
            table.add_row(name, readers, f"{uploads:,.0f}", f"{size:,.2f}", *(f"{figure:.3f}" for figure in rest))
    show(table)


@contextmanager
def _written_atomically(out: Path) -> Iterator[Path]:
    """A folder to write into, which takes its place when all is written; someone else's is refused before."""
    if out.exists() and not (out / MARK).is_file():
        raise BadFile(
            f"{out} is there already and was not made by `federank demo`; name another folder with --out, or move it."
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with folder_in_place(out) as draft:
            (draft / MARK).write_text("`federank demo` made this folder, and replaces it when it is run again.\n")
            yield draft
    except OSError as reason:
        raise BadFile(f"{out} cannot be written ({reason.strerror or reason}); name another with --out.") from reason
