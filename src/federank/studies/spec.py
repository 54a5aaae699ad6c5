"""A study in memory: data sets, models, and how values are chosen; read from its document and checked.

An unknown key is an error that names the nearest known one: a misspelt setting that is silently passed over would make
a study of something else. The keys of a table are the fields of its record; settings of a method are those of the
method's record.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from federank.checks import Settings, check_choice, check_int, refuse_unknown, setting
from federank.data.splits import FOLDS, GIVEN, Division
from federank.errors import SettingError
from federank.methods.registry import AUDITED, audited_names, recommender_class
from federank.methods.registry import epochs_setting as epochs_of
from federank.studies import documents
from federank.studies.report_spec import KEYS, OF_RATINGS, SHOWN_BY, ReportSpec, report_spec_of
from federank.studies.results import Part

if TYPE_CHECKING:
    from federank.audit.poisoning import PoisonSettings

Over = Literal["all", "covered"]
LOWER_IS_BETTER = (*OF_RATINGS, "gini", "arp", "popularity_lift")
FILTERS = ("min_rating", "min_interactions", "k_core", "sample")
READING = ("users", "items", "ratings", "times", "header", "delimiter", "repeats", "item_file")


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set as a study uses it: where it is, what is kept of it, and how it is divided."""

    name: str
    source: str
    reading: dict[str, Any] = field(default_factory=dict)
    filters: dict[str, Any] = field(default_factory=dict)
    split: Division = field(default_factory=Division)
    choose: dict[str, Any] = field(default_factory=dict)
    """How values are chosen on it, where that is not as in the rest of the study."""

    @property
    def key(self) -> str:
        """Equal where what is read and how it is divided are equal."""
        return repr((self.source, self.reading, self.filters, self.split))


@dataclass(frozen=True, kw_only=True)
class Choose(Settings):
    """How values are chosen."""

    metric: str = "precision@10"
    """What is compared: a metric and its N, or mae or rmse."""
    part: Part = "validation"
    """What it is measured on; choosing on test is said in every line and in the report's title."""
    epochs: int | None = setting(None, 1)
    """The budget of every method that learns in epochs, unless its settings say otherwise."""
    patience: int | None = setting(None, 1)
    """Stop a run that chooses once this many epochs have brought nothing better (none: go to the end)."""
    best_epoch: bool = True
    """Choose the epoch as well; otherwise the last of the budget counts."""
    search: Literal["grid", "halving"] = "grid"
    """Try every combination to the end, or drop those that are behind after a few epochs."""
    trials: int | None = setting(None, 1)
    """The most combinations of a grid that are tried: of a larger grid this many, drawn at random (none: all)."""
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
class Audit:
    """Which servers observe a model's test runs, and how many users they attack."""

    sees: tuple[str, ...] = ("updates",)
    people: int | None = None


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A row (or, swept, several) of a study's table."""

    group: str
    method: str
    data: tuple[str, ...] | None
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    grid: dict[str, tuple[Any, ...]]
    sweep: tuple[Point, ...]
    """What is swept: each point is a result of its own; one empty point where nothing is."""
    best: bool
    """Also report the value of the sweep that is best where values are chosen."""
    curve: bool
    """Record the test part's figures after every epoch of the first seed and fold (for a figure)."""
    choose: dict[str, Any]
    audit: Audit | None
    """Who observes the test runs, if anyone does."""
    poison: tuple[PoisonSettings, ...]
    """Malicious clients of the test runs: settings for each share of them."""
    over: Over
    """Which users the means of the test runs are taken over: all, or those who got a list."""


def keys_of(record: Any) -> tuple[str, ...]:
    """The keys that a table with this record may have."""
    return tuple(part.name for part in fields(record))


TOP = (
    *("title", "description", "benchmark", "at", "seeds", "metrics", "filters", "split", "choose", "data", "model"),
    *("paper", "table", "figure", "note", "quick"),
)


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
    specs: ReportSpec
    document: dict[str, Any]
    """The TOML file as it is run, for the report."""

    def choosing(self, data: DataSet, model: ModelEntry) -> Choose:
        """How values are chosen for this model on this data: what the model says counts before the data set's."""
        content = self.choose | data.choose | model.choose
        return Choose(**(content | {"seeds": tuple(content.get("seeds", model.seeds[:1]))}))


def setting_names(method: str) -> tuple[str, ...]:
    """The settings that a method has."""
    return keys_of(recommender_class(method).settings_type)


def epochs_setting(method: str) -> str | None:
    """What the method calls its epochs; None where it has none, or where they follow from another setting."""
    return epochs_of(recommender_class(method))


def as_study(document: dict[str, Any], name: str) -> Study:
    """Check a study's content and work it out."""
    refuse_unknown(document, TOP, "A study")
    seeds = _seeds(document.get("seeds", [1, 2, 3]), "seeds")
    _check_report(document)
    tables = _data_tables(document)
    data = tuple(_data(entry, document) for entry in tables if not entry.get("skip"))
    entries = as_tables(document.get("model"), "model")
    models = tuple(_model(entry, seeds) for entry in entries if not entry.get("skip"))
    if not models:
        raise SettingError("The study has no model to run; add a [[model]].")
    _refuse_repeats("data set", [part.name for part in data])
    for model in models:
        refuse_unknown(model.data or (), sorted(entry["name"] for entry in tables), f"The data of {model.group}")
    for part in data:
        of_this = [model.group for model in models if model.data is None or part.name in model.data]
        _refuse_repeats(f"group of a model on {part.name}", of_this)
    for metric in document.get("metrics", ()):
        _refuse_unknown_metric(metric)
    return Study(
        name=name,
        title=str(document.get("title", name)),
        at=_seeds(document.get("at", [10]), "at", least=1),
        metrics=tuple(document["metrics"]) if "metrics" in document else None,
        data=data,
        models=models,
        choose=_choose(document.get("choose", {}), "[choose]"),
        specs=report_spec_of(document, name),
        document=document,
    )


def as_table(value: Any, where: str) -> dict[str, Any]:
    """A table, or an error that says what is there instead."""
    if not isinstance(value, Mapping):
        raise SettingError(f"{where} is {value!r}; a table of keys and values is needed.")
    return dict(value)


def as_tables(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of tables; one table alone counts as a list of one."""
    listed = documents.as_tables(value)
    if not isinstance(listed, list) or not listed:
        result = "missing" if value is None else repr(value)
        names = 'a list of names, such as data = ["city"], or ' if where == "data" else ""
        raise SettingError(f"{where} is {result}; {names}one or more tables are needed, such as [[{where}]].")
    return [as_table(entry, f"[[{where}]]") for entry in listed]


def _check_report(document: Mapping[str, Any]) -> None:
    """The tables of the report have known keys, and notes name at least one kind of evidence, each with its name."""
    for kind, known in KEYS.items():
        for entry in as_tables(document[kind], kind) if document.get(kind) else []:
            refuse_unknown(entry, known, f"[[{kind}]]")
            if "shown_by" not in entry:
                continue
            where = "shown_by of a [[note]]"
            named = as_table(entry["shown_by"], where)
            refuse_unknown(named, SHOWN_BY, where)
            if not named:
                raise SettingError(
                    f"{where} is empty; name what shows it ({', '.join(SHOWN_BY)}), or leave shown_by out."
                )
            for evidence, name in named.items():
                if not isinstance(name, str) or not name.strip():
                    raise SettingError(f"{evidence} in {where} is {name!r}; its name is needed, as text.")


def _data_tables(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Data sets as tables; a name alone is a table with that name."""
    tables = as_tables(document.get("data"), "data")
    for entry in tables:
        refuse_unknown(entry, (*keys_of(DataSet), "skip"), "[[data]]")
        entry.setdefault("name", entry.get("source"))
        if not isinstance(entry["name"], str):
            raise SettingError("A [[data]] has no name; name a known data set, or a file with `source`.")
    return tables


def _data(entry: dict[str, Any], document: dict[str, Any]) -> DataSet:
    filters = as_table(document.get("filters", {}), "[filters]") | as_table(entry.get("filters", {}), "[data.filters]")
    own = as_table(entry.get("split", {}), "[data.split]")
    split = as_table(document.get("split", {}), "[split]") | own
    reading = as_table(entry.get("reading", {}), "[data.reading]")
    if own.get("way", FOLDS) != FOLDS and "folds" not in own:
        split.pop("folds", None)  # a set that is divided in another way than the others has none of their folds
    refuse_unknown(filters, FILTERS, "[filters]")
    refuse_unknown(split, keys_of(Division), "[split]")
    refuse_unknown(reading, READING, "[data.reading]")
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
        choose=_choose(entry.get("choose", {}), "[data.choose]"),
    )


def _choose(content: Any, where: str) -> dict[str, Any]:
    table = as_table(content, where)
    refuse_unknown(table, keys_of(Choose), where)
    if "seeds" in table:
        table["seeds"] = _seeds(table["seeds"], "seeds to choose with")
    if "metric" in table:
        _refuse_unknown_metric(table["metric"])
    Choose(**table)
    return table


def _model(entry: dict[str, Any], seeds: tuple[int, ...]) -> ModelEntry:
    refuse_unknown(entry, (*keys_of(ModelEntry), "skip"), "[[model]]")
    if "method" not in entry:
        raise SettingError("A [[model]] has no method; name one, such as fpl or popular.")
    method = str(entry["method"])
    group = str(entry.get("group", method))
    content = {kind: as_table(entry.get(kind, {}), f"{kind} of {group}") for kind in ("settings", "grid")}
    sweep = points(entry.get("sweep", {}), group)
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
        sweep=tuple(sweep),
        best=bool(entry.get("best", False)),
        curve=bool(entry.get("curve", False)),
        choose=_choose(entry.get("choose", {}), f"choose of {group}"),
        audit=read_audit(entry.get("audit"), group, method),
        poison=_poison(entry.get("poison"), group, method),
        over=over,
    )


def _seeds(content: Any, where: str, least: int = 0) -> tuple[int, ...]:
    listed = [content] if isinstance(content, int) else content
    if not isinstance(listed, list | tuple) or not listed:
        raise SettingError(f"{where} is {content!r}; one or more integers are needed.")
    for number in listed:
        check_int(where, number, least, 2**32 - 1)
    return tuple(dict.fromkeys(listed))


def _refuse_unknown_metric(name: Any) -> None:
    from federank import extensions
    from federank.evaluation.evaluate import METRICS
    from federank.evaluation.lists import SAMPLED

    kind, _, cut = str(name).partition("@")
    if (cut and not cut.isdecimal()) or (kind in OF_RATINGS and cut):
        raise SettingError(f"The metric {name!r} cannot be read; a name and a length are needed, such as precision@10.")
    refuse_unknown([kind], (*METRICS, *SAMPLED, *OF_RATINGS, *extensions.names("metrics")), "The list of metrics")


def _refuse_repeats(kind: str, names: Iterable[str]) -> None:
    listed = list(names)
    for name in listed:
        if listed.count(name) > 1:
            raise SettingError(f"The {kind} {name!r} is there twice; give each a name of its own.")


# Several values of a setting: a list, or a range such as { from = 0, to = 1, step = 0.1 }, both ends included.


RANGE = ("from", "to", "step")


def several(content: Any, where: str) -> tuple[Any, ...]:
    """The values that a list or a range stands for; one value alone is a list of one."""
    if isinstance(content, Mapping):
        return _range(content, where)
    listed = content if isinstance(content, list) else [content]
    if not listed:
        raise SettingError(f"{where} is an empty list; one or more values are needed.")
    if any(isinstance(value, dict | list) for value in listed):
        raise SettingError(f"{where} is {content!r}; plain values are needed, or {{ from = 0, to = 1, step = 0.1 }}.")
    return tuple(listed)


def crossed(lists: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Every combination of one value from each list, the last list turning fastest; one empty one of no lists."""
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def points(content: Any, where: str) -> list[Point]:
    """The points of a sweep, each as what is swept and what goes along with it.

    A table of lists or ranges is crossed. A list of tables is one point each: what all of them have and the first
    names first is swept, the rest goes along: [{ rho = 1, t_predict = 10 }, { rho = 2, t_predict = 5 }].
    """
    if isinstance(content, Mapping):
        lists = {name: several(values, f"{name} of {where}") for name, values in content.items()}
        return [Point(swept, {}) for swept in crossed(lists)]
    if not isinstance(content, list) or not content or not all(isinstance(one, Mapping) and one for one in content):
        raise SettingError(f"The sweep of {where} is {content!r}; a table of lists, or a list of tables, is needed.")
    name = next(iter(content[0]))
    if not all(name in point for point in content):
        raise SettingError(f"Some points of the sweep of {where} have no {name}; all need what is swept.")
    return [
        Point({name: point[name]}, {key: value for key, value in point.items() if key != name}) for point in content
    ]


def _range(content: Mapping[str, Any], where: str) -> tuple[Any, ...]:
    refuse_unknown(content, RANGE, f"The range of {where}")
    ends = [content.get(name) for name in RANGE]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        raise SettingError(f"The range of {where} is {dict(content)!r}; from, to and step are needed, all numbers.")
    # Decimal, so that steps of 0.1 come out as 0.3 and not as 0.30000000000000004.
    first, last, step = (Decimal(str(end)) for end in ends)
    if step <= 0 or last < first or (last - first) / step > 10_000:
        raise SettingError(
            f"The range of {where} goes from {first} to {last} in steps of {step}; a step above 0 and at most 10,000 "
            "values from low to high are needed."
        )
    values = [first + step * position for position in range(int((last - first) / step) + 1)]
    is_int = all(isinstance(end, int) for end in ends)
    return tuple(int(value) if is_int else float(value) for value in values)


def read_audit(content: Any, group: str, method: str) -> Audit | None:
    """The audit that a [[model]] asks for, checked; None where it asks for none."""
    if content is None:
        return None
    where = f"audit of {group}"
    table = as_table(content, where)
    if method not in AUDITED and method not in audited_names():
        able = ", ".join(audited_names())
        raise SettingError(f"{group} ({method}) cannot be audited, only {able}; leave its audit out.")
    if "cohort" in table:
        raise SettingError(
            f"{where} has a cohort; a sum is taken over a round's clients, so give it in settings, such as "
            f"settings = {{ clients_per_round = {table['cohort']} }}."
        )
    refuse_unknown(table, keys_of(Audit), where)
    sees = table.get("sees", "updates")
    listed = [sees] if isinstance(sees, str) else sees
    if not isinstance(listed, list) or not listed:
        raise SettingError(f'sees in the {where} is {sees!r}; one or more servers are needed, such as ["updates"].')
    adversaries = import_module(recommender_class(method).audit).ADVERSARIES
    refuse_unknown(map(str, listed), adversaries, f"sees in the {where}")
    if table.get("people") is not None:
        check_int(f"people in the {where}", table["people"], 1)
    return Audit(sees=tuple(dict.fromkeys(listed)), people=table.get("people"))


def refuse_impossible_audit(audit: Audit | None, group: str, settings: Any) -> None:
    """Raise where a run with these settings has nothing such a server could see, before anything is run."""
    if audit is None:
        return
    if not getattr(settings, "federated", True):
        raise SettingError(f"{group} learns without a federation: nothing is sent, so leave its audit out.")
    one = str(getattr(settings, "clients_per_round", None)) == "1"
    if "sums" in audit.sees and one:
        raise SettingError(
            f"The audit of {group} sees sums, but a round has one client, whose sum is its upload; set "
            "clients_per_round to more, or let the server see updates."
        )
    if "updates" in audit.sees and not one and float(getattr(settings, "noise", 0.0)) > 0:
        raise SettingError(
            f"The audit of {group} links noisy uploads, which it can where a round has one client; let the server see "
            "sums or anonymous, or set clients_per_round to 1."
        )


POISON_KEYS = (
    *("attack", "aim", "shares", "sees", "bounds", "recipe", "epsilon", "item_weights", "clip", "rounds", "reports"),
)
POISONED = ("fpl", "frugal")
"""The methods whose federations can be poisoned."""


def _poison(content: Any, group: str, method: str) -> tuple[PoisonSettings, ...]:
    """The malicious clients that a [[model]] asks for, checked: settings for each share of them."""
    if content is None:
        return ()
    from federank.audit.poisoning import PoisonSettings

    where = f"poison of {group}"
    table = as_table(content, where)
    if method not in POISONED:
        raise SettingError(f"{group} ({method}) cannot be poisoned, only {', '.join(POISONED)}; leave its poison out.")
    refuse_unknown(table, POISON_KEYS, where)
    shares = table.pop("shares", [0.05])
    if not isinstance(shares, list) or not shares:
        raise SettingError(f"shares in the {where} is {shares!r}; one or more are needed, such as [0.01, 0.05].")
    return tuple(PoisonSettings(**{"method": method, **table, "share": share}) for share in shares)
