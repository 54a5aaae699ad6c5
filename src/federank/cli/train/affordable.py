"""`federank train frugal --preset affordable`: the promise that the size of a federation can have for little.

Noise is the same for any number of people. From some size on it costs less than a tenth of the accuracy, by the more
cautious of the measured curves (protocol/squares/private/forecast.py); below it, sums go without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import click

from federank.cli.plan import SURELY_LITTLE
from federank.data.interactions import Interactions
from federank.errors import SettingError

AFFORDABLE = "affordable"


def refuse_beside_affordable(settings: Mapping[str, Any], *, folds: int | None, search: bool) -> None:
    """Refuse what says the same in another way, or goes by another size."""
    given = [name for name in ("epsilon", "sigma") if settings.get(name) is not None]
    flag = f"--{given[0]}" if given else "--folds" if folds is not None else "--search" if search else None
    if flag:
        raise SettingError(f"--preset affordable chooses the promise by the size of the data; leave out {flag}, or it.")


def affordable_promise(part: Interactions, settings: Mapping[str, Any]) -> dict[str, float]:
    """The setting that the preset stands for with this data: an epsilon, or nothing; told on standard error."""
    from federank.protocol.squares.private.forecast import affordable

    people, items = part.n_users, part.n_items
    epsilon = affordable(people, items, settings.get("delta", 1e-6))
    size = f"{people:,} people and {items:,} items"
    if epsilon is None:
        click.echo(f"{size}: no epsilon up to 16 {SURELY_LITTLE}, so sums carry no noise.", err=True)
        return {}
    epsilon = math.ceil(100 * epsilon) / 100
    click.echo(f"{size}: epsilon {epsilon:g} {SURELY_LITTLE}.", err=True)
    return {"epsilon": epsilon}
