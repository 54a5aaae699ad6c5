"""What a study wishes to see in its report: the tables, figures, published values and notes of its TOML.

    [[table]]    title, metrics; groups (which rows, in which order), data, against (the row that others are tested
                 against, and with `loss:` metrics compared with at the same swept values), goal (bounds that the
                 means of a row must not pass), best (only the best row of each sweep by this metric, which is
                 choosing on the test part)
    [[figure]]   kind; title, groups, baselines, data, metric, sweep
    [[paper]]    data, group, metrics = { "precision@10" = 0.118 }, source; settings = { pi = 0.1 }: at one point
    [[note]]     text; data, group, metric: why ours differs from the paper's there (a missing one: everywhere)

A study without wishes gets a table of the usual metrics, and every figure that its runs can fill.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from federank.errors import BadFile
from federank.studies.report.metric_words import parts
from federank.studies.results.rows import Row

USUAL = ("precision@10", "recall@10", "ndcg@10", "item_coverage@10", "gini@10")
OF_RATINGS = ("mae", "rmse")


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The part of a study that is about its report."""

    title: str
    description: str = ""
    data: Sequence[str] = ()
    """The data sets that the study is about, whether they were there or not."""
    tables: Sequence[Mapping[str, Any]] = ()
    figures: Sequence[Mapping[str, Any]] = ()
    papers: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def read_wishes(folder: Path) -> Wishes:
    """The wishes of the study in a folder of results."""
    path = folder / "study.toml"
    try:
        study = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as reason:
        raise BadFile(
            f"{folder} has no study.toml, so it is not a study's results; name the folder that `federank study run` "
            "wrote with --out."
        ) from reason
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as reason:
        raise BadFile(
            f"{path} cannot be read: {reason}. Take it away and run the study again to have it written anew."
        ) from reason
    about = study | (study["study"] if isinstance(study.get("study"), Mapping) else {})
    return Wishes(
        title=str(about.get("title") or about.get("name") or folder.name),
        description=str(about.get("description") or ""),
        data=_data_names(study.get("data", ())),
        tables=study.get("table", ()),
        figures=study.get("figure", ()),
        papers=study.get("paper", ()),
        notes=study.get("note", ()),
    )


def _data_names(told: Any) -> list[str]:
    entries = told if isinstance(told, list) else [told]
    names = (entry.get("name", entry.get("source")) if isinstance(entry, Mapping) else entry for entry in entries)
    kept = (not (isinstance(entry, Mapping) and entry.get("skip")) for entry in entries)
    return [str(name) for name, there in zip(names, kept, strict=True) if name and there]


def tables_wished(wishes: Wishes, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """The study's tables, or one of the usual metrics that its runs have."""
    if wishes.tables or not rows:
        return list(wishes.tables)
    metrics = [metric for metric in (*USUAL, *OF_RATINGS) if any(len(row.values(metric)) for row in rows)]
    if not metrics:
        metrics = sorted({name for row in rows for line in row.lines for name in line["metrics"] if "/" not in name})
    return [{"title": "Results", "metrics": metrics}]


def published(wishes: Wishes, row: Row, rows: Sequence[Row], metric: str) -> float | None:
    """What the paper has for a row: `rows` are those of its table, which tell whether its group is one row there."""
    alone = sum(other.data == row.data and other.group == row.group for other in rows) == 1
    for paper in wishes.papers:
        if paper.get("data", row.data) != row.data or paper.get("group", row.group) != row.group:
            continue
        settings = paper.get("settings")
        fits = all(row.at(name) == value for name, value in settings.items()) if settings else alone
        if fits and metric in paper.get("metrics", {}):
            return float(paper["metrics"][metric])
    return None


def note_on(wishes: Wishes, row: Row, metric: str) -> str | None:
    """The study's explanation of a difference in this place, if it has one."""
    names = {"data": (row.data,), "group": (row.group, row.label), "metric": (metric, parts(metric)[0])}
    for note in wishes.notes:
        if all(key not in note or set(_listed(note[key])).intersection(values) for key, values in names.items()):
            return str(note["text"])
    return None


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
