"""Attacks from outside: one more way to guess histories, run and judged beside ours.

    @attack(on="pairs", sees=("updates", "anonymous"))
    def loudest(view):
        return Guess(scores, sizes)          people x items, and how many of the first are claimed of each person

    register_attack(loudest)                 in every audit of such methods from now on

`on` is the family of methods whose views it understands (`pairs`, `ratings`, `squares`, or `steps` for methods that
bring their own messages), `sees` which servers' views. A view holds what such a server has and nothing else. A package
names its attacks as entry points of the group `federank.attacks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from federank import extensions
from federank.audit.guess import Attack, Guess
from federank.checks import one_of
from federank.errors import SettingError

FAMILIES = ("pairs", "ratings", "squares", "steps")


def attack(*, on: str, sees: Sequence[str] = ("updates",)) -> Callable[[Attack], Attack]:
    """Say of a function which views it understands: of which family of methods, and of which servers."""
    one_of("on", on, FAMILIES)
    if isinstance(sees, str):
        raise SettingError(f"sees is {sees!r}; a list of servers is needed, such as [{sees!r}].")

    def marked(function: Attack) -> Attack:
        function.on, function.sees = on, tuple(sees)  # type: ignore[attr-defined]
        return function

    return marked


def register_attack(function: Attack, name: str | None = None) -> Attack:
    """Make an attack of your own part of every audit that it understands, for this process."""
    called = str(name or getattr(function, "__name__", ""))
    _checked(function, called)
    extensions.add("attacks", called, function)
    return function


def with_own_attacks(ours: dict[str, Attack], family: str, sees: str) -> dict[str, Attack]:
    """The attacks on a family's views of this server: ours, then those from outside."""
    found = dict(ours)
    for name, function in extensions.found("attacks").items():
        _checked(function, name)
        if function.on == family and sees in function.sees:
            if name in ours:
                raise SettingError(f"An attack from outside is called {name!r}, as one of ours; rename it.")
            found[name] = _judged(function, name)
    return found


def _checked(function: Any, name: str) -> None:
    if not callable(function) or not hasattr(function, "on"):
        raise SettingError(f"The attack {name!r} does not say what it understands; decorate it with fr.attack(on=...).")


def _judged(function: Attack, name: str) -> Attack:
    """The same attack, its answers checked."""

    def asked(view: Any) -> Guess:
        guess = function(view)
        if not isinstance(guess, Guess):
            raise SettingError(
                f"The attack {name!r} answered with a {type(guess).__name__}; a federank.Guess is needed."
            )
        scores, sizes = np.asarray(guess.scores, np.float32), np.asarray(guess.sizes, np.int64)
        if scores.ndim != 2 or sizes.shape != scores.shape[:1] or np.isnan(scores).any():
            raise SettingError(
                f"The attack {name!r} answered with scores of shape {scores.shape} and sizes of shape {sizes.shape}; "
                "people x items, without gaps, and a number for each person are needed."
            )
        return Guess(scores, sizes)

    return asked
