"""Fit a method by its name, stop it early, and search for good settings. The test part is never used here.

    model = fit("fpl", split, pi=0.3, patience=5)
    result = search("fpl", split, pi=[0.1, 0.3], learning_rate=[0.05, 0.5], epochs=60)
    result.settings            the best combination, {"pi": 0.3, "learning_rate": 0.05, "epochs": 60}
    result.table               one row per model that was tried
    result.fit(split)          the best combination, fitted on the training part

`search` tries every combination of the values given as lists (`strategy="grid"`), or tunes one setting after the other
from the method's defaults until a pass brings nothing better (`strategy="coordinate"`; `federank train --search`).
Models are compared on the validation part of a split, after training on its training part (`Split.development`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any, Literal

import polars as pl

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

_MAX_PASSES = 3

Strategy = Literal["grid", "coordinate"]
Tried = Callable[[Mapping[str, Any], float], None]
"""Called for each model: the values of the searched settings, and the metric."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Searched:
    """The result of a search."""

    method: type[Recommender]
    settings: dict[str, Any]
    """The best combination, with the settings that were the same for all."""
    chosen: dict[str, Any]
    """The best combination alone."""
    metric: str
    best: float
    """The metric of the best model on the validation part."""
    first: float | None
    """The metric of the first combination: with the strategy `coordinate` the defaults."""
    table: pl.DataFrame
    """One row per model, in order: its values, the metric (null where it could not be fitted), and the reason."""

    def fit(self, data: Split, *, training_options: TrainingOptions | None = None) -> Recommender:
        """The best combination, fitted on the training part of a split."""
        return self.method(**self.settings).fit(data.train, training_options=training_options)

    def as_dict(self) -> dict[str, Any]:
        """The entry of a model's report."""
        return {
            "chosen": self.chosen,
            "metric": self.metric,
            "validation": self.best,
            "validation_before": self.first,
            "models": self.table[self.metric].drop_nulls().len(),
        }


def search(
    method: str | type[Recommender],
    split: Split,
    *,
    strategy: Strategy = "grid",
    metric: str | None = None,
    training_options: TrainingOptions | None = None,
    tried: Tried | None = None,
    **values: Any,
) -> Searched:
    """Find the best of the values given as lists, by a metric on the split's validation part (default: ndcg@10)."""
    kind = method_class(method)
    checks.check_type("split", split, Split, "a Split, such as fr.split_random(data, validation=0.2) gives,")
    checks.check_choice("strategy", strategy, ("grid", "coordinate"))
    refuse_ambiguous("search", kind, training_options=training_options, metric=metric)
    axes = {name: list(value) for name, value in values.items() if isinstance(value, list | tuple)}
    fixed = {name: value for name, value in values.items() if name not in axes}
    if not axes or not all(axes.values()):
        raise SettingError("There is nothing to search through; give a list of values, such as pi=[0.1, 0.3].")
    trials = _Trials(kind, fixed, split.development, metric or "ndcg@10", training_options, tried)
    if strategy == "grid":
        for combination in product(*axes.values()):
            trials.value(dict(zip(axes, combination, strict=True)))
    else:
        _tune(trials, axes)
    return trials.result(tuple(axes))


class _Trials:
    """The models of one search; each combination is fitted once."""

    def __init__(
        self,
        kind: type[Recommender],
        fixed: dict[str, Any],
        development: Split,
        metric: str,
        training_options: TrainingOptions | None,
        tried: Tried | None,
    ) -> None:
        self.kind, self.fixed, self.development, self.metric = kind, fixed, development, metric
        self.options = replace(training_options or TrainingOptions(), checkpoint=None, resume=False)
        self.tried = tried
        self.sign = -1 if metric in RATING else 1
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}

    def value(self, chosen: dict[str, Any]) -> float | None:
        """The metric times its sign, so that more is better; None where no model can be fitted."""
        key = tuple(chosen.values())
        if key not in self.rows:
            result, reason = None, None
            try:
                model = self.kind(**self.fixed, **chosen).fit(self.development.train, training_options=self.options)
            except (SettingError, Diverged) as mistake:
                reason = str(mistake)
            else:
                result = judged(model, self.development, self.metric)
                if self.tried is not None:
                    self.tried(chosen, result)
            self.rows[key] = {**chosen, self.metric: result, "reason": reason}
        result = self.rows[key][self.metric]
        return None if result is None else self.sign * result

    def result(self, names: Iterable[str]) -> Searched:
        rows = list(self.rows.values())
        able = [row for row in rows if row[self.metric] is not None]
        if not able:
            raise SettingError(f"None of the {len(rows)} combinations can be fitted; the first: {rows[0]['reason']}")
        best = max(able, key=lambda row: self.sign * row[self.metric])  # the first of equals
        chosen = {name: best[name] for name in names}
        return Searched(
            method=self.kind,
            settings=self.fixed | chosen,
            chosen=chosen,
            metric=self.metric,
            best=best[self.metric],
            first=rows[0][self.metric],
            table=pl.DataFrame(rows, infer_schema_length=None, strict=False),
        )


def _tune(trials: _Trials, axes: Mapping[str, Sequence[Any]]) -> None:
    """One setting after the other, from the defaults, until a pass over all of them brings nothing better."""
    defaults = trials.kind(**trials.fixed).settings
    values = {name: getattr(defaults, name) for name in axes}
    best = trials.value(values)
    if best is None:
        [row] = trials.rows.values()
        raise SettingError(f"The settings to start from cannot be used: {row['reason']}")
    for _ in range(_MAX_PASSES):
        before = best
        for name, choices in axes.items():
            for choice in choices:
                result = trials.value({**values, name: choice})
                if result is not None and result > best:
                    values, best = {**values, name: choice}, result
        if best == before:
            break


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
        return asdict(self) | {"curve": list(self.curve)}


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
    """Fit a method, by its name or class, with these settings; of a split, on the training part.

    With `patience` it stops once this many epochs have not improved `metric` on the split's validation part
    (ndcg@10, or rmse for methods that predict ratings).
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
    model = kind(**settings | {str(epochs_setting(kind)): stop.epoch}).fit(train, training_options=training_options)
    model.report["early_stopping"] = stop.as_dict()
    return model


def refuse_ambiguous(function: str, kind: type[Recommender], **given: Any) -> None:
    """Refuse an argument that has the name of one of the method's settings: it could mean either."""
    settings = {field.name for field in fields(kind.settings_type)}
    for name, value in given.items():
        if value is not None and name in settings:
            raise SettingError(
                f"{name} is an argument of fr.{function} and a setting of {kind.name}, so it is not clear which is "
                f"meant. Give the setting to the method itself: {kind.__name__}({name}={value!r}).fit(train)."
            )


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
