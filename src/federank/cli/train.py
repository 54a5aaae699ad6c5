"""`federank train METHOD`: read data, split it, train, and store the model with its split in a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from federank.cli.options import (
    FOLDER,
    JSON,
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
from federank.cli.tables import count_communication, report, training_bar, warn_of_named_items
from federank.data.interactions import Interactions
from federank.data.split_files import read_split
from federank.data.splits import WAYS, Division, Split, divide, split_folds
from federank.errors import ModelError, SettingError
from federank.evaluation.search import Searched, Stop, best_epoch, search
from federank.methods.model_folder import is_folds, is_model, refuse_place, train_each, unfinished
from federank.methods.recommender import Recommender
from federank.methods.registry import epochs_setting, help_of, method_names, recommender_class
from federank.simulation.options import TrainingOptions
from federank.studies.tracking import open_tracker, tracked_model


def _command(name: str) -> click.Command:
    """The command that trains this method, with its flags alone."""
    method = recommender_class(name)
    common = [*preset_option(name), *_usable(method)]
    names = name, names_of(common)

    def run(**values: Any) -> None:
        _Training(method, given_settings(method.settings_type, values, *names), values).run()

    return Command(
        name,
        callback=run,
        help=f"{help_of(name)}\n\n\b\nExample:\n  federank train {name} --out runs/{name}",
        params=[*settings_options(method.settings_type, *names), *common],
    )


def _usable(method: type[Recommender]) -> list[click.Parameter]:
    """The common options that this method has a use for."""
    idle = {name for name in _OF_ROUNDS if name not in method.can_use and (not method.in_rounds or method.can_use)}
    if epochs_setting(method) is None:
        idle.add("patience")
    if not hasattr(method, "communication"):
        idle.add("count")
    usable = [param for param in _common.params if param.name not in idle]
    if method.searched:
        tuned = ", ".join(method.searched)
        text = f"Tune settings on validation first: {tuned}; on --validation, or else a part of the training data."
        usable.insert(0, click.Option(["--search"], is_flag=True, help=text))
    return usable


_OF_ROUNDS = ("engine", "cluster", "shards", "threads")
_OF_SPLITS = ("test", "validation", "split_seed")
_USED = {"temporal": _OF_SPLITS[:2], "global-temporal": _OF_SPLITS[:2], "leave-last-out": ("validation",), "none": ()}
"""Which of the flags about splits a way of splitting uses, where it is not all of them."""


@click.command(cls=MethodGroup, names=method_names, build=_command)
def train() -> None:
    """Train a method and store the model, with its split, in a folder.

    Each user's newest 20 % are held out for a test, unless --split says otherwise.

    \b
    Examples:
      federank train fpl --data city --pi 0.3 --out runs/city
      federank train fpl --help
    """


@click.command()
@click.option("--out", type=FOLDER, required=True, help="The folder to write.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier model; also an interrupted run.")
@click.option(
    "--split",
    "way",
    metavar="WAY",
    default="temporal",
    show_default=True,
    help=f"{', '.join(WAYS)}, or none: to train on everything; or a folder that `federank data split` wrote.",
)
@click.option(
    "--test", type=float, metavar="SHARE", default=0.2, show_default=True, help="Share held out for the test."
)
@click.option("--validation", type=float, metavar="SHARE", default=0.0, help="Share of the rest held out for choosing.")
@more("--split-seed", type=int, metavar="N", default=1, help="Seed of a random split, or of folds.")
@more("--folds", type=int, metavar="K", help="Train K models, each tested on another random part of the data.")
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
@more("--resume", is_flag=True, help="Continue a run that was interrupted.")
@more("--count/--no-count", default=True, help="Count the communication, row by row.  [default: count]")
@more("--track", metavar="TRACKER", help=TRACK_HELP)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@JSON
@reads_data_option
def _common(**_: Any) -> None:
    """The options that every method has."""


class _Training:
    """One call of the command: checked, trained, stored and reported."""

    def __init__(self, method: type[Recommender], given: dict[str, Any], values: dict[str, Any]) -> None:
        self.method, self.given = method, given
        self.reading = taken_reading(values)
        self.settings = taken_preset(values) | given
        named = ("engine", "threads", "cluster", "shards")
        self.options = TrainingOptions(**{name: values.pop(name) for name in named if name in values})
        usual = {"search": False, "patience": None, "count": False}
        self.flags = SimpleNamespace(**usual | values)
        self.out: Path = self.flags.out

    def run(self) -> None:
        """Refuse what cannot be done, then train one model or one per fold."""
        model = self.method(**self.settings)
        self._refuse_idle_flags(model.settings)
        warn_of_named_items(model.settings)
        with training_bar(self.method, self.flags.quiet) as progress:
            self.options = replace(self.options, progress=progress)
            if self.flags.folds is not None:
                self._train_folds(self.flags.folds)
            else:
                self._train(model)

    def _refuse_idle_flags(self, settings: Any) -> None:
        """Raise for the first flag or setting of this command line that does nothing beside the others."""
        way, folds = self.flags.way, self.flags.folds
        if self.flags.resume and not self.method.in_rounds and folds is None:
            raise SettingError(f"{self.method.name} trains in one go, without rounds; leave out --resume.")
        if folds is not None:
            unused, reason = {"test", "validation"}, "--folds divides the data at random"
        elif way not in WAYS and Path(way).is_dir():
            unused, reason = {*_OF_SPLITS}, f"--split names a folder of parts, {way}, which are used as they are"
        else:
            unused, reason = {*_OF_SPLITS} - {*_USED.get(way, _OF_SPLITS)}, f"--split {way} has no use for it"
        for name in _OF_SPLITS:
            if name in unused and is_given(name):
                raise SettingError(f"{reason}; leave out {flag_of(name)}.")
        idle = settings.without_effect() if hasattr(settings, "without_effect") else {}
        if name := next((name for name in self.given if name in idle), ""):
            raise SettingError(f"{flag_of(name)} has no effect here: {idle[name]}. Leave it out.")

    def _train(self, model: Recommender) -> None:
        checkpoint = self.out.parent / f"{self.out.name}.checkpoint"
        self._refuse_overwriting(checkpoint)
        tracker = None if self.flags.track is None else open_tracker(self.flags.track, "federank train")
        part, split = self._split()
        more: dict[str, Any] = {}
        if self.flags.search:
            searched = self._searched(self._tuning("--search", split, part))
            self.settings, more["search"] = searched.settings, searched.as_dict()
            model = self.method(**self.settings)
        if self.flags.patience is not None:
            stop = self._best_epoch(self._tuning("--patience", split, part))
            more["early_stopping"] = stop.as_dict()
            model = self.method(**self.settings | {str(epochs_setting(self.method)): stop.epoch})
        options = self.options
        if self.method.in_rounds:
            options = replace(options, checkpoint=checkpoint, resume=self.flags.resume)
        try:
            model.fit(part, training_options=options)
        except KeyboardInterrupt:
            if checkpoint.exists():
                click.echo(f"\nThe run is kept in {checkpoint}; the same command with --resume continues it.", err=True)
            raise
        model.report |= more
        count_communication(model, self.flags.count)
        model.save(self.out, split, replaces=self.flags.overwrite)
        checkpoint.unlink(missing_ok=True)
        if tracker is not None:
            tracker.log(tracked_model(model, split, self.out))
        if self.flags.as_json:
            click.echo(json.dumps({"out": str(self.out), **model.report}))
        else:
            report(model, self.out, part)

    def _train_folds(self, folds: int) -> None:
        """One model for each of K random parts of the data, which it is tested on."""
        flags = self.flags
        if flags.way != "temporal":
            raise SettingError("--folds divides the data at random; leave out --split.")
        needs = {"track": "logs one model", "search": "needs one validation part"}
        for name, what in (needs | {"patience": needs["search"]}).items():
            if getattr(flags, name):
                raise SettingError(f"--{name} {what}, and --folds makes several models; leave one of them out.")
        refuse_place(self.out)
        if flags.overwrite and not flags.resume:
            shutil.rmtree(unfinished(self.out), ignore_errors=True)
        replaceable = flags.overwrite and is_folds(self.out)
        if self.out.exists() and not replaceable and (not self.out.is_dir() or any(self.out.iterdir())):
            raise ModelError(f"{self.out} exists; choose another --out, or add --overwrite to replace earlier folds.")

        def fit(model: Recommender, split: Split, number: int, checkpoint: Path) -> None:
            click.echo(f"Fold {number} of {folds}", err=True)
            resuming = replace(self.options, checkpoint=checkpoint, resume=checkpoint.exists())
            model.fit(split.train, training_options=resuming if self.method.in_rounds else self.options)
            count_communication(model, flags.count)

        splits = split_folds(self.reading.interactions(), folds, flags.split_seed)
        try:
            models = train_each(lambda: self.method(**self.settings), splits, self.out, fit, resume=flags.resume)
        except KeyboardInterrupt:
            click.echo(f"\nKept in {unfinished(self.out)}; the same command with --resume continues.", err=True)
            raise
        if flags.as_json:
            click.echo(json.dumps({"out": str(self.out), "folds": [model.report for model in models]}))
            return
        seconds = sum(model.report.get("seconds", 0.0) for model in models)
        click.echo(f"{folds} models of {self.method.name} trained in {seconds:.1f} s. Stored in {self.out}.")
        click.echo(f"Next: federank evaluate {self.out}")

    def _refuse_overwriting(self, checkpoint: Path) -> None:
        """Nothing that took time to make is replaced unless the user says so."""
        refuse_place(self.out)
        if self.flags.overwrite:
            checkpoint.unlink(missing_ok=True)
        elif is_model(self.out) or is_folds(self.out):
            raise ModelError(f"{self.out} holds a model; choose another --out, or add --overwrite to replace it.")
        elif checkpoint.exists() and not self.flags.resume:
            raise ModelError(
                f"{checkpoint} is left of an interrupted run; add --resume to continue, or --overwrite to start again."
            )

    def _split(self) -> tuple[Interactions, Split | None]:
        """The training part, and the split it is part of, if any."""
        way = self.flags.way
        if way == "none":
            return self.reading.interactions(), None
        if way in WAYS:
            division = Division(
                way=way, test=self.flags.test, validation=self.flags.validation, seed=self.flags.split_seed
            )
            [split] = divide(self.reading.interactions(), division)
            return split.train, split
        if not Path(way).is_dir():
            raise SettingError(
                f"--split is {way!r}; it can be {', '.join(WAYS)}, none, or a folder that `federank data split` wrote."
            )
        if given := [name for name in READING if is_given(name)]:
            flag = "--data" if given[0] == "source" else flag_of(given[0])
            raise SettingError(f"--split names a folder of parts, which are used as they are; leave out {flag}.")
        split = read_split(Path(way))
        return split.train, split

    def _tuning(self, flag: str, split: Split | None, part: Interactions) -> Split:
        """A split to tune on: the model's own, or one that cuts a validation part as the test part was cut."""
        if split is not None and split.validation is not None:
            return split
        if self.flags.way not in WAYS:
            raise SettingError(
                f"{flag} needs a part to tune on, and this data comes without one: with --split none nothing is held "
                "out, and a folder of parts is used as it is. Choose another --split, or a folder with a validation "
                "part."
            )
        share = self.flags.test if 0 < self.flags.test < 1 else 0.2
        [tuning] = divide(part, Division(way=self.flags.way, test=share, seed=self.flags.split_seed))
        return replace(tuning, test=tuning.test.take(slice(0)), validation=tuning.test)

    def _searched(self, split: Split) -> Searched:
        """The best settings on the validation part; each model is reported on stderr unless `quiet`."""

        def tried(values: Mapping[str, Any], value: float) -> None:
            if not self.flags.quiet:
                click.echo(f"  {value:.5f}  {_listed(values)}", err=True)

        searched = type(self.method(**self.settings)).searched
        axes = {name: values for name, values in searched.items() if name not in self.settings}
        if not axes:
            raise SettingError(f"There is nothing to search: {', '.join(searched)} are all set. Leave one of them out.")
        options = replace(self.options, progress=None)
        values: dict[str, Any] = {"strategy": "coordinate", "metric": "precision@10", **self.settings, **axes}
        result = search(self.method, split, training_options=options, tried=tried, **values)
        click.echo(
            f"Chosen on validation, of {result.as_dict()['models']} models: {_listed(result.chosen)}. {result.metric} "
            f"there {result.best:.5f}; {result.first or 0.0:.5f} without a search.",
            err=True,
        )
        return result

    def _best_epoch(self, split: Split) -> Stop:
        """The best epoch on the validation part, reported on stderr."""
        options, patience = replace(self.options, progress=None), self.flags.patience
        stop = best_epoch(self.method, self.settings, split.development, patience=patience, training_options=options)
        click.echo(
            f"Best on validation after {epochs_setting(self.method)} {stop.epoch} of {len(stop.curve)}: {stop.metric} "
            f"{stop.validation:.5f}.",
            err=True,
        )
        return stop


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {'as by default' if value is None else f'{value:g}'}" for name, value in values.items())
