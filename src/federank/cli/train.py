"""`federank train METHOD`: read data, split it, train, and store the model with its split in a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import (
    FOLDER,
    READING,
    TRACK_HELP,
    Command,
    MethodGroup,
    flag_of,
    given_settings,
    is_given,
    more,
    names_of,
    preset_option,
    reads_data_option,
    settings_options,
    taken_preset,
    taken_reading,
)
from federank.data.splits import WAYS
from federank.errors import ModelError, SettingError
from federank.methods.registry import epochs_setting, help_of, method_names, recommender_class

if TYPE_CHECKING:
    from federank.data.interactions import Interactions
    from federank.data.splits import Split
    from federank.evaluation.search import Searched, Stop
    from federank.methods.recommender import Recommender
    from federank.simulation.options import Progress, TrainingOptions


def _command(name: str) -> click.Command:
    """The command that trains this method, with its flags alone."""
    method = recommender_class(name)
    common = [*preset_option(name), *_search(method), *offered(method, _common.params)]
    names = name, names_of(common)

    def run(**values: Any) -> None:
        _Training(method, given_settings(method.settings_type, values, *names), values).run()

    return Command(
        name,
        callback=run,
        help=f"{help_of(name)}\n\n\b\nExample:\n  federank train {name} --out runs/{name}",
        params=[*settings_options(method.settings_type, *names), *common],
    )


@click.command(cls=MethodGroup, names=method_names, build=_command)
def train() -> None:
    """Train a method and store the model, with its split, in a folder.

    Each user's newest 20 % are held out for a test, as in the papers, unless --split says otherwise.

    \b
    Examples:
      federank train fpl --data city --pi 0.3 --out runs/city
      federank train fpl --data city --preset pfpl+ --threads 2 --out runs/parallel
      federank train fpl --help
    """


@click.command()
@click.option("--out", type=FOLDER, required=True, help="The folder to write.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier model, or an interrupted run, of that name.")
@click.option(
    "--split",
    "way",
    metavar="WAY",
    default="temporal",
    show_default=True,
    help=f"{', '.join(WAYS)}; none to train on everything; or a folder that `federank data split` wrote.",
)
@click.option(
    "--test", type=float, metavar="SHARE", default=0.2, show_default=True, help="Share held out for the test."
)
@click.option("--validation", type=float, metavar="SHARE", default=0.0, help="Share of the rest held out for choosing.")
@more("--split-seed", type=int, metavar="N", default=1, help="Seed of a random split, or of folds.")
@click.option("--folds", type=int, metavar="K", help="Train K models, each tested on another random part of the data.")
@more(
    "--engine",
    type=click.Choice(["compiled", "reference", "cluster"]),
    default="compiled",
    help="How rounds are simulated; cluster: clients spread over machines.",
)
@more("--cluster", metavar="ADDRESS", help="For --engine cluster: local (default), or ray://HOST:10001.")
@more("--shards", type=int, metavar="N", help="For --engine cluster: processes to spread clients over.")
@click.option("--threads", type=int, metavar="N", default=1, show_default=True, help="Cores; the result is the same.")
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop once N epochs brought nothing better on validation, and keep the best epoch; --epochs is the maximum.",
)
@click.option("--resume", is_flag=True, help="Continue a run that was interrupted.")
@more("--count/--no-count", default=True, help="Count the communication, row by row.  [default: count]")
@more("--track", metavar="TRACKER", help=TRACK_HELP)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@reads_data_option
def _common(**_: Any) -> None:
    """The options that every method has."""


def _search(method: type[Recommender]) -> list[click.Parameter]:
    if not method.searched:
        return []
    text = f"First tune {', '.join(method.searched)} on validation: --validation, or else a part of the training data."
    return [click.Option(["--search"], is_flag=True, help=text)]


class _Training:
    """One call of the command: checked, trained, stored and reported."""

    def __init__(self, method: type[Recommender], given: dict[str, Any], values: dict[str, Any]) -> None:
        from federank.simulation.options import TrainingOptions

        self.method, self.given = method, given
        self.reading = taken_reading(values)
        self.out: Path = values["out"]
        self.overwrite, self.resume, self.count = values["overwrite"], values["resume"], values["count"]
        self.way, self.test, self.validation = values["way"], values["test"], values["validation"]
        self.split_seed, self.folds, self.patience = values["split_seed"], values["folds"], values["patience"]
        self.track, self.quiet, self.as_json = values["track"], values["quiet"], values["as_json"]
        self.search = values.get("search", False)
        self.settings = taken_preset(values) | given
        self.options = TrainingOptions(**{name: values[name] for name in ("engine", "threads", "cluster", "shards")})

    def run(self) -> None:
        """Refuse what cannot be done, then train one model or one per fold."""
        from federank.cli.tables import training_bar, warn_of_named_items

        refuse_idle_flags(self.method, self.way, self.folds)
        model = self.method(**self.settings)
        refuse_settings_without_effect(model.settings, self.given)
        warn_of_named_items(model.settings)
        with training_bar(self.method, self.quiet) as progress:
            if self.folds is not None:
                self._train_folds(self.folds, replace(self.options, progress=progress))
            else:
                self._train(model, progress)

    def _train(self, model: Recommender, progress: Callable[[Progress], None] | None) -> None:
        from federank.cli.tables import count_communication, report

        checkpoint = self.out.parent / f"{self.out.name}.checkpoint"
        self._refuse_overwriting(checkpoint)
        tracker = self._tracker()
        part, split = self._split()
        searched = stop = None
        if self.search:
            searched = tuned(
                self.method, self.settings, self._tuning("--search", split, part), self.options, self.quiet
            )
            self.settings = searched.settings
            model = self.method(**self.settings)
        if self.patience is not None:
            tuning = self._tuning("--patience", split, part)
            stop, model = stopped_early(self.method, self.settings, tuning, self.options, self.patience)
        options = replace(self.options, progress=progress)
        if self.method.in_rounds:
            options = replace(options, checkpoint=checkpoint, resume=self.resume)
        try:
            model.fit(part, training_options=options)
        except KeyboardInterrupt:
            if checkpoint.exists():
                click.echo(f"\nThe run is kept in {checkpoint}; the same command with --resume continues it.", err=True)
            raise
        if searched is not None:
            model.report["search"] = searched.as_dict()
        if stop is not None:
            model.report["early_stopping"] = stop.as_dict()
        count_communication(model, self.count)
        model.save(self.out, split, replaces=self.overwrite)
        checkpoint.unlink(missing_ok=True)
        if tracker is not None:
            from federank.studies.tracking import tracked_model

            tracker.log(tracked_model(model, split, self.out))
        if self.as_json:
            click.echo(json.dumps({"out": str(self.out), **model.report}))
        else:
            report(model, self.out, part)

    def _train_folds(self, folds: int, options: TrainingOptions) -> None:
        """One model for each of K random parts of the data, which it is tested on."""
        from federank.cli.tables import count_communication
        from federank.data.splits import split_folds
        from federank.methods.model_folder import is_folds, refuse_place, train_each, unfinished

        if self.way != "temporal":
            raise SettingError("--folds divides the data at random; leave out --split.")
        for name, what in {"track": "logs one model", "search": "needs one validation part"}.items():
            if getattr(self, name):
                raise SettingError(f"--{name} {what}, and --folds makes several models; leave one of them out.")
        if self.patience:
            raise SettingError("--patience needs one validation part, and --folds has none; leave one of them out.")
        refuse_place(self.out)
        if self.overwrite and not self.resume:
            shutil.rmtree(unfinished(self.out), ignore_errors=True)
        replaceable = self.overwrite and is_folds(self.out)
        if self.out.exists() and not replaceable and (not self.out.is_dir() or any(self.out.iterdir())):
            raise ModelError(f"{self.out} exists; choose another --out, or add --overwrite to replace earlier folds.")

        def fit(model: Recommender, split: Split, number: int, checkpoint: Path) -> None:
            click.echo(f"Fold {number} of {folds}", err=True)
            resuming = replace(options, checkpoint=checkpoint, resume=checkpoint.exists())
            model.fit(split.train, training_options=resuming if self.method.in_rounds else options)
            count_communication(model, self.count)

        splits = split_folds(self.reading.interactions(), folds, self.split_seed)
        try:
            models = train_each(lambda: self.method(**self.settings), splits, self.out, fit, resume=self.resume)
        except KeyboardInterrupt:
            click.echo(f"\nKept in {unfinished(self.out)}; the same command with --resume continues.", err=True)
            raise
        if self.as_json:
            click.echo(json.dumps({"out": str(self.out), "folds": [model.report for model in models]}))
            return
        seconds = sum(model.report.get("seconds", 0.0) for model in models)
        click.echo(f"{folds} models of {self.method.name} trained in {seconds:.1f} s. Stored in {self.out}.")
        click.echo(f"Next: federank evaluate {self.out}")

    def _refuse_overwriting(self, checkpoint: Path) -> None:
        """Nothing that took time to make is replaced unless the user says so."""
        from federank.methods.model_folder import is_folds, is_model, refuse_place

        refuse_place(self.out)
        if self.overwrite:
            checkpoint.unlink(missing_ok=True)
        elif is_model(self.out) or is_folds(self.out):
            raise ModelError(f"{self.out} holds a model; choose another --out, or add --overwrite to replace it.")
        elif checkpoint.exists() and not self.resume:
            raise ModelError(
                f"{checkpoint} is left of an interrupted run; add --resume to continue, or --overwrite to start again."
            )

    def _tracker(self) -> Any:
        """The tracker, opened before anything is trained, so that a wrong name costs no time."""
        if self.track is None:
            return None
        from federank.studies.tracking import open_tracker

        return open_tracker(self.track, "federank train")

    def _split(self) -> tuple[Interactions, Split | None]:
        """The training part, and the split it is part of, if any."""
        if self.way == "none":
            return self.reading.interactions(), None
        if self.way in WAYS:
            from federank.data.splits import Division, divide

            division = Division(way=self.way, test=self.test, validation=self.validation, seed=self.split_seed)
            [split] = divide(self.reading.interactions(), division)
            return split.train, split
        if not Path(self.way).is_dir():
            raise SettingError(
                f"--split is {self.way!r}; it can be {', '.join(WAYS)}, none, or a folder that `federank data split` "
                "wrote."
            )
        if given := [name for name in READING if is_given(name)]:
            flag = "--data" if given[0] == "source" else flag_of(given[0])
            raise SettingError(f"--split names a folder of parts, which are used as they are; leave out {flag}.")
        from federank.data.split_files import read_split

        split = read_split(Path(self.way))
        return split.train, split

    def _tuning(self, flag: str, split: Split | None, part: Interactions) -> Split:
        """A split to tune on: the model's own, or one that cuts a validation part as the test part was cut."""
        import numpy as np

        from federank.data.splits import Division, divide

        if split is not None and split.validation is not None:
            return split
        if self.way not in WAYS:
            raise SettingError(
                f"{flag} needs a part to tune on, and this data comes without one: with --split none nothing is held "
                "out, and a folder of parts is used as it is. Choose another --split, or a folder with a validation "
                "part."
            )
        share = self.test if 0 < self.test < 1 else 0.2
        [tuning] = divide(part, Division(way=self.way, test=share, seed=self.split_seed))
        return replace(tuning, test=tuning.test.take(np.zeros(0, dtype=np.int64)), validation=tuning.test)


def tuned(
    method: type[Recommender], settings: dict[str, Any], split: Split, options: TrainingOptions, quiet: bool
) -> Searched:
    """The best settings on the validation part; each model is reported on stderr unless `quiet`."""
    from federank.evaluation.search import search

    def report(values: Mapping[str, Any], value: float) -> None:
        if not quiet:
            click.echo(f"  {value:.5f}  {_listed(values)}", err=True)

    searched = type(method(**settings)).searched
    axes = {name: values for name, values in searched.items() if name not in settings}
    if not axes:
        raise SettingError(f"There is nothing to search: {', '.join(searched)} are all set. Leave one of them out.")
    result = search(
        method,
        split,
        strategy="coordinate",
        metric="precision@10",
        training_options=replace(options, progress=None),
        tried=report,
        **settings,
        **axes,
    )
    click.echo(
        f"Chosen on validation, of {result.as_dict()['models']} models: {_listed(result.chosen)}. {result.metric} "
        f"there {result.best:.5f}; {result.first or 0.0:.5f} without a search.",
        err=True,
    )
    return result


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {'as by default' if value is None else f'{value:g}'}" for name, value in values.items())


def stopped_early(
    method: type[Recommender], settings: dict[str, Any], split: Split, options: TrainingOptions, patience: int
) -> tuple[Stop, Recommender]:
    """The best epoch on the validation part, reported on stderr, and the method set to train up to it."""
    from federank.evaluation.search import best_epoch

    stop = best_epoch(method, settings, split.development, patience=patience, training_options=options)
    name = str(epochs_setting(method))
    click.echo(
        f"Best on validation after {name} {stop.epoch} of {len(stop.curve)}: {stop.metric} {stop.validation:.5f}.",
        err=True,
    )
    return stop, method(**settings | {name: stop.epoch})


# Flags without effect: hidden where a method has no use for them, and refused where they are set.


_OF_ROUNDS = ("engine", "cluster", "shards", "threads", "resume")
_OF_SPLITS = ("test", "validation", "split_seed")
_USED = {
    "temporal": ("test", "validation"),
    "global-temporal": ("test", "validation"),
    "leave-last-out": ("validation",),
    "random": _OF_SPLITS,
    "none": (),
}
"""Which of the flags about splits each way of splitting uses."""


def offered(method: type[Recommender], params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The common options; those that this method has no use for are hidden."""
    offered = [copy(param) for param in params]
    for param in offered:
        if isinstance(param, click.Option):
            param.hidden = param.name in _idle(method)
    return offered


def refuse_idle_flags(method: type[Recommender], way: str, folds: int | None) -> None:
    """Raise for the first flag of this command line that the method or the split has no use for."""
    for name, reason in _idle(method).items():
        # Folds are resumed by complete models, whatever the method.
        if is_given(name) and not (name == "resume" and folds is not None):
            raise SettingError(f"{reason}; leave out {flag_of(name)}.")
    used: tuple[str, ...]
    if folds is not None:
        used, reason = ("split_seed",), "--folds divides the data at random"
    elif way in _USED:
        used, reason = _USED[way], f"--split {way} {'trains on everything' if way == 'none' else 'does not use it'}"
    elif not Path(way).is_dir():
        return  # an unknown way of splitting is refused where it is used
    else:
        used, reason = (), f"--split names a folder of parts, {way}, which are used as they are"
    for name in _OF_SPLITS:
        if name not in used and is_given(name):
            raise SettingError(f"{reason}; leave out {flag_of(name)}.")


def refuse_settings_without_effect(settings: Any, given: Iterable[str]) -> None:
    """Raise for the first of the given settings that does nothing beside the others (`without_effect`)."""
    idle = settings.without_effect() if hasattr(settings, "without_effect") else {}
    for name in given:
        if name in idle:
            raise SettingError(f"{flag_of(name)} has no effect here: {idle[name]}. Leave it out.")


def _idle(method: type[Recommender]) -> dict[str, str]:
    """The flags that a method has no use for, each with the reason."""
    idle = {}
    if not method.in_rounds or method.can_use:
        how = "simulates one client after the other" if method.in_rounds else "trains in one go, without rounds"
        idle = {name: f"{method.name} {how}" for name in _OF_ROUNDS if name not in method.can_use}
    if epochs_setting(method) is None:
        idle["patience"] = f"{method.name} has no epochs, so it cannot be stopped early"
    if not hasattr(method, "communication"):
        idle["count"] = f"{method.name} sends nothing that could be counted"
    return idle
