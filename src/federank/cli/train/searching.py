"""`federank train METHOD --search`: tune on a validation part first, say what was chosen, then learn with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from federank.data.ways import WAYS, Division, divide
from federank.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federank.data.interactions import Interactions
    from federank.data.splits import Split
    from federank.engines.conduct import Conduct
    from federank.evaluation.fitting import Stop
    from federank.evaluation.search import Found
    from federank.recommenders.recommender import Recommender

_AS_MUCH_AS_USUAL = 0.2


def tuned(
    method: type[Recommender], settings: dict[str, Any], development: Split, conduct: Conduct, *, quiet: bool
) -> Found:
    """What is best on the validation part; told on stderr, each model as it is judged unless `quiet`."""
    from federank.evaluation.search import search

    def tell(values: Mapping[str, Any], found: float) -> None:
        if not quiet:
            click.echo(f"  {found:.5f}  {_written(values)}", err=True)

    searched = type(method(**settings)).searched
    found = search(method, settings, development, searched, conduct=replace(conduct, progress=None), tried=tell)
    click.echo(
        f"Chosen on validation, of {found.tried} models: {_written(found.settings)}. {found.metric} there "
        f"{found.best:.5f}; {found.usual:.5f} without a search.",
        err=True,
    )
    return found


def stopped_early(
    method: type[Recommender], settings: dict[str, Any], development: Split, conduct: Conduct, *, patience: int
) -> tuple[Stop, Recommender]:
    """The epoch that is best on the validation part, told on stderr, and the method made to learn up to it."""
    from federank.evaluation.fitting import best_epoch
    from federank.recommenders.registry import epochs_setting

    stop = best_epoch(method, settings, development, patience=patience, conduct=conduct)
    name = str(epochs_setting(method))
    click.echo(
        f"Best on validation after {name} {stop.epoch} of {len(stop.curve)} played: {stop.metric} "
        f"{stop.validation:.5f}.",
        err=True,
    )
    return stop, method(**settings | {name: stop.epoch})


def development_part(
    split: Split | None, part: Interactions, way: str, test: float, seed: int, *, flag: str = "--search"
) -> Split:
    """Where to tune: the split's own validation part, or one made of the training part in the way the test was."""
    if split is not None and split.validation is not None:
        return split.development
    if way not in WAYS:
        raise SettingError(
            f"{flag} needs a part to tune on, and this data comes without one: with --split none nothing is held out, "
            "and a folder of parts is taken as it is. Choose another --split, or a folder with a validation part."
        )
    share = test if 0 < test < 1 else _AS_MUCH_AS_USUAL
    [development] = divide(part, Division(way=way, test=share, seed=seed))
    return development


def _written(values: Mapping[str, Any]) -> str:
    told = (f"{name} {'as by default' if value is None else f'{value:g}'}" for name, value in values.items())
    return ", ".join(told)
