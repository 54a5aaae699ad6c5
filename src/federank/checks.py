"""Checks of settings. Each error names the setting, the value it has and the values it may have."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from federank.errors import SettingError


def to_float(name: str, value: Any, needed: str) -> float:
    """The value as a number; it may be text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SettingError(f"{name} is {value!r}; {needed} is needed.") from None


def check_int(name: str, value: Any, least: int, most: float = math.inf) -> None:
    """Raise unless the value is an integer in this range."""
    if not (_is_number(value) and math.isfinite(value) and value == int(value) and least <= value <= most):
        span = f"{least} or more" if most == math.inf else f"from {least} to {int(most)}"
        raise SettingError(f"{name} is {value!r}; an integer, {span}, is needed.")


def check_positive(name: str, value: float) -> None:
    """Raise unless the value is a finite number above zero."""
    if not (_is_number(value) and 0 < value < math.inf):
        raise SettingError(f"{name} is {value!r}; a finite number above 0 is needed.")


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise unless the value is a finite number in this range."""
    if not (_is_number(value) and low <= value <= high and math.isfinite(value)):
        span = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
        raise SettingError(f"{name} is {value!r}; a number {span} is needed.")


def check_fraction(name: str, value: float) -> None:
    """Raise unless the value is a number from 0 to below 1."""
    if not (_is_number(value) and 0 <= value < 1):
        raise SettingError(f"{name} is {value!r}; a fraction from 0 to below 1 is needed.")


def check_type(name: str, value: Any, kind: type[Any] | tuple[type[Any], ...], needed: str) -> None:
    """Raise unless the value is of this type."""
    if not isinstance(value, kind):
        raise SettingError(f"{name} is of type {type(value).__name__}; {needed} is needed.")


def check_iterable(name: str, value: Any, needed: str) -> None:
    """Raise unless the value is iterable; text counts as one value."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise SettingError(f"{name} is {value!r}; {needed} is needed.")


def check_seed(value: Any) -> None:
    """Raise unless the value is a 32-bit seed."""
    check_int("seed", value, 0, 2**32 - 1)


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise unless the value is one of these words."""
    if value not in choices:
        raise SettingError(f"{name} is {value!r}; it can be {' or '.join(choices)}.")


def unknown_name(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> str:
    """An error message for an unknown name: the nearest known name, all known names, and an alternative."""
    names = list(known)
    return f"No {kind} is called {name!r}.{did_you_mean(name, names)} Known: {', '.join(names)}{otherwise}."


def refuse_unknown(names: Iterable[str], known: Collection[str], where: str, kind: str = "") -> None:
    """Raise for the first name that is not known where it stands, and suggest the nearest that is."""
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise SettingError(f"{where} has no {kind}{name!r}.{did_you_mean(name, known)} Known: {listed}.")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The nearest known name as a question; empty where none is near."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def _is_number(value: Any) -> bool:
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return False  # a number in JSON may be larger than all floats
    return isinstance(value, int | float) and not isinstance(value, bool)


# Records of settings: each field declares its type and bounds, which are checked when a record is made.


def setting(
    default: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    positive: bool = False,
    fraction: bool = False,
    extensible: bool = False,
    paper: bool = False,
    expert: bool = False,
) -> Any:
    """A field of a record of settings: from `low` to `high`; or above 0; or from 0 to below 1.

    `extensible`: packages may bring other words, so it is checked where it is used. `paper`: it only reproduces a
    publication. `expert`: few users change it.
    """
    bounds = {"low": low, "high": high, "positive": positive, "fraction": fraction, "extensible": extensible}
    return field(default=default, metadata={**bounds, "paper": paper, "expert": expert})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a method, checked as they are declared."""

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(record: Any) -> None:
    """Raise unless each field is of its declared type and within its bounds. Where None is a default, it is open."""
    for name, kind, bounds, is_open in _declared(record.__class__):
        value = getattr(record, name)
        if (value is None and is_open) or bounds.get("extensible"):
            continue
        if get_origin(kind) is Literal:
            check_choice(name, value, get_args(kind))
        elif kind is int:
            check_int(name, value, int(max(bounds.get("low", -math.inf), -(2**53))), bounds.get("high", math.inf))
        elif kind is bool:
            check_type(name, value, bool, "true or false")
        elif kind is float and bounds.get("positive"):
            check_positive(name, value)
        elif kind is float and bounds.get("fraction"):
            check_fraction(name, value)
        elif kind is float:
            check_range(name, value, bounds.get("low", -math.inf), bounds.get("high", math.inf))


@cache
def _declared(record: Any) -> Sequence[tuple[str, Any, Mapping[str, Any], bool]]:
    """Each field's name, type without None, bounds, and whether it may be left open."""
    hints, declared = get_type_hints(record), []
    for part in fields(record):
        kind = hints[part.name]
        if isinstance(kind, UnionType) and len(kinds := [one for one in get_args(kind) if one is not NoneType]) == 1:
            kind = kinds[0]
        declared.append((part.name, kind, part.metadata, part.default is None))
    return declared
