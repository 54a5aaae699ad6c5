"""`federank device rate` and `federank device predict`: stars, where a federation is of ratings. Nothing is sent."""

from __future__ import annotations

import json
from pathlib import Path

import click

from federank.cli.device.choices import STATE, opened


@click.command()
@click.argument("item")
@click.argument("stars", metavar="STARS")
@STATE
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def rate(item: str, stars: str, state: Path | None, as_json: bool) -> None:
    """Rate an item by its id or title; `none` takes a rating back. A running device learns from it in its next round.

    The rating stays in the device's file. What an earlier one has let out stays in the ledger and cannot be taken back.

    \b
    Examples:
      federank device rate "Alien (1979)" 4.5
      federank device rate "Alien (1979)" none
    """
    from federank.cli.tables import plain
    from federank.service.device.owner.rating import rate as keep

    rated = keep(opened(state), item, stars)
    if as_json:
        click.echo(json.dumps(rated._asdict()))
        return
    before = "" if rated.before is None or rated.before == rated.rating else f"; it was {rated.before:g}"
    title = plain(rated.title)
    click.echo(
        f"{title}: the rating of {rated.before:g} is taken back."
        if rated.rating is None
        else f"{title}: {rated.rating:g}{before}."
    )


@click.command()
@click.argument("item")
@STATE
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def predict(item: str, state: Path | None, as_json: bool) -> None:
    """What you would give an item, by its id or title, from the model as last received; works offline.

    Of an item that nobody has told the federation anything of, it is the mean of your ratings, and that is said.

    \b
    Example:
      federank device predict "Aliens (1986)"
    """
    from federank.cli.tables import plain
    from federank.service.device.owner.rating import predict as predicted

    answer = predicted(opened(state), item)
    if as_json:
        click.echo(json.dumps(answer._asdict()))
        return
    click.echo(f"{answer.rating:.2f}")
    title = plain(answer.title)
    if answer.fallback:
        click.echo(f"Nobody has told this federation anything of {title} yet; this is your mean rating.", err=True)
    if answer.own is not None:
        click.echo(f"You have rated {title} yourself: {answer.own:g}.", err=True)
