"""The words of a study's TOML file: which keys each table may have.

A key that nobody knows is an error that names the nearest known one: a misspelt setting that is silently passed over
would make a study of something else. Settings of a method come from its record (recommenders/), and are not written
here again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from federank.checks import did_you_mean
from federank.data.ways import Division
from federank.errors import SettingError
from federank.recommenders.registry import epochs_setting as epochs_of
from federank.recommenders.registry import recommender_class

TOP = (
    *("title", "description", "at", "seeds", "metrics", "filters", "split", "choose", "data", "model"),
    *("paper", "table", "figure", "note", "quick"),
)
FILTERS = ("min_rating", "min_interactions", "k_core", "sample")
READING = ("users", "items", "ratings", "times", "header", "delimiter", "repeats", "item_file")
SPLIT = tuple(field.name for field in fields(Division))
CHOOSE = ("metric", "part", "epochs", "patience", "best_epoch", "search", "seeds")
DATA = ("name", "source", "reading", "filters", "split", "choose", "skip")
MODEL = (
    "group",
    "method",
    "data",
    "seeds",
    "settings",
    "grid",
    "sweep",
    "best",
    "curve",
    "choose",
    "audit",
    "poison",
    "over",
    "skip",
)
RANGE = ("from", "to", "step")


def refuse_unknown(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raise for the first key that is not known, and name the nearest that is."""
    for key in table:
        if key not in known:
            raise SettingError(f"{where} has no {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}.")


def as_table(value: Any, where: str) -> dict[str, Any]:
    """A table, or a sentence on what was found instead."""
    if not isinstance(value, Mapping):
        raise SettingError(f"{where} is {value!r}; a table of keys and values is needed.")
    return dict(value)


def as_tables(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of tables; one table alone counts as a list of one."""
    listed = [value] if isinstance(value, Mapping) else value
    if not isinstance(listed, list) or not listed:
        found = "missing" if value is None else repr(value)
        names = 'a list of names, such as data = ["city"], or ' if where == "data" else ""
        raise SettingError(f"{where} is {found}; {names}one or more tables are needed, such as [[{where}]].")
    return [as_table(entry, f"[[{where}]]") for entry in listed]


def setting_names(method: str) -> tuple[str, ...]:
    """The settings that a method has."""
    return tuple(field.name for field in fields(recommender_class(method).settings_type))


def epochs_setting(method: str) -> str | None:
    """What the method calls its epochs; None where it has none, or where they follow from another setting."""
    return epochs_of(recommender_class(method))
