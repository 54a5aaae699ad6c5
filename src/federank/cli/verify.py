"""`federank audit verify`: every version under secure aggregation, checked against what both servers have published."""

from __future__ import annotations

import json

import click

from federank.extras import need


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
