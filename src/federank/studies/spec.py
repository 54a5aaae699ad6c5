"""A study in memory: data sets, models, and how values are chosen, and how it is read from its TOML file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from federank.checks import check_choice, check_int, unknown_name
from federank.data.splits import FOLDS, GIVEN, Division
from federank.errors import SettingError
from federank.methods.registry import recommender_class
from federank.studies import vocabulary as words
from federank.studies.report_spec import KEYS, SHOWN_BY, ReportSpec, read_document, report_spec_of
from federank.studies.vocabulary import (
    Audit,
    as_table,
    as_tables,
    epochs_setting,
    points,
    read_audit,
    read_poison,
    refuse_unknown,
    setting_names,
    several,
)

if TYPE_CHECKING:
    from federank.audit.poisoning import PoisonSettings

Over = Literal["all", "covered"]
RATING_METRICS = ("mae", "rmse")
LOWER_IS_BETTER = (*RATING_METRICS, "gini", "arp", "popularity_lift")


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
    """Stop a run that chooses once this many epochs have brought nothing better (none: go to the end)."""
    best_epoch: bool = True
    """Choose the epoch as well; otherwise the last of the budget counts."""
    search: Literal["grid", "halving"] = "grid"
    """Try every combination to the end, or drop those that are behind after a few epochs."""
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
    """Also report the value of the sweep that is best where values are chosen."""
    curve: bool
    """Keep the test part's figures after every epoch, of the first seed and fold (for a figure; nothing is chosen)."""
    choose: dict[str, Any]
    audit: Audit | None = None
    """Who watches the test runs, if anyone does."""
    poison: tuple[PoisonSettings, ...] = ()
    """Malicious clients of the test runs: settings for each share of them."""
    over: Over = "all"
    """Whom the means of the test runs are taken over: everyone, or those who got a list."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A full study, checked."""

    name: str
    title: str
    at: tuple[int, ...]
    metrics: tuple[str, ...] | None
    data: tuple[DataSet, ...]
    models: tuple[ModelEntry, ...]
    choose: dict[str, Any]
    data_choose: dict[str, dict[str, Any]]
    specs: ReportSpec
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


# A study: which runs to make, read from one TOML file.


def as_study(document: dict[str, Any], name: str) -> Study:
    """Check a study's content and work it out."""
    refuse_unknown(document, words.TOP, "A study")
    seeds = _seeds(document.get("seeds", [1, 2, 3]), "seeds")
    for kind, known in KEYS.items():
        for entry in as_tables(document[kind], kind) if document.get(kind) else []:
            refuse_unknown(entry, known, f"[[{kind}]]")
            if "shown_by" in entry:
                _check_evidence(entry["shown_by"])
    entries = [entry for entry in _data_tables(document) if not entry.get("skip")]
    choose = _choose(document.get("choose", {}), "[choose]")
    models = [
        _model(entry, seeds) for entry in as_tables(document.get("model"), "model") if not entry.get("skip", False)
    ]
    data = tuple(_data(entry, document) for entry in entries)
    study = Study(
        name=name,
        title=str(document.get("title", name)),
        at=tuple(_seeds(document.get("at", [10]), "at", least=1)),
        metrics=_metrics(document.get("metrics")),
        data=data,
        models=tuple(models),
        choose=choose,
        data_choose={entry["name"]: _choose(entry.get("choose", {}), "[data.choose]") for entry in entries},
        specs=report_spec_of(document, name),
        document=document,
    )
    _refuse_repeats("data set", [part.name for part in data])
    for part in data:
        of_this = [model for model in models if model.data is None or part.name in model.data]
        _refuse_repeats(f"group of a model on {part.name}", [model.group for model in of_this])
    _refuse_unknown(study)
    return study


def _check_evidence(content: Any) -> None:
    """What a note is shown by: one kind of evidence or more, each with its name."""
    where = "shown_by of a [[note]]"
    named = as_table(content, where)
    refuse_unknown(named, SHOWN_BY, where)
    if not named:
        raise SettingError(f"{where} is empty; name what shows it ({', '.join(SHOWN_BY)}), or leave shown_by out.")
    for kind, name in named.items():
        if not isinstance(name, str) or not name.strip():
            raise SettingError(f"{kind} in {where} is {name!r}; its name is needed, as text.")


def _data_tables(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Data sets as tables, whichever of the three forms they are written in."""
    content = document.get("data")
    if isinstance(content, list) and content and all(isinstance(entry, str) for entry in content):
        content = [{"name": entry} for entry in content]
    tables = as_tables(content, "data")
    for entry in tables:
        refuse_unknown(entry, words.DATA, "[[data]]")
        entry.setdefault("name", entry.get("source"))
        if not isinstance(entry["name"], str):
            raise SettingError("A [[data]] has no name; name a known data set, or a file with `source`.")
    return tables


def _data(entry: dict[str, Any], document: dict[str, Any]) -> DataSet:
    filters = as_table(document.get("filters", {}), "[filters]") | as_table(entry.get("filters", {}), "[data.filters]")
    own = as_table(entry.get("split", {}), "[data.split]")
    split = as_table(document.get("split", {}), "[split]") | own
    if own.get("way", FOLDS) != FOLDS and "folds" not in own:
        split.pop("folds", None)  # a set that is divided in another way than the others has none of their folds
    refuse_unknown(filters, words.FILTERS, "[filters]")
    refuse_unknown(split, words.SPLIT, "[split]")
    reading = as_table(entry.get("reading", {}), "[data.reading]")
    refuse_unknown(reading, words.READING, "[data.reading]")
    folds = {"folds": 5} if split.get("way") == FOLDS else {}
    if split.get("way") == GIVEN and any(filters.values()):
        raise SettingError(
            f"{entry['name']} is split as published, so nothing of it can be filtered; leave filters out."
        )
    return DataSet(
        name=entry["name"],
        source=str(entry.get("source", entry["name"])),
        reading=reading,
        filters={name: value for name, value in filters.items() if value},
        split=Division(**{"validation": 0.2} | folds | split),
    )


def _choose(content: Any, where: str) -> dict[str, Any]:
    table = as_table(content, where)
    refuse_unknown(table, words.CHOOSE, where)
    check_choice("The part to choose on", table.get("part", "validation"), ("validation", "test"))
    check_choice("The search", table.get("search", "grid"), ("grid", "halving"))
    for name in ("epochs", "patience"):
        if name in table:
            check_int(name, table[name], 1)
    if "seeds" in table:
        table["seeds"] = _seeds(table["seeds"], "seeds to choose with")
    if "metric" in table:
        _refuse_unknown_metric(table["metric"])
    return table


def _model(entry: dict[str, Any], seeds: tuple[int, ...]) -> ModelEntry:
    refuse_unknown(entry, words.MODEL, "[[model]]")
    if "method" not in entry:
        raise SettingError("A [[model]] has no method; name one, such as fpl or popular.")
    method = str(entry["method"])
    recommender_class(method)
    group = str(entry.get("group", method))
    content = {kind: as_table(entry.get(kind, {}), f"{kind} of {group}") for kind in ("settings", "grid")}
    sweep = [Point(*point) for point in points(entry.get("sweep", {}), group)]
    used = {**content, "sweep": {name: None for point in sweep for name in {**point.swept, **point.along}}}
    known = [name for name in setting_names(method) if name != "seed"]
    for kind, names in used.items():
        refuse_unknown(names, known, f"{kind} of {group} ({method})")
    for one, other in itertools.combinations(used, 2):
        if both := used[one].keys() & used[other].keys():
            raise SettingError(f"{min(both)} of {group} is in {one} and in {other}; one of them is needed.")
    if entry.get("best", False) and len(sweep) < 2:
        raise SettingError(f"{group} asks for the best of a sweep, and has no sweep; add one, or leave `best` out.")
    over = entry.get("over", "all")
    check_choice(f"over of {group}", over, get_args(Over))
    return ModelEntry(
        group=group,
        method=method,
        data=None if "data" not in entry else tuple(entry["data"]),
        seeds=_seeds(entry["seeds"], f"seeds of {group}") if "seeds" in entry else seeds,
        settings=content["settings"],
        grid={name: several(values, f"{name} of {group}") for name, values in content["grid"].items()},
        points=tuple(sweep),
        best=bool(entry.get("best", False)),
        curve=bool(entry.get("curve", False)),
        choose=_choose(entry.get("choose", {}), f"choose of {group}"),
        audit=read_audit(entry.get("audit"), group, method),
        poison=read_poison(entry.get("poison"), group, method),
        over=over,
    )


def _seeds(content: Any, where: str, least: int = 0) -> tuple[int, ...]:
    listed = [content] if isinstance(content, int) else content
    if not isinstance(listed, list | tuple) or not listed:
        raise SettingError(f"{where} is {content!r}; one or more integers are needed.")
    for number in listed:
        check_int(where, number, least, 2**32 - 1)
    return tuple(dict.fromkeys(listed))


def _metrics(content: Any) -> tuple[str, ...] | None:
    if content is None:
        return None
    for name in content:
        _refuse_unknown_metric(name)
    return tuple(content)


def _refuse_unknown_metric(name: Any) -> None:
    from federank import extensions
    from federank.evaluation.evaluate import METRICS
    from federank.evaluation.lists import SAMPLED

    kind, _, cut = str(name).partition("@")
    if (cut and not cut.isdecimal()) or (kind in RATING_METRICS and cut):
        raise SettingError(f"The metric {name!r} cannot be read; a name and a length are needed, such as precision@10.")
    refuse_unknown(
        {kind: None}, (*METRICS, *SAMPLED, *RATING_METRICS, *extensions.names("metrics")), "The list of metrics"
    )


def _refuse_repeats(kind: str, names: Iterable[str]) -> None:
    listed = list(names)
    for name in listed:
        if listed.count(name) > 1:
            raise SettingError(f"The {kind} {name!r} is there twice; give each a name of its own.")


def _refuse_unknown(study: Study) -> None:
    """Every data set that a model names must be one of the study's."""
    if not study.models:
        raise SettingError("The study has no model to run; add a [[model]].")
    known = {part["name"] for part in _data_tables(study.document)}
    for model in study.models:
        refuse_unknown(dict.fromkeys(model.data or ()), sorted(known), f"The data of {model.group}")


# The studies that come with the product, one TOML file each in packaged/, and any other by its path.


def packaged() -> dict[str, dict[str, Any]]:
    """Every packaged study's content, by its name."""
    result = {}
    for entry in sorted((files("federank.studies") / "packaged").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            with as_file(entry) as path:
                result[entry.name.removesuffix(".toml")] = read_document(path)
    return result


def find_study(name: str) -> tuple[str, dict[str, Any]]:
    """A study's name and content, from a packaged study's name or a file's path."""
    if name.endswith(".toml") or "/" in name or Path(name).is_file():
        return Path(name).stem, beside(read_document(Path(name)), Path(name).parent)
    known = packaged()
    if name not in known:
        raise SettingError(unknown_name("study", name, known, otherwise="; or give a file's path"))
    return name, known[name]


def beside(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study whose files are named as its own file sees them: a path in a TOML is relative to the TOML.

    What is not there is left as it is: a known data set's name, or a path from where the command is given.
    """
    if folder.resolve() == Path.cwd():
        return document

    moved = []

    def result(value: Any) -> Any:
        if not isinstance(value, str) or not value or Path(value).is_absolute() or not (folder / value).exists():
            return value
        moved.append(value)
        return str(folder / value)

    def placed(table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {key: result(value) if key in _FILES else placed(value) for key, value in table.items()}

    content = {
        key: [placed(part) for part in value] if isinstance(value, list) else placed(value)
        for key, value in document.items()
    }
    if isinstance(content.get("data"), list):
        content["data"] = [_with_source(entry, result) for entry in content["data"]]
    return content if moved else document


def _with_source(entry: Any, result: Any) -> Any:
    """A data set that is named by its path keeps its name, and has its path as its source."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "source" in table or result(table.get("name")) == table.get("name"):
        return table
    return table | {"source": result(table["name"])}


_FILES = ("source", "item_file", "policies", "trace", "pi")
"""The keys whose text may be a file."""
