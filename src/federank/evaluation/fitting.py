"""A method by its name, fitted: what `federank train` does, in one call from Python; stopped early if asked.

    model = fit("fpl", split, pi=0.3, epochs=60)
    model = fit("fpl", split, epochs=200, patience=5)        stops by the split's validation part
    model.report["early_stopping"]["epoch"]

No number of epochs suits all data. With `patience` the model is judged on validation after each epoch; once so many
epochs have brought nothing better it is stopped, and what is kept is the model of the best epoch. It is made by
learning once more up to that epoch: draws follow from the seed, so it is that model to the bit, with its own report.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from federank import checks
from federank.data.interactions import Interactions
from federank.data.splits import Split
from federank.engines.conduct import Conduct
from federank.errors import SettingError
from federank.evaluation.evaluate import RATING, evaluate
from federank.evaluation.prediction import prediction_errors
from federank.evaluation.sampled import SAMPLED, sampled_means
from federank.recommenders.predicting import PredictsRatings
from federank.recommenders.recommender import Recommender
from federank.recommenders.registry import epochs_setting, method_class


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
    conduct: Conduct | None = None,
    patience: int | None = None,
    metric: str | None = None,
    **settings: Any,
) -> Recommender:
    """Make a method by its name or class with these settings, and let it learn: of a split, the training part.

    With `patience` it is stopped once so many epochs have brought nothing better of `metric` on the split's validation
    part (ndcg@10, or rmse of methods that predict ratings).
    """
    kind = method_class(method)
    refuse_ambiguous("fit", kind, conduct=conduct, patience=patience, metric=metric)
    train = data.train if isinstance(data, Split) else data
    if patience is None:
        if metric is not None:
            raise SettingError("metric is what a run is stopped by; add patience, or leave metric out.")
        return kind(**settings).fit(train, conduct=conduct)
    if not isinstance(data, Split):
        raise SettingError("patience needs a validation part to stop by; hand fit a split that has one.")
    stop = best_epoch(kind, settings, data.development, patience=patience, metric=metric, conduct=conduct)
    return fit_to(kind, settings, train, stop, conduct)


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
    kind: type[Recommender], settings: dict[str, Any], train: Interactions, stop: Stop, conduct: Conduct | None = None
) -> Recommender:
    """Learn up to the epoch that was best, and say so in the report."""
    name = epochs_setting(kind)
    assert name is not None
    model = kind(**settings | {name: stop.epoch}).fit(train, conduct=conduct)
    model.report["early_stopping"] = stop.as_dict()
    return model


def best_epoch(
    kind: type[Recommender],
    settings: dict[str, Any],
    development: Split,
    *,
    patience: int,
    metric: str | None = None,
    conduct: Conduct | None = None,
) -> Stop:
    """Learn from the training part of `development` and judge by its test part, until nothing better comes."""
    checks.whole("patience", patience, 1)
    if epochs_setting(kind) is None:
        raise SettingError(f"{kind.name} does not learn in epochs, so it cannot be stopped early; leave patience out.")
    by = metric or ("rmse" if issubclass(kind, PredictsRatings) else "ndcg@10")
    sign = -1 if by in RATING else 1
    curve = curve_of(kind(**settings), development, by, sign=sign, patience=patience, conduct=conduct)
    best = best_of(curve, sign)
    return Stop(epoch=best + 1, metric=by, validation=curve[best], patience=patience, curve=tuple(curve))


def curve_of(
    model: Recommender,
    development: Split,
    metric: str,
    *,
    sign: int,
    patience: int | None,
    conduct: Conduct | None = None,
) -> list[float]:
    """The metric after each epoch, until `patience` epochs have brought nothing better; None: of all epochs."""
    curve: list[float] = []

    def judge(_: int) -> None:
        curve.append(judged(model, development, metric))
        if patience is not None and len(curve) - 1 - best_of(curve, sign) >= patience:
            raise _Enough

    # A run that only looks for its best epoch keeps no checkpoint.
    looking = replace(conduct or Conduct(), checkpoint=None, resume=False, after_epoch=judge)
    with suppress(_Enough):
        model.fit(development.train, conduct=looking)
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
