"""`federank audit plan`: the noise that a privacy guarantee takes at this size, and the accuracy to expect."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from textwrap import fill

import click
from rich.console import Console
from rich.table import Table

from federank.cli.options import JSON
from federank.cli.tables import plural
from federank.extras import need
from federank.methods.frugal.private_server import Forecast, affordable, forecast
from federank.privacy.accountant import epsilon_of_mu, mu_of_noise

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
    type=click.FloatRange(min=0, min_open=True, max=math.inf, max_open=True),
    metavar="X",
    help="The guarantee, against one dishonest server.  [default: the smallest that surely costs less than a tenth]",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="X",
    default=1e-6,
    show_default=True,
    help="The probability with which it may fail.",
)
@click.option("--messages", type=click.IntRange(min=2), default=5, show_default=True, help="Uploads per client.")
@click.option(
    "--seasons", type=click.IntRange(min=1), default=1, show_default=True, help="Seasons like this one, for the total."
)
@JSON
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
    epsilon = affordable(users, items, delta) if epsilon is None else epsilon
    if epsilon is None:
        none = {"people": users, "items": items, "epsilon": None, "affordable": None}
        click.echo(json.dumps(none, indent=2) if as_json else fill(_NONE, 79))
        return
    result = forecast(users, items, epsilon, delta, messages)
    total: dict[str, float] = {}
    if seasons > 1:  # uploads of one client add up over seasons, and so does mu squared
        mu = mu_of_noise(result.sigmas * seasons)
        total = {"seasons": seasons, "messages": seasons * messages, "mu": mu, "epsilon": epsilon_of_mu(mu, delta)}
    if as_json:
        click.echo(json.dumps(result._asdict() | ({"in_total": total} if total else {}), indent=2))
        return
    click.echo(
        f"{users:,} users, {items:,} items, epsilon {result.epsilon:.3g} at delta {delta:g} against one dishonest "
        "server:\n"
    )
    table = Table.grid(padding=(0, 2))
    for name, text in _rows(result, total):
        table.add_row(f"  {name}", text)
    Console().print(table)
    texts = [_NONE]
    if result.affordable is not None:
        texts = [f"The smallest epsilon at this size that {SURELY_LITTLE}: about {result.affordable:.2g}."]
    if messages != result.measured_messages:
        measured = f"Accuracy was measured with {result.measured_messages} uploads, not {messages}"
        texts.insert(0, f"{measured}; another number may keep another share.")
    for text in texts:
        click.echo(f"\n{fill(text, 79)}")


def _rows(result: Forecast, total: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """The plan, and the accuracy to expect on each kind of data, where it was measured."""
    yield "Uploads per client:", f"{result.messages}, each of length 1 ({result.bound:,} in integers)"
    sigmas = ", ".join(f"{sigma:.3g}" for sigma in result.sigmas)
    yield "Noise of each server:", f"sigma {result.sigma:.3g}: on each upload {sigmas}"
    if total:
        spent = f"{total['messages']} uploads and epsilon {total['epsilon']:.3g} per client in total"
        yield f"{total['seasons']} seasons:", spent
    yield "A round:", "stays open until all clients have reported; noise costs the same for fewer"
    yield "An upload:", f"{result.bytes_up / 1e6:,.2f} MB at most, {result.factors} factors"
    kinds = {
        "where tastes matter much (synthetic cities)": result.kept_cities,
        "where popularity explains much (MovieLens)": result.kept_films,
        "with many venues, few users (Italy)": result.kept_italy,
        "with many items, few users (Amazon)": result.kept_amazon,
    }
    name = "P@10 to expect:"
    if all(share is None for share in kinds.values()):
        worse = "it was worse than popularity with 1,353 and 1,835 users at epsilon 1"
        yield name, f"not measured under this much noise; {worse}"
        return
    yield name, "of what Frugal reaches without noise"
    for kind, share in kinds.items():
        yield "", f"{'not measured' if share is None else f'{share:.0%}':>12}  {kind}"


@click.command()
@click.argument("leader")
@click.option("--helper", required=True, metavar="URL", help="The helper's address, not from the leader.")
@click.option("--ca", type=click.Path(exists=True), metavar="FILE", help="Certificates by which the leader is known.")
@click.option(
    "--helper-ca", type=click.Path(exists=True), metavar="FILE", help="Certificates by which the helper is known."
)
@JSON
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
        lost = plural(sum(len(restore.lost) for restore in result.restores), "round")
        restored = f" Lost in {plural(len(result.restores), 'restore')}: {lost}." if result.restores else ""
        click.echo(
            f"{plural(result.versions, 'version')} of {plural(result.messages, 'upload')}, {result.recomputed:,} "
            f"recomputed from published sums. Discarded: {plural(result.abandoned, 'round')}.{restored}"
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
