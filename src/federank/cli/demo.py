"""`federank demo`: the whole story on a synthetic city, and a page to look at.

1. A city is made up and split, as the papers do it.
2. Six methods learn, with and without a federation, FPL at several values of pi and Frugal with a few messages: a
   study (studies/demo.toml).
3. A honest-but-curious server is let loose on FPL's messages, on Frugal's, and on sums of Frugal's (audit/).
4. The report of it all is written: report.html, and the results it was made from.

Nothing is fetched. Everything is written to a folder of its own: under a temporary name first, so that it is there
whole or not at all. A folder that the demo made before gives way; any other is left alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.errors import BadFile, SettingError
from federank.files import folder_in_place

if TYPE_CHECKING:
    from federank.data.splits import Split
    from federank.studies.results import Line
    from federank.studies.rows import Row

MARK = "made-by-federank-demo.txt"
"""The file by which the demo knows a folder of its own."""

AUDITS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("FPL, pi = 1", "fpl", {"epochs": 60, "pi": 1.0}, "updates"),
    ("FPL, pi = 0.1", "fpl", {"epochs": 60, "pi": 0.1}, "updates"),
    ("FPL, sticky 30 %", "fpl", {"epochs": 60, "pi": 0.3, "sharing": "fixed-subset"}, "updates"),
    ("Frugal, plain", "frugal", {}, "plain"),
    ("Frugal, sums", "frugal", {}, "sums"),
)
"""What is audited: a name, the method with its settings, and what the server sees."""
_SEES = {"updates": "every message", "plain": "every message", "sums": "sums of all"}
_NEXT_TO_NOTHING = 0.02


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("federank-demo"),
    show_default=True,
    help="Where the report goes.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="S", default=1, show_default=True, help="Seed of the runs.")
@click.option("--serve", is_flag=True, help="Open the city to your browser instead, with virtual neighbours.")
@click.option("--films", is_flag=True, help="With --serve: films that people know, with made-up tastes, not the city.")
@click.option(
    "--host",
    metavar="ADDRESS",
    help="With --serve: for phones too, over https, at this address of the network; 0.0.0.0 finds it.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="Where --serve listens.")
def demo(out: Path, seed: int, serve: bool, films: bool, host: str | None, port: int) -> None:
    """Make up a city, learn from it with and without a federation, audit it, and write a report.

    Nothing is fetched: the city is made up on the spot, and no real person or place is in it.

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
    from federank.data.statistics import statistics
    from federank.studies.report import write_report
    from federank.studies.results import Results

    click.echo("1. A city. It is synthetic: synthetic people check in at synthetic places.\n")
    data, split = _city_and_split()
    show_statistics(statistics(data))
    click.echo("2. A split, as the papers make it: of everyone with 20 check-ins or more,")
    click.echo("   the newest fifth is for the test.\n")
    table = new_table("Part", "Interactions>", "People>", "Places>")
    for name, part in (("train", split.train), ("test", split.test)):
        held = part.compact()
        table.add_row(name, f"{len(held):,}", f"{held.n_users:,}", f"{held.n_items:,}")
    show(table)

    click.echo("3. Learning. Centralised methods see every history. FPL sees none: devices send")
    click.echo("   gradients, and those of places their owner likes only with probability pi.")
    click.echo("   (The first time, this compiles for some seconds.)\n")
    audits = _Beside(lambda: [_audited(*audit, split, seed) for audit in AUDITS])
    rows = _learn(folder / "results", seed)
    _show_methods(rows)
    _show_sweep(rows)
    _show_lifetimes(rows)

    click.echo("4. A honest-but-curious server keeps every message of FPL as published, and guesses who")
    click.echo("   went where. Then the same city with Frugal: once with its messages sent")
    click.echo("   plainly, and once with nothing to read but sums over everyone.\n")
    lines = audits.result()
    for line in lines:
        Results.open(folder / "results").append(line)
    _show_audits(lines)

    write_report(folder / "results", html=folder / "report.html")
    click.echo("5. A report of all this, with figures, is written.")
    click.echo("   Next: .venv/bin/federank train frugal --data city --out runs/city\n")


def _city_and_split() -> tuple[Any, Split]:
    from federank.data.splits import split_temporal
    from federank.data.synthetic import city

    data = city()
    return data, split_temporal(data.keep_users(min_interactions=20), test=0.2)


def _learn(results: Path, seed: int) -> list[Row]:
    """Carry out the demo's study in a process of its own; the rows of its tables."""
    from importlib.resources import as_file, files

    from federank.studies.pool import Pool
    from federank.studies.progress import Bar
    from federank.studies.rows import gather
    from federank.studies.run import carry_out_study
    from federank.studies.spec import as_study, read_document

    with as_file(files("federank.studies").joinpath("demo.toml")) as path:
        document = read_document(path) | {"seeds": [seed]}
    with Bar(quiet=not sys.stderr.isatty()) as bar, Pool(1) as pool:
        lines = carry_out_study(as_study(document, "demo"), results, pool, bar).lines()
    return gather(lines)


def _show_methods(rows: list[Row]) -> None:
    from federank.cli.tables import new_table, show

    table = new_table("Method", "Precision@10>", "nDCG@10>", "Places shown>")
    for row in rows:
        if not row.swept or (row.group, row.at("pi")) == ("FPL", 1.0):
            name = row.group if row.swept else f"{row.group} (centralised)"
            table.add_row("Random" if row.group == "Random" else name, *_scores(row))
    show(table)


def _show_sweep(rows: list[Row]) -> None:
    from federank.cli.tables import new_table, show

    sweep = [row for row in rows if row.group == "FPL"]
    precision = {row.at("pi"): row.mean("precision@10") or 0.0 for row in sweep}
    best = max(precision, key=lambda pi: precision[pi])
    click.echo(
        f"   A little goes a long way: with pi = 0.1 FPL reaches {precision[0.1] / precision[best]:.0%} of its best"
    )
    click.echo(f"   precision, which it has with pi = {best:g}. With pi = 0 only comparisons leave.\n")
    table = new_table("FPL with pi>", "Precision@10>", "nDCG@10>", "Places shown>")
    for row in sweep:
        table.add_row(f"{row.at('pi'):g}", *_scores(row))
    show(table)


def _show_lifetimes(rows: list[Row]) -> None:
    from federank.cli.tables import new_table, show

    frugal = {row.at("messages"): row for row in rows if row.group == "Frugal"}
    [fpl] = [row for row in rows if (row.group, row.at("pi")) == ("FPL", 1.0)]
    dearer = (fpl.mean("lifetime_megabytes") or 0.0) / (frugal[5].mean("lifetime_megabytes") or 1.0)
    click.echo("   Frugal, whose devices solve for their own vector, says more with less: FPL's")
    click.echo(f"   devices send and receive {dearer:,.0f} times as much in their lifetime.\n")
    table = new_table("Method", "Messages>", "Megabytes>", "Precision@10>", "nDCG@10>", "Places shown>")
    for row in (fpl, *frugal.values()):
        sent = f"{row.mean('lifetime_messages') or 0.0:,.0f}", f"{row.mean('lifetime_megabytes') or 0.0:,.2f}"
        table.add_row(row.group, *sent, *_scores(row))
    show(table)


def _scores(row: Row) -> tuple[str, str, str]:
    precision, gain, shown = (row.mean(f"{metric}@10") or 0.0 for metric in ("precision", "ndcg", "item_coverage"))
    return f"{precision:.4f}", f"{gain:.4f}", f"{shown:,.0f}"


class _Beside:
    """Work that goes on in a thread of its own while the story is told; Ctrl-C does not wait for it."""

    def __init__(self, work: Callable[[], list[Line]]) -> None:
        self._found: Future[list[Line]] = Future()
        threading.Thread(target=self._carry_out, args=(work,), daemon=True).start()

    def _carry_out(self, work: Callable[[], list[Line]]) -> None:
        try:
            self._found.set_result(work())
        except BaseException as reason:
            self._found.set_exception(reason)

    def result(self) -> list[Line]:
        """What came of it, or what went wrong."""
        return self._found.result()


def _audited(name: str, method: str, settings: dict[str, Any], sees: str, split: Split, seed: int) -> Line:
    """Train once more under the eyes of a honest-but-curious server: what it found, as a line of the study's
    results.
    """
    import hashlib

    from federank.audit.audit import audit_training
    from federank.evaluation.evaluate import evaluate
    from federank.methods.registry import recommender_class
    from federank.studies.results import Line
    from federank.studies.task import headline, marks_of

    model = recommender_class(method)(seed=seed, **settings)
    findings, about = audit_training(model, split.train, sees=sees)
    found = findings[-1]
    precision = evaluate(model, split, at=10, metrics=["precision"]).means["precision@10"]
    return Line(
        id=hashlib.sha256(repr((name, settings, seed)).encode()).hexdigest()[:16],
        group=name,
        data="city",
        model=method,
        settings=settings,
        seed=seed,
        task="audit",
        metrics={"precision@10": precision, **marks_of(found), **headline(found)},
        seconds=sum(about["seconds"].values()),
        extra={"sees": _SEES[sees]},
    )


def _show_audits(lines: list[Line]) -> None:
    from federank.cli.tables import new_table, show

    table = new_table("Learning", "Server sees", "Precision@10>", "Guessed>", "Popularity>")
    for line in lines:
        cells = (
            f"{line.metrics['precision@10']:.4f}",
            *(f"{line.metrics[mark]:.3f}" for mark in ("auc", "popularity")),
        )
        table.add_row(line.group, line.extra["sees"], *cells)
    show(table)
    click.echo("   Guessed: how often the server's best attack ranks a place where the")
    click.echo("   person was above one where they were not (0.5 is chance, 1 is certainty),")
    click.echo("   beside what popularity alone tells anyone.")
    published, sums = lines[0].metrics, lines[-1].metrics
    learnt, hits = (sums["gain"] or 0.0), (sums["precision@10"] or 0.0) / (published["precision@10"] or 1.0)
    click.echo("   As published, a low pi is no privacy: what is held back today is sent another")
    click.echo("   day. A plain message of Frugal tells all that it was made from.")
    if learnt <= _NEXT_TO_NOTHING:
        click.echo("   From sums over everybody the server learns no more than popularity tells, and")
        click.echo(f"   the lists hit {hits:.1f} times as often as those of FPL as published.")
    else:
        click.echo(f"   From sums over everybody the server learns {learnt:+.3f} over popularity.")
    click.echo("   docs/privacy.md tells who could still read more.\n")


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
