"""Flags that would have no effect: not shown where a method has no use for them, and refused where they are given.

A flag that is taken and does nothing lets somebody believe that it did something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.data.ways import WAYS
from federank.errors import SettingError
from federank.recommenders.registry import epochs_setting

if TYPE_CHECKING:
    from federank.recommenders.recommender import Recommender

_OF_ROUNDS = ("engine", "cluster", "shards", "threads", "resume")
_OF_SPLITS = ("test", "validation", "split_seed")
_USED = {
    "temporal": ("test", "validation"),
    "global-temporal": ("test", "validation"),
    "leave-last-out": ("validation",),
    "random": _OF_SPLITS,
    "none": (),
}
"""Which of the flags about splits each way of splitting looks at."""


def offered(method: type[Recommender], params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The options of every method, those that this one has no use for hidden."""
    idle = _idle(method)
    return [_hidden(param) if param.name in idle else param for param in params]


def refuse_idle_flags(method: type[Recommender], way: str, folds: int | None) -> None:
    """Raise for the first flag of this command line that the method or the split has no use for."""
    for name, reason in _idle(method).items():
        # Folds go on by whole models, so they can be resumed whatever the method.
        if _given(name) and not (name == "resume" and folds is not None):
            raise SettingError(f"{reason}; leave out {_flag(name)}.")
    used: tuple[str, ...]
    if folds is not None:
        used, reason = ("split_seed",), "--folds divides the data at random by itself"
    elif way in WAYS or way == "none":
        how = "learns from everything" if way == "none" else "does not use it"
        used, reason = _USED[way], f"--split {way} {how}"
    elif not Path(way).is_dir():
        return  # no way of splitting at all, which is refused where it is used
    else:
        used, reason = (), f"--split names a folder of parts, {way}, which are taken as they are"
    for name in _OF_SPLITS:
        if name not in used and _given(name):
            raise SettingError(f"{reason}; leave out {_flag(name)}.")


def refuse_settings_without_effect(settings: Any, given: Iterable[str]) -> None:
    """Raise for the first of the given settings that does nothing beside the others.

    A record of settings says which those are in a method `without_effect`, where there can be any.
    """
    idle = settings.without_effect() if hasattr(settings, "without_effect") else {}
    for name in given:
        if name in idle:
            raise SettingError(f"{_flag(name)} has no effect here: {idle[name]}. Leave it out.")


def _idle(method: type[Recommender]) -> dict[str, str]:
    """The flags that a method has no use for, each with the reason."""
    idle = {}
    if method.in_rounds and method.can_use:
        one_by_one = f"{method.name} asks one device after the other, in this process"
        idle = {name: one_by_one for name in _OF_ROUNDS if name not in method.can_use}
    elif not method.in_rounds:
        in_one_go = f"{method.name} learns in one go, without rounds"
        idle = {name: in_one_go for name in _OF_ROUNDS if name not in method.can_use}
    if epochs_setting(method) is None:
        idle["patience"] = f"{method.name} does not learn in epochs, so it cannot be stopped early"
    if not hasattr(method, "communication"):
        idle["count"] = f"{method.name} sends nothing that could be counted"
    return idle


def _hidden(param: click.Parameter) -> click.Parameter:
    unseen = copy(param)
    if isinstance(unseen, click.Option):
        unseen.hidden = True
    return unseen


def _given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _flag(name: str) -> str:
    return "--count and --no-count" if name == "count" else f"--{name.replace('_', '-')}"
