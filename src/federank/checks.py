"""Checks of settings. Each error names the setting, the value it has and the values it may have."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

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


def check_name(owner: str, name: str, names: Collection[str], kind: str = "setting") -> None:
    """Raise unless the owner has a setting of this name; suggest the nearest one."""
    if name not in names:
        has = f"it has {', '.join(names)}" if names else "it has none"
        raise SettingError(f"{owner} has no {kind} {name!r}; {has}.{did_you_mean(name, names)}")


def unknown_name(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> str:
    """An error message for an unknown name: the nearest known name, all known names, and an alternative."""
    names = list(known)
    return f"No {kind} is called {name!r}.{did_you_mean(name, names)} Known: {', '.join(names)}{otherwise}."


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The nearest known name as a question; empty where none is near."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
