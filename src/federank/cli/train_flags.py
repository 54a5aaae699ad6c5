"""Flags of `federank train` without effect: hidden where a method has no use for them, and refused where given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import flag_of, is_given
from federank.errors import SettingError
from federank.methods.registry import epochs_setting

if TYPE_CHECKING:
    from federank.methods.recommender import Recommender

_OF_ROUNDS = ("engine", "cluster", "shards", "threads", "resume")
_OF_SPLITS = ("test", "validation", "split_seed")
_USED = {
    "temporal": ("test", "validation"),
    "global-temporal": ("test", "validation"),
    "leave-last-out": ("validation",),
    "random": _OF_SPLITS,
    "none": (),
}
"""Which of the flags about splits each way of splitting uses."""


def offered(method: type[Recommender], params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The common options; those that this method has no use for are hidden."""
    offered = [copy(param) for param in params]
    for param in offered:
        if isinstance(param, click.Option):
            param.hidden = param.name in _idle(method)
    return offered


def refuse_idle_flags(method: type[Recommender], way: str, folds: int | None) -> None:
    """Raise for the first flag of this command line that the method or the split has no use for."""
    for name, reason in _idle(method).items():
        # Folds are resumed by complete models, whatever the method.
        if is_given(name) and not (name == "resume" and folds is not None):
            raise SettingError(f"{reason}; leave out {flag_of(name)}.")
    used: tuple[str, ...]
    if folds is not None:
        used, reason = ("split_seed",), "--folds divides the data at random"
    elif way in _USED:
        used, reason = _USED[way], f"--split {way} {'trains on everything' if way == 'none' else 'does not use it'}"
    elif not Path(way).is_dir():
        return  # an unknown way of splitting is refused where it is used
    else:
        used, reason = (), f"--split names a folder of parts, {way}, which are used as they are"
    for name in _OF_SPLITS:
        if name not in used and is_given(name):
            raise SettingError(f"{reason}; leave out {flag_of(name)}.")


def refuse_settings_without_effect(settings: Any, given: Iterable[str]) -> None:
    """Raise for the first of the given settings that does nothing beside the others (`without_effect`)."""
    idle = settings.without_effect() if hasattr(settings, "without_effect") else {}
    for name in given:
        if name in idle:
            raise SettingError(f"{flag_of(name)} has no effect here: {idle[name]}. Leave it out.")


def _idle(method: type[Recommender]) -> dict[str, str]:
    """The flags that a method has no use for, each with the reason."""
    idle = {}
    if not method.in_rounds or method.can_use:
        how = "simulates one client after the other" if method.in_rounds else "trains in one go, without rounds"
        idle = {name: f"{method.name} {how}" for name in _OF_ROUNDS if name not in method.can_use}
    if epochs_setting(method) is None:
        idle["patience"] = f"{method.name} has no epochs, so it cannot be stopped early"
    if not hasattr(method, "communication"):
        idle["count"] = f"{method.name} sends nothing that could be counted"
    return idle
