"""`federank plan`: what a federation of this size can guarantee, and what accuracy to expect with it."""

from __future__ import annotations

import json
import math
from textwrap import fill
from typing import TYPE_CHECKING

import click

from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.methods.frugal.private_server import Forecast

SURELY_LITTLE = "surely costs less than a tenth of the accuracy, by the more cautious of the measured curves"
"""What makes a guarantee affordable, in the words of every command that chooses one."""
_NONE = (
    f"No epsilon up to 16 {SURELY_LITTLE}, at this size. Sums without noise, and a share of each history that is held "
    "back, are left."
)


@click.command()
@click.option("--people", type=click.IntRange(min=2), required=True, help="How many people take part.")
@click.option("--items", type=click.IntRange(min=3), required=True, help="How many items there are.")
@click.option(
    "--epsilon",
    type=float,
    help="The guarantee, against one dishonest server.  [default: the smallest that surely costs less than a tenth]",
)
@click.option("--delta", type=float, default=1e-6, show_default=True, help="The probability with which it may fail.")
@click.option(
    "--messages", type=click.IntRange(min=2), default=5, show_default=True, help="Of each person, in a lifetime."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(people: int, items: int, epsilon: float | None, delta: float, messages: int, as_json: bool) -> None:
    """What noise a guarantee takes in a federation of this size, and what it costs in accuracy.

    Accuracy is read off measured federations, as a share of what Frugal reaches there without noise. Noise is the same
    for any number of people, so it costs less the more there are, and more the more items there are.

    \b
    Examples:
      federank plan --people 50000 --items 3000
      federank plan --people 50000 --items 3000 --epsilon 2
    """
    from federank.methods.frugal.private_server import affordable, forecast

    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise SettingError(f"epsilon is {epsilon:g}; a number above 0 is needed.")
    if not 0 < delta < 1:
        raise SettingError(f"delta is {delta:g}; a probability above 0 and below 1 is needed.")
    epsilon = affordable(people, items, delta) if epsilon is None else epsilon
    if epsilon is None:
        told = {"people": people, "items": items, "epsilon": None, "affordable": None}
        click.echo(json.dumps(told, indent=2) if as_json else fill(_NONE, 79))
        return
    found = forecast(people, items, epsilon, delta, messages)
    if as_json:
        click.echo(json.dumps(found._asdict(), indent=2))
    else:
        _report(found)


def _report(found: Forecast) -> None:
    click.echo(
        f"{found.people:,} people, {found.items:,} items, epsilon {found.epsilon:.3g} at delta {found.delta:g} against "
        "one dishonest server:\n"
    )
    rows = {
        "Messages in a lifetime": f"{found.messages}, each of length 1 ({found.bound:,} in integers)",
        "Noise of each server": f"sigma {found.sigma:.3g}: on each message {_several(found.sigmas)}",
        "A round": "stays open until everyone has reported; noise costs the same for fewer",
        "A message": f"{found.bytes_up / 1e6:,.2f} MB at most, {found.factors} factors",
        "P@10 to expect": _expected(found),
    }
    for name, told in rows.items():
        click.echo(f"  {name + ':':<22}{told}")
    click.echo()
    if found.messages != found.measured_messages:
        told = (
            f"Accuracy was measured with {found.measured_messages} messages, not {found.messages}; another number may "
            "keep another share."
        )
        click.echo(f"{fill(told, 79)}\n")
    if found.affordable is None:
        told = _NONE
    else:
        told = f"The smallest epsilon at this size that {SURELY_LITTLE}: about {found.affordable:.2g}."
    click.echo(fill(told, 79))


def _expected(found: Forecast) -> str:
    """The accuracy to expect on each kind of data, where it was measured."""
    kinds = {
        "where tastes matter much (made-up cities)": found.kept_cities,
        "where popularity explains much (MovieLens)": found.kept_films,
        "with many venues, few people (Italy)": found.kept_italy,
        "with many items, few people (Amazon)": found.kept_amazon,
    }
    if all(kept is None for kept in kinds.values()):
        return _lines(
            "not measured where noise is so loud; it was worse than",
            "popularity with 1,353 and 1,835 people at epsilon 1",
        )
    shares = ("not measured" if kept is None else f"{kept:.0%}" for kept in kinds.values())
    told = (f"{share:>12}  {kind}" for kind, share in zip(kinds, shares, strict=True))
    return _lines("of what Frugal reaches without noise", *told)


def _lines(*lines: str) -> str:
    return f"\n{'':<24}".join(lines)


def _several(sigmas: tuple[float, ...]) -> str:
    return ", ".join(f"{sigma:.3g}" for sigma in sigmas)
