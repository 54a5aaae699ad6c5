"""Flags that would have no effect: not shown where a method has no use for them, and refused where they are given.

A flag that is taken and does nothing lets someone believe that it did something.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from federank.data.splits import WAYS, Division, divide
from federank.errors import SettingError
from federank.methods.registry import epochs_setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federank.data.interactions import Interactions
    from federank.data.splits import Split
    from federank.evaluation.search import Searched, Stop
    from federank.methods.recommender import Recommender
    from federank.simulation.options import TrainingOptions
    from federank.studies.tracking import Tracker


_OF_ROUNDS = ("engine", "cluster", "shards", "threads", "resume")
_OF_SPLITS = ("test", "validation", "split_seed")
_USED = {
    "temporal": ("test", "validation"),
    "global-temporal": ("test", "validation"),
    "leave-last-out": ("validation",),
    "random": _OF_SPLITS,
    "strong": _OF_SPLITS,
    "none": (),
}
"""Which of the flags about splits each way of splitting looks at."""


def offered(method: type[Recommender], params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The options of every method, those that this one has no use for hidden."""
    idle = _idle(method)
    return [_hidden(param) if param.name in idle else param for param in params]


def refuse_idle_flags(method: type[Recommender], way: str, folds: int | None) -> None:
    """Raise for the first flag of this command line that the method or the split has no use for."""
    for name, reason in _idle(method).items():
        # Folds go on by whole models, so they can be resumed whatever the method.
        if _given(name) and not (name == "resume" and folds is not None):
            raise SettingError(f"{reason}; leave out {_flag(name)}.")
    used: tuple[str, ...]
    if folds is not None:
        used, reason = ("split_seed",), "--folds divides the data at random by itself"
    elif way in WAYS or way == "none":
        how = "learns from everything" if way == "none" else "does not use it"
        used, reason = _USED[way], f"--split {way} {how}"
    elif not Path(way).is_dir():
        return  # no way of splitting at all, which is refused where it is used
    else:
        used, reason = (), f"--split names a folder of parts, {way}, which are taken as they are"
    for name in _OF_SPLITS:
        if name not in used and _given(name):
            raise SettingError(f"{reason}; leave out {_flag(name)}.")


def refuse_settings_without_effect(settings: Any, given: Iterable[str]) -> None:
    """Raise for the first of the given settings that does nothing beside the others.

    A record of settings says which those are in a method `without_effect`, where there can be any.
    """
    idle = settings.without_effect() if hasattr(settings, "without_effect") else {}
    for name in given:
        if name in idle:
            raise SettingError(f"{_flag(name)} has no effect here: {idle[name]}. Leave it out.")


def _idle(method: type[Recommender]) -> dict[str, str]:
    """The flags that a method has no use for, each with the reason."""
    idle = {}
    if method.in_rounds and method.can_use:
        one_by_one = f"{method.name} asks one device after the other, in this process"
        idle = {name: one_by_one for name in _OF_ROUNDS if name not in method.can_use}
    elif not method.in_rounds:
        in_one_go = f"{method.name} learns in one go, without rounds"
        idle = {name: in_one_go for name in _OF_ROUNDS if name not in method.can_use}
    if epochs_setting(method) is None:
        idle["patience"] = f"{method.name} does not learn in epochs, so it cannot be stopped early"
    if not hasattr(method, "communication"):
        idle["count"] = f"{method.name} sends nothing that could be counted"
    return idle


def _hidden(param: click.Parameter) -> click.Parameter:
    unseen = copy(param)
    if isinstance(unseen, click.Option):
        unseen.hidden = True
    return unseen


def _given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _flag(name: str) -> str:
    return "--count and --no-count" if name == "count" else f"--{name.replace('_', '-')}"


# `federank train METHOD --search`: tune on a validation part first, say what was chosen, then learn with it.


_AS_MUCH_AS_USUAL = 0.2


def tuned(
    method: type[Recommender],
    settings: dict[str, Any],
    split: Split,
    training_options: TrainingOptions,
    *,
    quiet: bool,
) -> Searched:
    """The best settings on the validation part; each model is reported on stderr unless `quiet`."""
    from federank.evaluation.search import search

    def report(values: Mapping[str, Any], value: float) -> None:
        if not quiet:
            click.echo(f"  {value:.5f}  {_written(values)}", err=True)

    searched = type(method(**settings)).searched
    axes = {name: values for name, values in searched.items() if name not in settings}
    if not axes:
        raise SettingError(f"There is nothing to search: {', '.join(searched)} are all set. Leave one of them out.")
    result = search(
        method,
        split,
        strategy="coordinate",
        metric="precision@10",
        training_options=replace(training_options, progress=None),
        tried=report,
        **settings,
        **axes,
    )
    models = result.as_dict()["models"]
    click.echo(
        f"Chosen on validation, of {models} models: {_written(result.chosen)}. {result.metric} there "
        f"{result.best:.5f}; {result.first or 0.0:.5f} without a search.",
        err=True,
    )
    return result


def stopped_early(
    method: type[Recommender],
    settings: dict[str, Any],
    split: Split,
    training_options: TrainingOptions,
    *,
    patience: int,
) -> tuple[Stop, Recommender]:
    """The epoch that is best on the validation part, told on stderr, and the method made to learn up to it."""
    from federank.evaluation.search import best_epoch
    from federank.methods.registry import epochs_setting

    stop = best_epoch(method, settings, split.development, patience=patience, training_options=training_options)
    name = str(epochs_setting(method))
    click.echo(
        f"Best on validation after {name} {stop.epoch} of {len(stop.curve)} played: {stop.metric} "
        f"{stop.validation:.5f}.",
        err=True,
    )
    return stop, method(**settings | {name: stop.epoch})


def with_validation(
    split: Split | None, part: Interactions, way: str, test: float, seed: int, *, flag: str = "--search"
) -> Split:
    """A split to tune on: the model's own, or one that cuts a validation part as the test part was cut."""
    if split is not None and split.validation is not None:
        return split
    if way not in WAYS:
        raise SettingError(
            f"{flag} needs a part to tune on, and this data comes without one: with --split none nothing is held out, "
            "and a folder of parts is taken as it is. Choose another --split, or a folder with a validation part."
        )
    share = test if 0 < test < 1 else _AS_MUCH_AS_USUAL
    [tuning] = divide(part, Division(way=way, test=share, seed=seed))
    return replace(tuning, test=tuning.test.take(np.zeros(0, dtype=np.int64)), validation=tuning.test)


def _written(values: Mapping[str, Any]) -> str:
    told = (f"{name} {'as by default' if value is None else f'{value:g}'}" for name, value in values.items())
    return ", ".join(told)


# `federank train METHOD --track mlflow`: a finished model told to a tracker, with what its test part says of it.


TRACK_HELP = "Tell mlflow or tensorboard of it; a place may follow a colon: mlflow:mlruns, tensorboard:logs."


def track_model(tracker: Tracker, model: Recommender, split: Split | None, out: Path) -> None:
    """Tell of a model that was kept: settings, report, and its metrics on the test part where there is one."""
    from federank import __version__
    from federank.evaluation.evaluate import evaluate, prediction_errors
    from federank.methods.predicting import PredictsRatings
    from federank.studies.results import Point
    from federank.studies.tracking import Tracked

    metrics = _numbers(model.report)
    if split is not None and len(split.test):
        metrics |= {name: float(value) for name, value in evaluate(model, split).means.items()}
        if isinstance(model, PredictsRatings):
            errors = prediction_errors(model, split.test)
            metrics |= {"mae": errors.mae, "rmse": errors.rmse}
    stop = model.report.get("early_stopping", {})
    curve = [
        Point(epoch, {f"validation {stop['metric']}": value}) for epoch, value in enumerate(stop.get("curve", ()), 1)
    ]
    kept = (out / "model.json").read_bytes()
    tracker.log(
        Tracked(
            key=hashlib.sha256(str(out.resolve()).encode() + kept).hexdigest()[:16],
            name=f"{model.training.name}, {model.name}, {out}",
            params={"method": model.name, "data": model.training.name, **asdict(model.settings)},
            metrics=metrics,
            points=curve,
            tags={"folder": str(out), "split": "none" if split is None else split.how, "version": __version__},
        )
    )


def _numbers(report: dict[str, Any], before: str = "") -> dict[str, float]:
    """The numbers of a report, each under the path to it."""
    found: dict[str, float] = {}
    for name, value in report.items():
        if isinstance(value, dict):
            found |= _numbers(value, f"{before}{name}.")
        elif isinstance(value, int | float):
            found[f"{before}{name}"] = float(value)
    return found
