"""`federank admin`: what an operator does to a running federation."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from federank.cli.options import FILE, FOLDER, JSON
from federank.cli.tables import new_table, plain, show
from federank.errors import SettingError
from federank.methods.model_folder import refuse_place
from federank.service.operator import OperatorClient, exported_model, items_of
from federank.service.seasons import in_total
from federank.service.server.store.schema import move_store


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
@JSON
@click.pass_obj
def new_season(operator: Operator, /, catalogue: Path | None, as_json: bool, **given: Any) -> None:
    """End the season and begin another from its last model; the open round is discarded.

    Items that CSV lacks end. New ones start from the mean factors of items with the same categories.
    """
    items = {} if catalogue is None else {"items": items_of(catalogue)}
    _begin(operator, as_json, {**items, **given})


@season.command("restart-from")
@click.argument("version", type=int)
@_UPLOADS
@_EPSILON
@_UNTIL
@JSON
@click.pass_obj
def restart_from(operator: Operator, /, version: int, as_json: bool, **given: Any) -> None:
    """End the season and begin another from an earlier VERSION, with the same catalogue: a rollback.

    `federank admin versions` lists the versions that are kept.
    """
    _begin(operator, as_json, {"start_from": version, **given})


def _begin(operator: Operator, as_json: bool, spec: dict[str, Any]) -> None:
    epsilon = spec.get("epsilon")
    if epsilon is not None and not math.isfinite(epsilon):
        raise SettingError(f"epsilon is {epsilon}; a number above 0 is needed.")
    done = operator.post("/seasons", {name: value for name, value in spec.items() if value is not None})
    if as_json:
        click.echo(json.dumps(done))
        return
    click.echo(
        f"Season {done['number']} has begun with version {done['version']:,}, which continues version "
        f"{done['starts_from']:,}. {_terms(done)}."
    )


@season.command("list")
@JSON
@click.pass_obj
def list_seasons(operator: Operator, as_json: bool) -> None:
    """Every season: when it began and ends, its versions, uploads per client, epsilon, and both in total."""
    seasons = operator.get("/seasons")["seasons"]
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
    done = operator.post("/seasons/end")
    click.echo(f"Season {done['number']} has ended. `federank admin season new` or `restart-from` begins another.")


@season.command("prune")
@click.argument("number", metavar="SEASON", type=int)
@click.pass_obj
def prune_season(operator: Operator, number: int) -> None:
    """Drop the sums and versions of a closed SEASON, at both servers.

    Its config, signatures, round configs, records and first version stay, so that `federank audit verify` still checks
    who signed what. It recomputes no version of a pruned season, and none can be restarted from.
    """
    operator.post("/seasons/prune", {"season": number})
    click.echo(f"Season {number} is pruned.")


def _terms(one: dict[str, Any]) -> str:
    uploads = "no quota of uploads" if one["uploads"] is None else f"{one['uploads']} uploads per client"
    epsilon = "" if one["epsilon"] is None else f", epsilon {one['epsilon']:g}"
    return f"{uploads}{epsilon}" + (f", until {one['until']}" if one["until"] else ", without an end date")


TOKEN = "FEDERANK_ADMIN_TOKEN"


class Operator:
    """Where the federation is and who asks; a connection is made when a command needs one."""

    def __init__(self, **where: Any) -> None:
        self._where = where

    def client(self) -> Any:
        """A connection with the operator's token."""
        if not self._where["token"]:
            raise SettingError(f"The operator's token is needed: --token, or {TOKEN} in the environment.")
        where = self._where
        return OperatorClient(where["server"], where["token"], ca=where["ca"], insecure=where["insecure"])

    def get(self, path: str) -> Any:
        """What the server answers to a question."""
        with self.client() as client:
            return client.get(path)

    def post(self, path: str, content: dict[str, Any] | None = None) -> Any:
        """What the server answers to an action."""
        with self.client() as client:
            return client.post(path, content)


@click.group()
@click.option(
    "--server",
    metavar="ADDRESS",
    default="http://127.0.0.1:8471",
    show_default=True,
    help="The operator's address, as `federank serve` prints it.",
)
@click.option("--token", metavar="TOKEN", envvar=TOKEN, help=f"The operator's token.  [default: {TOKEN}]")
@click.option("--ca", metavar="FILE", help="The federation's own certificate, or its authority's.")
@click.option("--insecure", is_flag=True, help="Allow plain http to another machine.")
@click.pass_context
def admin(context: click.Context, /, **where: Any) -> None:
    """What an operator does to a running federation; every action is a line of its log.

    \b
    Examples:
      federank admin versions
      federank admin rollback 1200
      federank admin season new --catalogue films-2027.csv --uploads 3 --epsilon 2 --until 2027-06-30
      federank admin export runs/federation
    """
    context.obj = Operator(**where)


@admin.command()
@JSON
@click.pass_obj
def versions(operator: Operator, as_json: bool) -> None:
    """The versions that `rollback` can publish again."""
    answer = operator.get("/versions")
    if as_json:
        click.echo(json.dumps(answer))
        return
    table = new_table("Version>", "Round>", "Reports>", "Drift>")
    for entry in answer["versions"]:
        reports = "-" if entry["reports"] is None else f"{entry['reports']:,}"
        drift = "-" if entry["drift"] is None else f"{entry['drift']:.4f}"
        table.add_row(f"{entry['version']:,}", f"{entry['round']:,}", reports, drift)
    show(table)


@admin.command()
@click.argument("version", type=int)
@click.pass_obj
def rollback(operator: Operator, version: int) -> None:
    """Publish an earlier VERSION as a new one; the current round is discarded."""
    done = operator.post("/rollback", {"version": version})
    click.echo(f"Version {done['version']:,} is published, with the content of version {done['content_of']:,}.")


@admin.command()
@click.argument("client_name", metavar="CLIENT")
@click.pass_obj
def ban(operator: Operator, client_name: str) -> None:
    """Refuse the uploads of CLIENT (its name) from now on; one that is not aggregated yet is withdrawn."""
    done = operator.post("/ban", {"client": client_name})
    click.echo("The client was banned before." if done["was_banned"] else "The client is banned.")


@admin.command()
@click.argument("folder", type=FOLDER)
@click.option("--version", type=int, metavar="N", help="Which version.  [default: the newest]")
@click.pass_obj
def export(operator: Operator, folder: Path, version: int | None) -> None:
    """Write the model to DIR, for `federank recommend`, `evaluate` and `serve --start-from`."""
    refuse_place(folder)
    with operator.client() as client:
        model, number = exported_model(client, version)
    model.save(folder)
    click.echo(f"Version {number:,} is in {folder}: {len(model.item_ids):,} items, and no histories.")


@admin.command("invite")
@click.option("--count", type=click.IntRange(1, 10_000), default=1, show_default=True, help="How many.")
@click.pass_obj
def make_invitations(operator: Operator, count: int) -> None:
    """Make and show invitations, one per line; each lets one client enrol (`federank client --invitation`)."""
    done = operator.post("/invitations", {"count": count})
    for code in done["invitations"]:
        click.echo(code)
    if not done["needed"]:
        click.echo(
            "federank: clients enrol without them until you start `federank serve` with --invited-only.", err=True
        )


@admin.command("move-store")
@click.argument("target", metavar="POSTGRESQL")
@click.option("--store", default="sqlite:///federation.sqlite", show_default=True, help="The store to be moved.")
def move(target: str, store: str) -> None:
    """Move a federation from SQLite to POSTGRESQL, an empty database: postgresql://USER@HOST/NAME.

    Stop the server first. Every upload, version and quota is copied in one transaction and compared. The old file is
    kept under another name; delete it once the server runs on the new store.

    \b
    Example:
      federank admin move-store postgresql://federank@localhost/federank
    """
    moved, kept = move_store(store, target)
    table = new_table("Table", "Rows>", "Digest")
    for entry in moved:
        table.add_row(entry.table, f"{entry.rows:,}", entry.digest[:16])
    show(table)
    click.echo(f"All tables are the same in both stores. The old one is {kept}.")


@admin.command("rotate-token")
@click.pass_obj
def rotate_token(operator: Operator) -> None:
    """Make and show a new operator's token; the old one is revoked."""
    token = operator.post("/token")["token"]
    click.echo(f"admin token  {token}  (shown this once; the store keeps only its hash)")


@admin.command()
@JSON
@click.pass_obj
def log(operator: Operator, as_json: bool) -> None:
    """The log of what operators did, oldest first."""
    answer = operator.get("/log")
    if as_json:
        click.echo(json.dumps(answer))
        return
    table = new_table("Line>", "Time", "Action", "Of what")
    for entry in answer["actions"]:
        detail = {name: value for name, value in entry.items() if name not in ("number", "time", "action")}
        said = ", ".join(f"{name} {value}" for name, value in detail.items())
        table.add_row(str(entry["number"]), entry["time"], plain(entry["action"]), plain(said))
    show(table)
    if not answer["unbroken"]:
        click.echo("federank: the log was changed: a line is missing or is not as it was written.", err=True)
        raise SystemExit(1)


admin.add_command(season)
