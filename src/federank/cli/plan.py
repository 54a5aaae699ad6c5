"""`federank audit plan`: the noise that a privacy guarantee takes at this size, and the accuracy to expect."""

from __future__ import annotations

import json
import math
from textwrap import fill
from typing import TYPE_CHECKING

import click

from federank.errors import SettingError
from federank.extras import need

if TYPE_CHECKING:
    from federank.methods.frugal.private_server import Forecast


SURELY_LITTLE = "surely costs less than a tenth of the accuracy, by the more cautious of the measured curves"
"""When a guarantee is called affordable."""
_NONE = (
    f"No epsilon up to 16 {SURELY_LITTLE}, at this size. Sums without noise, and a share of each history that is held "
    "back, are left."
)


@click.command()
@click.option("--users", type=click.IntRange(min=2), required=True, help="How many users take part.")
@click.option("--items", type=click.IntRange(min=3), required=True, help="How many items there are.")
@click.option(
    "--epsilon",
    type=float,
    help="The guarantee, against one dishonest server.  [default: the smallest that surely costs less than a tenth]",
)
@click.option("--delta", type=float, default=1e-6, show_default=True, help="The probability with which it may fail.")
@click.option("--messages", type=click.IntRange(min=2), default=5, show_default=True, help="Uploads per client.")
@click.option(
    "--seasons", type=click.IntRange(min=1), default=1, show_default=True, help="Seasons like this one, for the total."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(
    users: int, items: int, epsilon: float | None, delta: float, messages: int, seasons: int, as_json: bool
) -> None:
    """What noise a guarantee takes in a federation of this size, and what it costs in accuracy.

    Accuracy is read off measured federations, as a share of what Frugal reaches there without noise. Noise is the same
    for any number of users, so it costs less the more there are, and more the more items there are.

    \b
    Examples:
      federank audit plan --users 50000 --items 3000
      federank audit plan --users 50000 --items 3000 --epsilon 2 --seasons 4
    """
    from federank.methods.frugal.private_server import affordable, forecast

    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise SettingError(f"epsilon is {epsilon:g}; a number above 0 is needed.")
    if not 0 < delta < 1:
        raise SettingError(f"delta is {delta:g}; a probability above 0 and below 1 is needed.")
    epsilon = affordable(users, items, delta) if epsilon is None else epsilon
    if epsilon is None:
        none = {"people": users, "items": items, "epsilon": None, "affordable": None}
        click.echo(json.dumps(none, indent=2) if as_json else fill(_NONE, 79))
        return
    result = forecast(users, items, epsilon, delta, messages)
    total = _in_total(result, seasons)
    if as_json:
        click.echo(json.dumps(result._asdict() | ({"in_total": total} if seasons > 1 else {}), indent=2))
    else:
        _report(result, total if seasons > 1 else None)


def _in_total(result: Forecast, seasons: int) -> dict[str, float]:
    """What several seasons like this one take of one client: uploads add up, and so does mu squared."""
    from federank.privacy.accountant import epsilon_of_mu, mu_of_noise

    mu = mu_of_noise(result.sigmas * seasons)
    return {
        "seasons": seasons,
        "messages": seasons * result.messages,
        "mu": mu,
        "epsilon": epsilon_of_mu(mu, result.delta),
    }


def _report(result: Forecast, total: dict[str, float] | None) -> None:
    click.echo(
        f"{result.people:,} users, {result.items:,} items, epsilon {result.epsilon:.3g} at delta {result.delta:g} "
        "against one dishonest server:\n"
    )
    rows = {
        "Uploads per client": f"{result.messages}, each of length 1 ({result.bound:,} in integers)",
        "Noise of each server": f"sigma {result.sigma:.3g}: on each upload {_several(result.sigmas)}",
        **({} if total is None else {f"{total['seasons']} seasons": _total_line(total)}),
        "A round": "stays open until all clients have reported; noise costs the same for fewer",
        "An upload": f"{result.bytes_up / 1e6:,.2f} MB at most, {result.factors} factors",
        "P@10 to expect": _expected(result),
    }
    for name, text in rows.items():
        click.echo(f"  {name + ':':<22}{text}")
    click.echo()
    if result.messages != result.measured_messages:
        text = (
            f"Accuracy was measured with {result.measured_messages} uploads, not {result.messages}; another number may "
            "keep another share."
        )
        click.echo(f"{fill(text, 79)}\n")
    if result.affordable is None:
        text = _NONE
    else:
        text = f"The smallest epsilon at this size that {SURELY_LITTLE}: about {result.affordable:.2g}."
    click.echo(fill(text, 79))


def _total_line(total: dict[str, float]) -> str:
    return f"{total['messages']} uploads and epsilon {total['epsilon']:.3g} per client in total"


def _expected(result: Forecast) -> str:
    """The accuracy to expect on each kind of data, where it was measured."""
    kinds = {
        "where tastes matter much (synthetic cities)": result.kept_cities,
        "where popularity explains much (MovieLens)": result.kept_films,
        "with many venues, few users (Italy)": result.kept_italy,
        "with many items, few users (Amazon)": result.kept_amazon,
    }
    if all(share is None for share in kinds.values()):
        return _lines(
            "not measured under this much noise; it was worse than",
            "popularity with 1,353 and 1,835 users at epsilon 1",
        )
    shares = ("not measured" if share is None else f"{share:.0%}" for share in kinds.values())
    text = (f"{share:>12}  {kind}" for kind, share in zip(kinds, shares, strict=True))
    return _lines("of what Frugal reaches without noise", *text)


def _lines(*lines: str) -> str:
    return f"\n{'':<24}".join(lines)


def _several(sigmas: tuple[float, ...]) -> str:
    return ", ".join(f"{sigma:.3g}" for sigma in sigmas)


# `federank audit verify`: every version under secure aggregation, checked against what both servers have published.


@click.command()
@click.argument("leader")
@click.option("--helper", required=True, metavar="URL", help="The helper's address, not from the leader.")
@click.option("--ca", type=click.Path(exists=True), metavar="FILE", help="Certificates by which the leader is known.")
@click.option(
    "--helper-ca", type=click.Path(exists=True), metavar="FILE", help="Certificates by which the helper is known."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def verify(leader: str, helper: str, ca: str | None, helper_ca: str | None, as_json: bool) -> None:
    """Recompute every version of a federation under secure aggregation from what its two servers have published.

    Both servers must list the same rounds. Signatures, round configs, sets and sums must fit together, and every
    aggregation must give the model that was published. Sums without noise are not published: there the chain of
    versions is checked, and no model is recomputed. Findings are listed, with exit code 2.

    \b
    Example:
      federank audit verify https://leader.example --helper https://helper.example
    """
    need("service", "federank audit verify")
    from federank.service.verification import Servers
    from federank.service.verification import verify as verify_servers

    def note(line: str) -> None:
        if not as_json:
            click.echo(line, err=True)

    result = verify_servers(Servers(leader, helper, ca, helper_ca), note)
    if as_json:
        restores = [restore._asdict() for restore in result.restores]
        click.echo(json.dumps(result._asdict() | {"restores": restores, "in_total": result.in_total._asdict()}))
    else:
        lost = sum(len(restore.lost) for restore in result.restores)
        restored = f" {len(result.restores):,} restores lost {lost:,} rounds." if result.restores else ""
        click.echo(
            f"{result.versions:,} versions of {result.messages:,} uploads, {result.recomputed:,} recomputed from "
            f"published sums; {result.abandoned:,} rounds were discarded.{restored}"
        )
        for season in result.seasons:
            epsilon = "no guarantee" if season["epsilon"] is None else f"epsilon {season['epsilon']:.3g}"
            click.echo(f"Season {season['season']}: {season['uploads']} uploads per client, {epsilon}.")
        if len(result.seasons) > 1:
            click.echo(result.in_total.line())
        for finding in result.findings:
            click.echo(f"FINDING  {finding}")
    if result.findings:
        raise SystemExit(2)
