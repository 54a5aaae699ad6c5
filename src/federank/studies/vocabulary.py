"""The words of a study's TOML file: which keys each table may have.

An unknown key is an error that names the nearest known one: a misspelt setting that is silently passed over
would make a study of something else. Settings of a method come from its record (methods/), and are not written
here again.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

from federank.checks import check_int, did_you_mean
from federank.data.splits import Division
from federank.errors import SettingError
from federank.methods.registry import AUDITED, audited_names, recommender_class
from federank.methods.registry import epochs_setting as epochs_of

if TYPE_CHECKING:
    from federank.audit.poisoning import PoisonSettings

TOP = (
    *("title", "description", "benchmark", "at", "seeds", "metrics", "filters", "split", "choose", "data", "model"),
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
        result = "missing" if value is None else repr(value)
        names = 'a list of names, such as data = ["city"], or ' if where == "data" else ""
        raise SettingError(f"{where} is {result}; {names}one or more tables are needed, such as [[{where}]].")
    return [as_table(entry, f"[[{where}]]") for entry in listed]


def setting_names(method: str) -> tuple[str, ...]:
    """The settings that a method has."""
    return tuple(field.name for field in fields(recommender_class(method).settings_type))


def epochs_setting(method: str) -> str | None:
    """What the method calls its epochs; None where it has none, or where they follow from another setting."""
    return epochs_of(recommender_class(method))


# Several values of a setting: a list, or a range such as { from = 0, to = 1, step = 0.1 }, both ends included.


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


def points(content: Any, where: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The points of a sweep, each as what is swept and what goes along with it.

    A table of lists or ranges is crossed. A list of tables is one point each: what all of them have and the first
    names first is swept, the rest goes along: [{ rho = 1, t_predict = 10 }, { rho = 2, t_predict = 5 }].
    """
    if isinstance(content, Mapping):
        lists = {name: several(values, f"{name} of {where}") for name, values in content.items()}
        return [(swept, {}) for swept in crossed(lists)]
    if (
        not isinstance(content, list)
        or not content
        or not all(isinstance(point, Mapping) and point for point in content)
    ):
        raise SettingError(f"The sweep of {where} is {content!r}; a table of lists, or a list of tables, is needed.")
    name = next(iter(content[0]))
    if not all(name in point for point in content):
        raise SettingError(f"Some points of the sweep of {where} have no {name}; all need what is swept.")
    return [({name: point[name]}, {key: value for key, value in point.items() if key != name}) for point in content]


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
    count = int((last - first) / step) + 1
    values = [first + step * position for position in range(count)]
    is_int = all(isinstance(end, int) for end in ends)
    return tuple(int(value) if is_int else float(value) for value in values)


# Audits in a study: a model whose test runs are watched by a honest-but-curious server.


AUDIT_KEYS = ("sees", "people")


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Which servers watch a model's test runs, and how many people they attack."""

    sees: tuple[str, ...]
    people: int | None


def read_audit(content: Any, group: str, method: str) -> Audit | None:
    """What a [[model]] says of its audit, checked; None where it says nothing."""
    if content is None:
        return None
    where = f"audit of {group}"
    table = as_table(content, where)
    if method not in AUDITED and method not in audited_names():
        able = ", ".join(audited_names())
        raise SettingError(f"{group} ({method}) cannot be audited, only {able}; leave its audit out.")
    if "cohort" in table:
        raise SettingError(
            f"{where} has a cohort; a sum is taken over a round's devices, so say it in settings, such as "
            f"settings = {{ clients_per_round = {table['cohort']} }}."
        )
    refuse_unknown(table, AUDIT_KEYS, where)
    sees = table.get("sees", "updates")
    listed = [sees] if isinstance(sees, str) else sees
    if not isinstance(listed, list) or not listed:
        raise SettingError(f'sees in the {where} is {sees!r}; one or more servers are needed, such as ["updates"].')
    refuse_unknown(dict.fromkeys(map(str, listed)), _servers(method), f"sees in the {where}")
    if table.get("people") is not None:
        check_int(f"people in the {where}", table["people"], 1)
    return Audit(sees=tuple(dict.fromkeys(listed)), people=table.get("people"))


def _servers(method: str) -> tuple[str, ...]:
    """What a server may see of this method's runs."""
    adversaries: tuple[str, ...] = import_module(recommender_class(method).audit).ADVERSARIES
    return adversaries


def refuse_impossible_audit(audit: Audit | None, group: str, settings: Any) -> None:
    """Raise where a run with these settings has nothing such a server could see, before anything is run."""
    if audit is None:
        return
    if not getattr(settings, "federated", True):
        raise SettingError(f"{group} learns without a federation: nothing is sent, so leave its audit out.")
    one = str(getattr(settings, "clients_per_round", None)) == "1"
    if "sums" in audit.sees and one:
        raise SettingError(
            f"The audit of {group} sees sums, but a round has one device, whose sum is its Update; set "
            "clients_per_round to more, or let the server see updates."
        )
    if "updates" in audit.sees and not one and float(getattr(settings, "noise", 0.0)) > 0:
        raise SettingError(
            f"The audit of {group} links noisy Updates, which it can where a round has one device; let the server see "
            "sums or anonymous, or set clients_per_round to 1."
        )


# Poisoned federations in a study: test runs that malicious clients attack, with the defences and without.


POISON_KEYS = ("attack", "aim", "shares", "sees", "bounds", "recipe", "epsilon", "clip", "rounds", "reports")
METHODS = ("fpl", "frugal")


def poison_identity(poison: Sequence[PoisonSettings]) -> dict[str, Any]:
    """What names a run with malicious clients: what differs from the usual, of settings that were added later."""
    first = poison[0]
    usual: dict[str, Any] = {"bounds": "all", "recipe": "spectral", "epsilon": None}
    if first.sees != "checked":
        usual["clip"] = first.clip  # of others it says nothing
    content = {name: getattr(first, name) for name in POISON_KEYS if name != "shares"}
    content = {name: value for name, value in content.items() if name not in usual or value != usual[name]}
    return content | {"shares": [settings.share for settings in poison]}


def read_poison(content: Any, group: str, method: str) -> tuple[PoisonSettings, ...]:
    """What a [[model]] says of its malicious clients, checked: settings for each share of them."""
    from federank.audit.poisoning import PoisonSettings

    if content is None:
        return ()
    where = f"poison of {group}"
    table = as_table(content, where)
    if method not in METHODS:
        raise SettingError(f"{group} ({method}) cannot be poisoned, only {', '.join(METHODS)}; leave its poison out.")
    refuse_unknown(table, POISON_KEYS, where)
    shares = table.pop("shares", [0.05])
    if not isinstance(shares, list) or not shares:
        raise SettingError(f"shares in the {where} is {shares!r}; one or more are needed, such as [0.01, 0.05].")
    return tuple(PoisonSettings(**{"method": method, **table, "share": share}) for share in shares)
