"""`federank admin season`: seasons of a running federation, each with its own config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.options import FILE

if TYPE_CHECKING:
    from federank.cli.admin import Operator


@click.group()
def season() -> None:
    """Seasons: periods with a catalogue, a number of uploads per client, a privacy budget and an end of their own.

    Within a season nothing of this can change. Under secure aggregation both servers sign the config of each season.

    \b
    Examples:
      federank admin season new --catalogue films-2027.csv --uploads 3 --epsilon 2 --until 2027-06-30
      federank admin season list
      federank admin season restart-from 1200
    """


_UPLOADS = click.option("--uploads", type=int, metavar="N", help="Uploads per client.  [default: as before]")
_EPSILON = click.option(
    "--epsilon", type=float, metavar="E", help="With a helper: epsilon of a client's uploads.  [default: as before]"
)
_UNTIL = click.option(
    "--until", metavar="DATE", help="The last day on which a round may begin, as 2027-06-30.  [default: as before]"
)


@season.command("new")
@click.option(
    "--catalogue",
    type=FILE,
    help="All items of the season: columns item_id, title and perhaps categories.  [default: as before]",
)
@_UPLOADS
@_EPSILON
@_UNTIL
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def new_season(operator: Operator, /, catalogue: Path | None, as_json: bool, **given: Any) -> None:
    """End the season and begin another from its last model; the open round is discarded.

    Items that CSV lacks end. New ones start from the mean factors of items with the same categories.
    """
    from federank.service.operator import items_of

    items = {} if catalogue is None else {"items": items_of(catalogue)}
    _begin(operator, as_json, {**items, **given})


@season.command("restart-from")
@click.argument("version", type=int)
@_UPLOADS
@_EPSILON
@_UNTIL
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def restart_from(operator: Operator, /, version: int, as_json: bool, **given: Any) -> None:
    """End the season and begin another from an earlier VERSION, with the same catalogue: a rollback.

    `federank admin versions` lists the versions that are kept.
    """
    _begin(operator, as_json, {"start_from": version, **given})


def _begin(operator: Operator, as_json: bool, spec: dict[str, Any]) -> None:
    with operator.client() as client:
        done = client.post("/seasons", {name: value for name, value in spec.items() if value is not None})
    if as_json:
        click.echo(json.dumps(done))
        return
    click.echo(
        f"Season {done['number']} has begun with version {done['version']:,}, which continues version "
        f"{done['starts_from']:,}. {_terms(done)}."
    )


@season.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def list_seasons(operator: Operator, as_json: bool) -> None:
    """Every season: when it began and ends, its versions, uploads per client, epsilon, and both in total."""
    from federank.cli.tables import new_table, show
    from federank.service.seasons import in_total

    with operator.client() as client:
        seasons = client.get("/seasons")["seasons"]
    totals = in_total(seasons)
    if as_json:
        click.echo(json.dumps({"seasons": seasons, "in_total": totals._asdict()}))
        return
    table = new_table("Season>", "Began", "Until", "Ended", "Versions from>", "Uploads>", "Epsilon>", "State")
    for one in seasons:
        epsilon = "-" if one["epsilon"] is None else f"{one['epsilon']:g}"
        uploads = "-" if one["uploads"] is None else str(one["uploads"])
        state = "pruned" if one["pruned"] else "closed" if one["ended"] else "current"
        dates = one["began"][:10], one["until"] or "-", one["ended"][:10] or "-"
        table.add_row(str(one["number"]), *dates, f"{one['first_version']:,}", uploads, epsilon, state)
    show(table)
    click.echo(totals.line())


@season.command("end")
@click.pass_obj
def end_season(operator: Operator) -> None:
    """End the season now: its open round is discarded, and no other begins. The model stays published."""
    with operator.client() as client:
        done = client.post("/seasons/end")
    click.echo(f"Season {done['number']} has ended. `federank admin season new` or `restart-from` begins another.")


@season.command("prune")
@click.argument("number", metavar="SEASON", type=int)
@click.pass_obj
def prune_season(operator: Operator, number: int) -> None:
    """Drop the sums and versions of a closed SEASON, at both servers.

    Its config, signatures, round configs, records and first version stay, so that `federank audit verify` still checks
    who signed what. It recomputes no version of a pruned season, and none can be restarted from.
    """
    with operator.client() as client:
        client.post("/seasons/prune", {"season": number})
    click.echo(f"Season {number} is pruned.")


def _terms(one: dict[str, Any]) -> str:
    uploads = "no quota of uploads" if one["uploads"] is None else f"{one['uploads']} uploads per client"
    epsilon = "" if one["epsilon"] is None else f", epsilon {one['epsilon']:g}"
    return f"{uploads}{epsilon}" + (f", until {one['until']}" if one["until"] else ", without an end date")
