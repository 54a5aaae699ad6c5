"""What other packages add: methods, metrics, attacks, policies and readers, by registration or by entry points.

    fr.register(Mine)                    a method, federated or not, for this process
    fr.register_metric(my_metric)        a metric
    fr.register_attack(my_attack)        an attack of the audit
    fr.register_policy(my_policy)        a way of sharing
    fr.register_reader(my_reader, "xyz") a reader of files whose names end in .xyz

    [project.entry-points."federank.methods"]
    mine = "my_package.mine:Mine"
    [project.entry-points."federank.metrics"]
    my_metric = "my_package.metrics:my_metric"

The last four lines, and the same with `attacks`, `policies` and `readers`, are for the pyproject.toml of a package of
your own: wherever it is installed beside this one, the library, the command line, `load_model` and studies find what it
brings. Entry points are looked up when a name is asked for that is not one of ours, and loaded when it is used.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args

from federank.errors import SettingError

Kind = Literal["methods", "metrics", "attacks", "policies", "readers"]
_registered: dict[Kind, dict[str, Any]] = {kind: {} for kind in get_args(Kind)}


def add(kind: Kind, name: str, what: Any) -> None:
    """Register something for this process; the same name again replaces it."""
    if not isinstance(name, str) or not name.replace("-", "_").isidentifier():
        raise SettingError(f"{name!r} cannot be the name of one of the {kind}; letters, digits and - are needed.")
    _registered[kind][name] = what


def names(kind: Kind) -> list[str]:
    """The names that others have added; nothing is imported for it."""
    return list(dict.fromkeys((*_registered[kind], *_points(kind))))


def find(kind: Kind, name: str) -> Any:
    """What was added under this name; None where nothing was."""
    if name in _registered[kind]:
        return _registered[kind][name]
    point = _points(kind).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as reason:  # whatever a package of someone else's does on import
        raise SettingError(
            f"{name!r} of the {kind} comes from {_package(point)}, and its {point.value} cannot be loaded: "
            f"{type(reason).__name__}: {reason}."
        ) from reason


def found(kind: Kind) -> dict[str, Any]:
    """Everything that others have added, loaded."""
    return {name: find(kind, name) for name in names(kind)}


@cache
def _points(kind: Kind) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"federank.{kind}")}


def _package(point: EntryPoint) -> str:
    return "another package" if point.dist is None else f"the package {point.dist.name}"
