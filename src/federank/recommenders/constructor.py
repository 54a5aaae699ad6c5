"""The constructor of a method, with the names, types and defaults of its settings record.

    class FPL(PairwiseFactors):
        @made_from(FPLSettings)
        def __init__(self) -> None: ...

An editor then shows `FPL(*, factors: int = 20, ...)`, and a type checker refuses a setting that is not there, though
the settings are written once, in their record. What is unknown when the program runs is refused with a sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from federank.checks import known
from federank.errors import SettingError

P = ParamSpec("P")
Method = TypeVar("Method")


def made_from(
    settings_type: Callable[P, Any],
) -> Callable[[Callable[[Method], None]], Callable[Concatenate[Method, P], None]]:
    """Give a method's constructor the parameters of its settings record; what it does itself is done after."""

    def constructor(declared: Callable[[Method], None]) -> Callable[Concatenate[Method, P], None]:
        def make(self: Method, /, *args: P.args, **settings: P.kwargs) -> None:
            if args:
                raise SettingError(f"{type(self).__name__} takes its settings by name, and {args[0]!r} has none.")
            self.settings = checked_settings(type(self), settings_type, settings)  # type: ignore[attr-defined]
            declared(self)

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        shown = inspect.signature(settings_type)
        make.__signature__ = shown.replace(parameters=[own, *shown.parameters.values()])  # type: ignore[attr-defined]
        make.__doc__ = f"The settings are those of {getattr(settings_type, '__name__', settings_type)}."
        return make

    return constructor


def checked_settings(method: type[Any], settings_type: Any, given: dict[str, Any]) -> Any:
    """The settings record of a method, if it has all the names given; the record itself checks their values."""
    names = [field.name for field in fields(settings_type)]
    for name in given:
        known(method.__name__, name, names)
    # A sweep over a NumPy range hands in NumPy's numbers; the record holds Python's.
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    return settings_type(**plain)
