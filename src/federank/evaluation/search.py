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
from dataclasses import dataclass, replace
from typing import Any

from federank.data.splits import Split
from federank.engines.conduct import Conduct
from federank.errors import Diverged, SettingError
from federank.evaluation.evaluate import evaluate
from federank.recommenders.recommender import Recommender

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
    conduct: Conduct | None = None,
    tried: Tried | None = None,
) -> Found:
    """The best values of `searched` on the test part of `development`; what is given already is left as it is."""
    name, _, length = metric.partition("@")
    conduct = replace(conduct or Conduct(), checkpoint=None, resume=False)
    known: dict[tuple[Any, ...], float | None] = {}
    axes = {setting: values for setting, values in searched.items() if setting not in given}
    if not axes:
        raise SettingError(
            f"There is nothing to search: {', '.join(searched)} are all given. Leave at least one of them out."
        )

    def judged(values: Mapping[str, Any]) -> float | None:
        key = tuple(values[setting] for setting in axes)
        if key not in known:
            known[key] = _judged(method, {**given, **values}, development, name, int(length or 10), conduct)
            if tried is not None and known[key] is not None:
                tried(values, known[key] or 0.0)
        return known[key]

    defaults = method(**given).settings
    values = {setting: getattr(defaults, setting) for setting in axes}
    usual = judged(values)
    if usual is None:
        method(**given).fit(development.train, conduct=conduct)  # raises what is the matter
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
    method: type[Recommender], settings: dict[str, Any], split: Split, name: str, length: int, conduct: Conduct
) -> float | None:
    """The metric of a model with these settings; None where there can be none."""
    try:
        model = method(**settings).fit(split.train, conduct=conduct)
    except (SettingError, Diverged):
        return None
    return evaluate(model, split, at=length, metrics=[name]).means[f"{name}@{length}"]
