"""`federank verify`: every version of a federation of sums, recomputed from what its two servers have published."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("leader")
@click.option("--helper", required=True, metavar="URL", help="The helper's address, from someone else than the leader.")
@click.option("--ca", type=click.Path(exists=True), metavar="FILE", help="Certificates by which the leader is known.")
@click.option(
    "--helper-ca", type=click.Path(exists=True), metavar="FILE", help="Certificates by which the helper is known."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def verify(leader: str, helper: str, ca: str | None, helper_ca: str | None, as_json: bool) -> None:
    """Recompute every version of a federation whose messages no single server can read.

    Signatures, offers, sets and sums of both servers must fit together, and every fold must give the model that was
    published. What does not fit is told in a sentence, with exit code 2.

    \b
    Example:
      federank verify https://leader.example --helper https://helper.example
    """
    from federank.service.verification import Servers
    from federank.service.verification import verify as verify_servers

    def note(line: str) -> None:
        if not as_json:
            click.echo(line, err=True)

    found = verify_servers(Servers(leader, helper, ca, helper_ca), note)
    if as_json:
        click.echo(json.dumps(found._asdict()))
    else:
        click.echo(
            f"{found.versions:,} versions from {found.messages:,} messages follow from the published sums; "
            f"{found.abandoned:,} rounds were abandoned."
        )
