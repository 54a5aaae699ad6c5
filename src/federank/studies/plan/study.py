"""A study in memory: data sets, models, and how values are chosen; study_file.py reads it from TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from federank.data.ways import Division
from federank.studies.plan.audit import Audit
from federank.studies.plan.poison import Poison
from federank.studies.plan.vocabulary import epochs_setting
from federank.studies.plan.wishes import Wishes

Over = Literal["all", "covered"]
RATING_METRICS = ("mae", "rmse")
LOWER_IS_BETTER = (*RATING_METRICS, "gini_standard", "arp", "popularity_lift")


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set as a study uses it: where it is, what is kept of it, and how it is divided."""

    name: str
    source: str
    reading: dict[str, Any] = field(default_factory=dict)
    filters: dict[str, Any] = field(default_factory=dict)
    split: Division = field(default_factory=Division)


@dataclass(frozen=True, kw_only=True)
class Choose:
    """How values are chosen."""

    metric: str = "precision@10"
    """What is compared: a metric and its N, or mae or rmse."""
    part: Literal["validation", "test"] = "validation"
    """What it is measured on; choosing on test is said in every line and in the report's title."""
    epochs: int | None = None
    """The budget of every method that learns in epochs, unless its settings say otherwise."""
    patience: int | None = None
    """Stop a run that chooses once so many epochs have brought nothing better (none: go to the end)."""
    best_epoch: bool = True
    """Choose the epoch as well; otherwise the last of the budget counts."""
    search: Literal["grid", "halving"] = "grid"
    """Try every combination to the end, or drop those that are behind after a few epochs (halving.py)."""
    seeds: tuple[int, ...] = ()
    """The seeds that choose: the mean over them decides (by default the study's first seed)."""

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value of the metric is the better one."""
        return self.metric.split("@")[0] in LOWER_IS_BETTER


class Point(NamedTuple):
    """One point of a sweep."""

    swept: dict[str, Any]
    along: dict[str, Any]
    """Settings that go with this point and are not what is swept: (T_predict, T_local) of a rho."""


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A row (or, swept, several) of a study's table."""

    group: str
    method: str
    data: tuple[str, ...] | None
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    grid: dict[str, tuple[Any, ...]]
    points: tuple[Point, ...]
    """What is swept: each point is a result of its own; one empty point where nothing is."""
    best: bool
    """Also tell the value of the sweep that is best where values are chosen."""
    curve: bool
    """Keep the test part's figures after every epoch, of the first seed and fold (for a figure; nothing is chosen)."""
    choose: dict[str, Any]
    audit: Audit | None = None
    """Who watches the test runs, if anybody does."""
    poison: Poison | None = None
    """Who lies in the test runs, if anybody does."""
    over: Over = "all"
    """Whom the means of the test runs are taken over: everybody, or those who got a list."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A whole study, checked."""

    name: str
    title: str
    at: tuple[int, ...]
    metrics: tuple[str, ...] | None
    data: tuple[DataSet, ...]
    models: tuple[ModelEntry, ...]
    choose: dict[str, Any]
    data_choose: dict[str, dict[str, Any]]
    wishes: Wishes
    document: dict[str, Any]
    """The TOML file as it is run, for the report."""

    def choosing(self, data: DataSet, model: ModelEntry) -> Choose:
        """How values are chosen for this model on this data: the model's word counts before the data set's."""
        content = self.choose | self.data_choose[data.name] | model.choose
        return Choose(**(content | {"seeds": tuple(content.get("seeds", model.seeds[:1]))}))


def settings_of(model: ModelEntry, *, values: Mapping[str, Any], budget: int | None) -> dict[str, Any]:
    """A model's settings with the values of a grid or a sweep, and the budget where its own settings give none."""
    name = epochs_setting(model.method)
    start = {} if name is None or budget is None else {name: budget}
    return start | model.settings | dict(values)
