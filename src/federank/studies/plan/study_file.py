"""A study: which runs to make, read from one TOML file.

    title = "FPL against popularity"
    seeds = [1, 2, 3]
    data = ["city"]                                    # or [[data]] tables, each with its filters and split

    [filters]
    min_interactions = 20

    [choose]                                           # hyper-parameters and the best epoch, on validation
    metric = "precision@10"
    epochs = 20

    [[model]]
    group = "FPL"                                      # the row's label
    method = "fpl"
    settings = { triples = "mean" }                    # the same in every run
    grid = { learning_rate = [0.005, 0.05, 0.5] }      # crossed; the best on validation is tested
    sweep = { pi = { from = 0, to = 1, step = 0.1 } }  # each value is a result of its own

Everything is checked here, before anything is run; docs/studies.md tells all keys. `paper`, `table`, `figure` and
`note` are the report's; they are only checked for unknown keys.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from federank.checks import one_of, whole
from federank.data.ways import FOLDS, Division
from federank.errors import BadFile, SettingError
from federank.recommenders.registry import recommender_class
from federank.studies.plan import vocabulary as words
from federank.studies.plan.audit import read_audit
from federank.studies.plan.poison import read_poison
from federank.studies.plan.ranges import points, several
from federank.studies.plan.study import RATING_METRICS, DataSet, ModelEntry, Over, Point, Study
from federank.studies.plan.vocabulary import as_table, as_tables, refuse_unknown, setting_names
from federank.studies.plan.wishes import KEYS, SHOWN_BY, wishes_of


def read_document(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as reason:
        raise BadFile(f"The study {path} cannot be read: {getattr(reason, 'strerror', None) or reason}.") from reason
    except tomllib.TOMLDecodeError as reason:
        raise BadFile(f"The study {path} is not TOML: {reason}.") from reason


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
        wishes=wishes_of(document, name),
        document=document,
    )
    _refuse_repeats("data set", [part.name for part in data])
    for part in data:
        of_this = [model for model in models if model.data is None or part.name in model.data]
        _refuse_repeats(f"group of a model on {part.name}", [model.group for model in of_this])
    _refuse_strangers(study)
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
    one_of("The part to choose on", table.get("part", "validation"), ("validation", "test"))
    one_of("The search", table.get("search", "grid"), ("grid", "halving"))
    for name in ("epochs", "patience"):
        if name in table:
            whole(name, table[name], 1)
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
        over=_over(entry.get("over", "all"), group),
    )


def _over(content: Any, group: str) -> Over:
    one_of(f"over of {group}", content, get_args(Over))
    return content  # type: ignore[no-any-return]


def _seeds(content: Any, where: str, least: int = 0) -> tuple[int, ...]:
    listed = [content] if isinstance(content, int) else content
    if not isinstance(listed, list | tuple) or not listed:
        raise SettingError(f"{where} is {content!r}; one or more whole numbers are needed.")
    for number in listed:
        whole(where, number, least, 2**32 - 1)
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
    from federank.evaluation.sampled import SAMPLED

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


def _refuse_strangers(study: Study) -> None:
    """Every data set that a model names must be one of the study's."""
    if not study.models:
        raise SettingError("The study has no model to run; add a [[model]].")
    known = {part["name"] for part in _data_tables(study.document)}
    for model in study.models:
        refuse_unknown(dict.fromkeys(model.data or ()), sorted(known), f"The data of {model.group}")
