"""`federank train METHOD`: read data, split it, learn, and keep the model with its split in a folder."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.checks import unknown_name
from federank.cli.plan import SURELY_LITTLE
from federank.cli.reading import Reading, reads_data_option
from federank.cli.train_options import TRACK_HELP, offered, refuse_idle_flags, refuse_settings_without_effect
from federank.data.interactions import Interactions
from federank.data.splits import WAYS
from federank.errors import ModelError, SettingError
from federank.methods.registry import help_of, method_names, recommender_class

if TYPE_CHECKING:
    from federank.cli.reading import Reading
    from federank.data.splits import Split
    from federank.methods.recommender import Recommender
    from federank.simulation.federated import EngineName
    from federank.simulation.options import Progress, TrainingOptions


# `federank train frugal --preset affordable`: the guarantee that the size of a federation can have for little.


AFFORDABLE = "affordable"


def refuse_beside_affordable(settings: Mapping[str, Any], *, folds: int | None, search: bool) -> None:
    """Refuse what says the same in another way, or goes by another size."""
    given = [name for name in ("epsilon", "sigma") if settings.get(name) is not None]
    flag = f"--{given[0]}" if given else "--folds" if folds is not None else "--search" if search else None
    if flag:
        raise SettingError(
            f"--preset affordable chooses the guarantee by the size of the data; leave out {flag}, or it."
        )


def affordable_guarantee(part: Interactions, settings: Mapping[str, Any]) -> dict[str, float]:
    """The setting that the preset stands for with this data: an epsilon, or nothing; told on standard error."""
    from federank.methods.frugal.private_server import affordable

    people, items = part.n_users, part.n_items
    epsilon = affordable(people, items, settings.get("delta", 1e-6))
    size = f"{people:,} people and {items:,} items"
    if epsilon is None:
        click.echo(f"{size}: no epsilon up to 16 {SURELY_LITTLE}, so sums carry no noise.", err=True)
        return {}
    epsilon = math.ceil(100 * epsilon) / 100
    click.echo(f"{size}: epsilon {epsilon:g} {SURELY_LITTLE}.", err=True)
    return {"epsilon": epsilon}


class Methods(click.Group):
    """One command per method, whose flags are made from the method's settings when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The methods' names."""
        return method_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command that trains this method."""
        if cmd_name not in method_names():
            raise SettingError(unknown_name("method", cmd_name, method_names()))
        from federank.cli.settings_flags import given_settings, names_of, settings_options

        method = recommender_class(cmd_name)
        common = [*_preset(cmd_name), *_search(method), *offered(method, _common.params)]
        names = cmd_name, names_of(common)

        def run(**values: Any) -> None:
            _train(method, given_settings(method.settings_type, values, *names), **values)

        example = f"federank train {cmd_name} --out runs/{cmd_name}"
        return click.Command(
            cmd_name,
            callback=run,
            help=f"{help_of(cmd_name)}\n\n\b\nExample:\n  {example}",
            params=[*settings_options(method.settings_type, *names), *common],
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of methods, without importing any of ours."""
        with formatter.section("Methods"):
            formatter.write_dl([(name, help_of(name)) for name in method_names()])


@click.command(cls=Methods, subcommand_metavar="METHOD [OPTIONS]...")
def train() -> None:
    """Train a method and keep the model, with its split, in a folder.

    Each user's newest 20 % are held out for a test, as in the papers, unless --split says otherwise.

    \b
    Examples:
      federank train fpl --data city --pi 0.3 --out runs/city
      federank train fpl --data city --preset pfpl+ --threads 2 --out runs/parallel
      federank train fpl --help
    """


@click.command()
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", required=True, help="The folder to write.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier model, or an interrupted run, of that name.")
@click.option(
    "--split",
    "way",
    metavar="WAY",
    default="temporal",
    show_default=True,
    help=f"{', '.join(WAYS)}; none to learn from everything; or a folder that `federank data split` wrote.",
)
@click.option(
    "--test", type=float, metavar="SHARE", default=0.2, show_default=True, help="Share held out for the test."
)
@click.option("--validation", type=float, metavar="SHARE", default=0.0, help="Share of the rest held out for choosing.")
@click.option("--split-seed", type=int, metavar="N", default=1, help="Seed of a random split, or of folds.")
@click.option("--folds", type=int, metavar="K", help="Train K models, each tested on another random part of the data.")
@click.option(
    "--engine",
    type=click.Choice(["compiled", "reference", "cluster"]),
    default="compiled",
    help="How rounds are played; cluster: devices spread over machines.",
)
@click.option("--cluster", metavar="ADDRESS", help="For --engine cluster: local (default), or ray://HOST:10001.")
@click.option("--shards", type=int, metavar="N", help="For --engine cluster: processes to spread devices over.")
@click.option("--threads", type=int, metavar="N", default=1, show_default=True, help="Cores; the result is the same.")
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop once N epochs brought nothing better on validation, and keep the best epoch; --epochs is the most.",
)
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--count/--no-count", default=True, help="Count what was sent, row by row.  [default: count]")
@click.option("--track", metavar="TRACKER", help=TRACK_HELP)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@reads_data_option
def _common(**_: Any) -> None:
    """The options that every method has."""


def _preset(method: str) -> list[click.Parameter]:
    if method == "frugal":
        told = "affordable: with noise, if with this many people it surely costs less than a tenth of the accuracy."
        return [click.Option(["--preset"], type=click.Choice([AFFORDABLE]), help=told)]
    if method != "fpl":
        return []
    from federank.methods.fpl.settings import PRESETS

    return [click.Option(["--preset"], type=click.Choice(list(PRESETS)), help="A published configuration by name.")]


def _search(method: type[Recommender]) -> list[click.Parameter]:
    if not method.searched:
        return []
    names = ", ".join(method.searched)
    told = (
        f"First tune {names} on validation: --validation, or else a part of what is learnt from, cut as the test was."
    )
    return [click.Option(["--search"], is_flag=True, help=told)]


def _train(
    method: type[Recommender],
    given: dict[str, Any],
    *,
    out: Path,
    overwrite: bool,
    way: str,
    test: float,
    validation: float,
    split_seed: int,
    folds: int | None,
    engine: EngineName,
    cluster: str | None,
    shards: int | None,
    threads: int,
    patience: int | None,
    resume: bool,
    count: bool,
    track: str | None,
    quiet: bool,
    as_json: bool,
    preset: str | None = None,
    search: bool = False,
    **reading: Any,
) -> None:
    from federank.cli.train_report import count_communication, tell, warn_of_named_items
    from federank.methods.fpl.settings import PRESETS
    from federank.simulation.options import TrainingOptions

    refuse_idle_flags(method, way, folds)
    settings = PRESETS.get(preset or "", {}) | given
    model = method(**settings)
    if preset == AFFORDABLE:
        refuse_beside_affordable(settings, folds=folds, search=search)
    else:
        refuse_settings_without_effect(model.settings, given)
    warn_of_named_items(model.settings)
    checkpoint = out.parent / f"{out.name}.checkpoint"
    training_options = TrainingOptions(engine=engine, threads=threads, cluster=cluster, shards=shards)
    if folds is not None:
        _refuse_other_split(way)
        if track is not None:
            raise SettingError("--track tells of one model, and --folds makes several; leave one of them out.")
        if search or patience:
            flag = "--search" if search else "--patience"
            raise SettingError(f"{flag} goes by one validation part, and --folds has none; leave one of them out.")
        with watching(method, quiet) as watch:
            train_folds(
                method,
                settings,
                Reading(**reading),
                out,
                replace(training_options, progress=watch),
                folds=folds,
                split_seed=split_seed,
                overwrite=overwrite,
                resume=resume,
                count=count,
                as_json=as_json,
            )
        return
    refuse_lost_work(out, checkpoint, overwrite=overwrite, resume=resume)
    tracker = None
    if track is not None:  # what cannot be told is refused before anything is learnt
        from federank.studies.tracking import open_tracker

        tracker = open_tracker(track, "federank train")
    part, split = _split(Reading(**reading), way, test, validation, split_seed)
    if preset == AFFORDABLE:
        settings |= affordable_guarantee(part, settings)
        model = method(**settings)
    found = None
    if search:
        from federank.cli.train_options import tuned, with_validation

        tuning = with_validation(split, part, way, test, split_seed)
        found = tuned(method, settings, tuning, training_options, quiet=quiet)
        model = method(**found.settings)
    stop = None
    if patience is not None:
        from federank.cli.train_options import stopped_early, with_validation

        settings |= {} if found is None else found.settings
        tuning = with_validation(split, part, way, test, split_seed, flag="--patience")
        stop, model = stopped_early(method, settings, tuning, training_options, patience=patience)
    if method.in_rounds:
        training_options = replace(training_options, checkpoint=checkpoint, resume=resume)
    with watching(type(model), quiet) as watch:
        try:
            model.fit(part, training_options=replace(training_options, progress=watch))
        except KeyboardInterrupt:
            if checkpoint.exists():
                click.echo(f"\nThe run is kept in {checkpoint}; the same command with --resume goes on.", err=True)
            raise
    if found is not None:
        model.report["search"] = found.as_dict()
    if stop is not None:
        model.report["early_stopping"] = stop.as_dict()
    count_communication(model, count)
    model.save(out, split, replaces=overwrite)
    checkpoint.unlink(missing_ok=True)
    if tracker is not None:
        from federank.cli.train_options import track_model

        track_model(tracker, model, split, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), **model.report}))
    else:
        tell(model, out, part)


def refuse_lost_work(out: Path, checkpoint: Path, *, overwrite: bool, resume: bool) -> None:
    """Nothing that took time to make is replaced unless its owner says so."""
    from federank.methods.folds import is_folds
    from federank.methods.model_folder import is_model, refuse_place

    refuse_place(out)
    if overwrite:
        checkpoint.unlink(missing_ok=True)
        return
    if is_model(out) or is_folds(out):
        raise ModelError(f"{out} holds a model already; choose another --out, or add --overwrite to replace it.")
    if checkpoint.exists() and not resume:
        raise ModelError(
            f"{checkpoint} is left of an interrupted run; add --resume to go on with it, or --overwrite to start again."
        )


def _refuse_other_split(way: str) -> None:
    if way != "temporal":
        raise SettingError("--folds divides the data at random by itself; leave out --split.")


def _refuse_reading_options() -> None:
    """A folder of parts is taken as it is: what would read or filter data has nothing to act on."""
    context = click.get_current_context()
    given = [
        name
        for name in Reading.__dataclass_fields__
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        flag = "--data" if given[0] == "source" else f"--{given[0].replace('_', '-')}"
        raise SettingError(f"--split names a folder of parts, which are taken as they are; leave out {flag}.")


def _split(reading: Reading, way: str, test: float, validation: float, seed: int) -> tuple[Interactions, Split | None]:
    """What to learn from, and the split it is part of, if it is part of one."""
    from federank.data.split_files import read_split
    from federank.data.splits import Division, divide

    if way == "none":
        return reading.interactions(), None
    if way in WAYS:
        division = Division(way=way, test=test, validation=validation, seed=seed)
        [split] = divide(reading.interactions(), division)
        return split.train, split
    if not Path(way).is_dir():
        raise SettingError(
            f"--split is {way!r}; it can be {', '.join(WAYS)}, none, or a folder that `federank data split` wrote."
        )
    _refuse_reading_options()
    split = read_split(Path(way))
    return split.train, split


@contextmanager
def watching(method: type[Recommender], quiet: bool) -> Iterator[Any]:
    """A bar on stderr: epoch, triples or ratings per second, time left."""
    if quiet or not method.in_rounds:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f}%  {task.fields[now]}"), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, now="getting ready (a first run compiles for some seconds)")

        def watch(now: Progress) -> None:
            speed = f"{now.triples_per_second / 1e6:.1f} million {method.learns_from}/s"
            shown = f"epoch {now.epoch}/{now.epochs}, {speed}"
            bar.update(task, completed=now.round_number, total=now.rounds, now=shown)

        yield watch


# `federank train METHOD --folds K`: a model for each of K random parts of the data, which it is tested on.


def train_folds(
    method: type[Recommender],
    settings: dict[str, Any],
    reading: Reading,
    out: Path,
    training_options: TrainingOptions,
    *,
    folds: int,
    split_seed: int,
    overwrite: bool,
    resume: bool,
    count: bool,
    as_json: bool,
) -> None:
    """Train the models one after the other and keep them in one folder."""
    from federank.cli.train_report import count_communication
    from federank.data.splits import split_folds
    from federank.methods.folds import is_folds, train_each, unfinished
    from federank.methods.model_folder import refuse_place

    refuse_place(out)
    if overwrite and not resume:
        shutil.rmtree(unfinished(out), ignore_errors=True)
    _refuse_lost_work(out, replaceable=overwrite and is_folds(out))

    def fit(model: Recommender, split: Split, number: int, checkpoint: Path) -> None:
        click.echo(f"Fold {number} of {folds}", err=True)
        here = (
            replace(training_options, checkpoint=checkpoint, resume=checkpoint.exists())
            if method.in_rounds
            else training_options
        )
        model.fit(split.train, training_options=here)
        count_communication(model, count)

    splits = split_folds(reading.interactions(), folds, split_seed)
    try:
        models = train_each(lambda: method(**settings), splits, out, fit, resume=resume)
    except KeyboardInterrupt:
        click.echo(f"\nThe run is kept in {unfinished(out)}; the same command with --resume goes on.", err=True)
        raise
    if as_json:
        click.echo(json.dumps({"out": str(out), "folds": [model.report for model in models]}))
        return
    seconds = sum(model.report.get("seconds", 0.0) for model in models)
    click.echo(f"{folds} models of {method.name} learnt in {seconds:.1f} s. Kept in {out}.")
    click.echo(f"Next: federank evaluate {out}")


def _refuse_lost_work(out: Path, *, replaceable: bool) -> None:
    """Nothing that took time to make is replaced unless its owner says so; only folds are replaced by folds."""
    if out.exists() and not replaceable and (not out.is_dir() or any(out.iterdir())):
        raise ModelError(f"{out} is there already; choose another --out, or add --overwrite to replace earlier folds.")
