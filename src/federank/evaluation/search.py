"""Search: settings tuned on a validation part, one setting after the other.

    found = search(Frugal, {"messages": 5}, split.development, Frugal.searched)
    found.settings          {"factors": 64, "shrinkage": 0.95, ...}
    found.best, found.usual the metric with these settings, and with those that were searched from

A search starts from the settings as they are given, tries every value of one setting with the others as they stand,
keeps the best, and goes on to the next; it ends when a whole pass has found nothing better. The test part is never
looked at: what is compared is the validation part of a split, learnt from its training part (`Split.development`).
A value that cannot be (more factors than items) is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from federank import checks
from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.errors import Diverged, SettingError
from federank.evaluation.evaluate import RATING, evaluate, prediction_errors
from federank.evaluation.lists import SAMPLED, sampled_means
from federank.methods.predicting import PredictsRatings
from federank.methods.recommender import Recommender
from federank.methods.registry import epochs_setting, method_class
from federank.simulation.options import TrainingOptions

_MOST_PASSES = 3


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search has found."""

    settings: dict[str, Any]
    """The values of what was searched."""
    metric: str
    best: float
    """The metric on the validation part with these values."""
    usual: float
    """The same with the values that the search began with."""
    tried: int
    """How many models were learnt."""

    def as_dict(self) -> dict[str, Any]:
        """As a report has it."""
        return {
            "chosen": self.settings,
            "metric": self.metric,
            "validation": self.best,
            "validation_before": self.usual,
            "models": self.tried,
        }


Tried = Callable[[Mapping[str, Any], float], None]
"""Hears of each model that was learnt: the values of what is searched, and the metric."""


def search(
    method: type[Recommender],
    given: Mapping[str, Any],
    development: Split,
    searched: Mapping[str, Sequence[Any]],
    *,
    metric: str = "precision@10",
    training_options: TrainingOptions | None = None,
    tried: Tried | None = None,
) -> Found:
    """The best values of `searched` on the test part of `development`; what is given already is left as it is."""
    name, _, length = metric.partition("@")
    training_options = replace(training_options or TrainingOptions(), checkpoint=None, resume=False)
    known: dict[tuple[Any, ...], float | None] = {}
    axes = {setting: values for setting, values in searched.items() if setting not in given}
    if not axes:
        raise SettingError(
            f"There is nothing to search: {', '.join(searched)} are all given. Leave at least one of them out."
        )

    def judged(values: Mapping[str, Any]) -> float | None:
        key = tuple(values[setting] for setting in axes)
        if key not in known:
            known[key] = _judged(method, {**given, **values}, development, name, int(length or 10), training_options)
            if tried is not None and known[key] is not None:
                tried(values, known[key] or 0.0)
        return known[key]

    defaults = method(**given).settings
    values = {setting: getattr(defaults, setting) for setting in axes}
    usual = judged(values)
    if usual is None:
        method(**given).fit(development.train, training_options=training_options)  # raises what is the matter
        raise AssertionError("settings that could not be judged can be learnt with")
    best = usual
    for _ in range(_MOST_PASSES):
        before = best
        for setting, choices in axes.items():
            for choice in choices:
                found = judged({**values, setting: choice})
                if found is not None and found > best:
                    values, best = {**values, setting: choice}, found
        if best == before:
            break
    done = sum(found is not None for found in known.values())
    return Found(settings=values, metric=metric, best=best, usual=usual, tried=done)


def _judged(
    method: type[Recommender],
    settings: dict[str, Any],
    split: Split,
    name: str,
    length: int,
    training_options: TrainingOptions,
) -> float | None:
    """The metric of a model with these settings; None where there can be none."""
    try:
        model = method(**settings).fit(split.train, training_options=training_options)
    except (SettingError, Diverged):
        return None
    return evaluate(model, split, at=length, metrics=[name]).means[f"{name}@{length}"]


# A method by its name, fitted: what `federank train` does, in one call from Python; stopped early if asked.


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a run was best."""

    epoch: int
    metric: str
    validation: float
    """The metric there, on the validation part."""
    patience: int
    curve: tuple[float, ...]
    """The metric after each epoch that was played."""

    def as_dict(self) -> dict[str, Any]:
        """As a report has it."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"curve": list(self.curve)}


class _Enough(Exception):
    """Nothing better is to be expected."""


def fit(
    method: str | type[Recommender],
    data: Interactions | Split,
    *,
    training_options: TrainingOptions | None = None,
    patience: int | None = None,
    metric: str | None = None,
    **settings: Any,
) -> Recommender:
    """Make a method by its name or class with these settings, and let it learn: of a split, the training part.

    With `patience` it is stopped once this many epochs have brought nothing better of `metric` on the split's
    validation
    part (ndcg@10, or rmse of methods that predict ratings).
    """
    kind = method_class(method)
    refuse_ambiguous("fit", kind, training_options=training_options, patience=patience, metric=metric)
    train = data.train if isinstance(data, Split) else data
    if patience is None:
        if metric is not None:
            raise SettingError("metric is what a run is stopped by; add patience, or leave metric out.")
        return kind(**settings).fit(train, training_options=training_options)
    if not isinstance(data, Split):
        raise SettingError("patience needs a validation part to stop by; hand fit a split that has one.")
    stop = best_epoch(
        kind, settings, data.development, patience=patience, metric=metric, training_options=training_options
    )
    return fit_to(kind, settings, train, stop, training_options)


def refuse_ambiguous(function: str, kind: type[Recommender], **given: Any) -> None:
    """Refuse an argument that has the name of one of the method's settings: it could mean either."""
    settings = {field.name for field in fields(kind.settings_type)}
    for name, value in given.items():
        if value is not None and name in settings:
            raise SettingError(
                f"{name} is an argument of fr.{function} and a setting of {kind.name}, so it is not clear which is "
                f"meant. Give the setting to the method itself: {kind.__name__}({name}={value!r}).fit(train)."
            )


def fit_to(
    kind: type[Recommender],
    settings: dict[str, Any],
    train: Interactions,
    stop: Stop,
    training_options: TrainingOptions | None = None,
) -> Recommender:
    """Learn up to the epoch that was best, and say so in the report."""
    name = epochs_setting(kind)
    assert name is not None
    model = kind(**settings | {name: stop.epoch}).fit(train, training_options=training_options)
    model.report["early_stopping"] = stop.as_dict()
    return model


def best_epoch(
    kind: type[Recommender],
    settings: dict[str, Any],
    development: Split,
    *,
    patience: int,
    metric: str | None = None,
    training_options: TrainingOptions | None = None,
) -> Stop:
    """Learn from the training part of `development` and judge by its test part, until nothing better comes."""
    checks.check_int("patience", patience, 1)
    if epochs_setting(kind) is None:
        raise SettingError(f"{kind.name} does not learn in epochs, so it cannot be stopped early; leave patience out.")
    by = metric or ("rmse" if issubclass(kind, PredictsRatings) else "ndcg@10")
    sign = -1 if by in RATING else 1
    curve = curve_of(kind(**settings), development, by, sign=sign, patience=patience, training_options=training_options)
    best = best_of(curve, sign)
    return Stop(epoch=best + 1, metric=by, validation=curve[best], patience=patience, curve=tuple(curve))


def curve_of(
    model: Recommender,
    development: Split,
    metric: str,
    *,
    sign: int,
    patience: int | None,
    training_options: TrainingOptions | None = None,
) -> list[float]:
    """The metric after each epoch, until `patience` epochs have brought nothing better; None: of all epochs."""
    curve: list[float] = []

    def judge(_: int) -> None:
        curve.append(judged(model, development, metric))
        if patience is not None and len(curve) - 1 - best_of(curve, sign) >= patience:
            raise _Enough

    # A run that only looks for its best epoch keeps no checkpoint.
    looking = replace(training_options or TrainingOptions(), checkpoint=None, resume=False, after_epoch=judge)
    with suppress(_Enough):
        model.fit(development.train, training_options=looking)
    return curve


def judged(model: Recommender, split: Split, metric: str) -> float:
    """One metric of a model on the test part of a split: `ndcg@10`, or `rmse` or `mae` of one that predicts ratings."""
    if metric in RATING:
        if not isinstance(model, PredictsRatings):
            raise SettingError(f"{model.name} predicts no ratings, so it has no {metric}; choose another metric.")
        return float(getattr(prediction_errors(model, split.test), metric))
    name, _, length = metric.partition("@")
    if length and not length.isdecimal():
        raise SettingError(f"The metric {metric!r} cannot be read; a name and a length are needed, such as ndcg@10.")
    if name in SAMPLED:  # without the full ranking, which is not looked at
        return float(sampled_means(model, split, [int(length or 10)])[f"{name}@{length or 10}"].mean())
    return evaluate(model, split, at=int(length or 10), metrics=[name]).means[f"{name}@{length or 10}"]


def best_of(curve: Sequence[float], sign: int) -> int:
    """The first position of the best value."""
    return max(range(len(curve)), key=lambda position: (sign * curve[position], -position))
