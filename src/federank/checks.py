"""Checks of settings: each says in a sentence what was found and what is needed."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar

from federank.errors import SettingError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type[Any])


def number(name: str, value: Any, needed: str) -> float:
    """A setting that may be given as text, as a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SettingError(f"{name} is {value!r}; {needed} is needed.") from None


def whole(name: str, value: Any, least: int, most: float = math.inf) -> None:
    """Refuse what is not an integer in this range."""
    is_int = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value == int(value)
    )
    if not is_int or not least <= value <= most:
        span = f"{least} or more" if most == math.inf else f"from {least} to {int(most)}"
        raise SettingError(f"{name} is {value!r}; an integer, {span}, is needed.")


def positive(name: str, value: float) -> None:
    """Refuse what is not a finite number above zero."""
    if not _is_number(value) or not (value > 0 and math.isfinite(value)):
        raise SettingError(f"{name} is {value!r}; a finite number above 0 is needed.")


def within(name: str, value: float, low: float, high: float) -> None:
    """Refuse what is not a finite number in this range."""
    if not _is_number(value) or not (low <= value <= high and math.isfinite(value)):
        span = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
        raise SettingError(f"{name} is {value!r}; a number {span} is needed.")


def share(name: str, value: float) -> None:
    """Refuse what is not a part of a whole that leaves something over."""
    if not _is_number(value) or not 0 <= value < 1:
        raise SettingError(f"{name} is {value!r}; a share from 0 to below 1 is needed.")


def instance(name: str, value: Any, kind: type[Any] | tuple[type[Any], ...], needed: str) -> None:
    """Refuse what is of another type."""
    if not isinstance(value, kind):
        raise SettingError(f"{name} is of type {type(value).__name__}; {needed} is needed.")


def several(name: str, value: Any, needed: str) -> None:
    """Refuse what cannot be gone through one by one; a text is one thing."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise SettingError(f"{name} is {value!r}; {needed} is needed.")


def seed(value: Any) -> None:
    """Refuse what cannot name a run."""
    whole("seed", value, 0, 2**32 - 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse what is none of these words."""
    if value not in choices:
        raise SettingError(f"{name} is {value!r}; it can be {' or '.join(choices)}.")


def no_such(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Say that nothing is called so, which known name is near, which there are, and what to do otherwise."""
    names = list(known)
    return f"No {kind} is called {name!r}.{did_you_mean(name, names)} Known: {', '.join(names)}{otherwise}."


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The nearest known name as a question to be put behind a sentence; empty where none is near."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def known(owner: str, name: str, names: Collection[str], kind: str = "setting") -> None:
    """Refuse a name that is none of these, and guess which was meant."""
    if name in names:
        return
    has = f"it has {', '.join(names)}" if names else "it has none"
    raise SettingError(f"{owner} has no {kind} {name!r}; {has}.{did_you_mean(name, names)}")


def takes_only_its_names(record: T) -> T:
    """A record whose making refuses a name it does not have with a sentence; type checkers see it as it is."""
    names = [name for name in inspect.signature(record).parameters if name != "self"]
    record.__init__ = _asked(record.__init__, record.__name__, names)
    return record


def _asked(function: Callable[P, R], owner: str, names: Collection[str]) -> Callable[P, R]:
    @functools.wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            known(owner, name, names)
        return function(*args, **kwargs)

    return asked
