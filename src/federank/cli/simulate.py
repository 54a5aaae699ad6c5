"""`federank client simulate`: many simulated clients against a server, as a rehearsal or a load test."""

from __future__ import annotations

import json
from typing import Any

import click

from federank.cli.client_policy import note, sharing_options
from federank.errors import SettingError


@click.command()
@click.option("--server", metavar="ADDRESS", required=True, help="Where the federation is.")
@click.option(
    "--data", "source", metavar="NAME_OR_FILE", default="city", show_default=True, help="The users' histories."
)
@click.option(
    "--method", type=click.Choice(["frugal", "fpl", "pmf", "svdpp"]), help="Only if the federation uses this method."
)
@click.option("--users", type=int, metavar="N", help="How many clients.  [default: all users of the data]")
@click.option("--rounds", type=int, metavar="N", help="End after N rounds of the server, or when all uploads are sent.")
@click.option("--seconds", type=float, metavar="X", help="End after X seconds.")
@click.option(
    "--vanish",
    type=float,
    metavar="SHARE",
    default=0.0,
    help="Share of clients that drop out in a round.  [default: 0]",
)
@click.option("--rate", type=float, metavar="X", help="At most X interactions per second.  [default: no limit]")
@click.option("--processes", type=int, metavar="N", default=1, show_default=True, help="Processes to share the work.")
@sharing_options
@click.option("--seed", type=int, metavar="N", default=1, show_default=True, help="Seed of the clients.")
@click.option(
    "--test", type=float, metavar="SHARE", default=0.0, help="Hold out each user's newest items, and test on them."
)
@click.option("--random-test", is_flag=True, help="Hold out at random instead, as the papers on ratings do.")
@click.option("--min-interactions", type=int, metavar="N", help="Keep users with at least N items.")
@click.option("--ca", metavar="FILE", help="The federation's own certificate, or its authority's.")
@click.option("--insecure", is_flag=True, help="Allow plain http to another machine.")
@click.option("--helper-ca", metavar="FILE", help="With secure aggregation: the helper's own certificate.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def simulate(
    server: str,
    source: str,
    method: str | None,
    users: int | None,
    rounds: int | None,
    seconds: float | None,
    vanish: float,
    rate: float | None,
    processes: int,
    seed: int,
    test: float,
    random_test: bool,
    min_interactions: int | None,
    ca: str | None,
    insecure: bool,
    helper_ca: str | None,
    as_json: bool,
    **specs: Any,
) -> None:
    """Run many simulated clients against a server, as a rehearsal or a load test.

    The clients draw as a simulation with the same seed does, so where all respond the federation learns what
    `federank train` learns. Clients of Frugal stop after their number of uploads. The server should run with
    `federank serve --rehearsal`; otherwise its limits apply, and one client is enrolled every 5 seconds after the
    first 20.

    \b
    Examples:
      federank client simulate --server http://127.0.0.1:8470 --data city
      federank client simulate --server http://127.0.0.1:8470 --data city --rounds 20
      federank client simulate --server http://127.0.0.1:8470 --users 500 --seconds 30 --vanish 0.3 --json
    """
    from federank.checks import check_int, check_positive, check_range
    from federank.data.loading import load
    from federank.data.splits import split_random, split_temporal
    from federank.service.client.federation import fetch_model
    from federank.service.client.http import Client, checked_address
    from federank.service.simulated_clients.processes import Rehearsal, accuracy, fetch_federation, rehearse
    from federank.service.simulated_clients.rehearsal import Plan

    for name, count in (("--users", users), ("--rounds", rounds), ("--processes", processes)):
        if count is not None:
            check_int(name, count, 1)
    for name, number in (("--seconds", seconds), ("--rate", rate)):
        if number is not None:
            check_positive(name, number)
    check_range("--vanish", vanish, 0, 1)
    address = checked_address(server, insecure)
    data = load(source)
    if min_interactions is not None:
        data = data.keep_users(min_interactions)
    split = (split_random if random_test else split_temporal)(data, test=test) if test else None
    rehearsal = Rehearsal(
        plan=Plan(address=address, seconds=seconds, vanish=vanish, rate=rate and rate / processes),
        data=data if split is None else split.train,
        rounds=rounds,
        users=users,
        seed=seed,
        specs={"pi": 1.0} | {name: value for name, value in specs.items() if value is not None},
        ca=ca,
        insecure=insecure,
        helper_ca=helper_ca,
        note=note,
    )
    with Client(address, ca=ca, insecure=insecure, note=note) as client:
        federation = fetch_federation(client)
        if method not in (None, federation.info.method):
            raise SettingError(
                f"The federation at {address} uses {federation.info.method}, not {method}; leave --method out, or "
                "name another --server."
            )
        if rounds is None and seconds is None and federation.info.method != "frugal":
            raise SettingError("When should the simulation end? Add --rounds N or --seconds X.")
        result = rehearse(rehearsal, processes)
        report = {"devices": len(result.users)} | result.tally.report()
        report["full_model_bytes"] = federation.info.most_model_bytes - 4096
        if split is not None:
            federation = fetch_federation(client)  # another season may have begun meanwhile
            model = fetch_model(client, federation.info)
            report["accuracy"] = accuracy(rehearsal, federation, model, result.vectors, split)
    click.echo(json.dumps(report) if as_json else _lines(report))


def _lines(report: dict[str, Any]) -> str:
    lines = [
        f"{report['interactions']:,} interactions of {report['devices']:,} clients in {report['rounds']:,} rounds and "
        f"{report['seconds']:,} seconds: {report['interactions_per_s']:,} per second",
    ]
    if report["interactions"]:
        lines.append(
            f"{report['bytes_per_interaction']:,} bytes per interaction ({report['bytes_up_per_interaction']:,} up); "
            f"the full model is {report['full_model_bytes']:,}"
        )
    for name in ("task", "upload", "interaction"):
        if f"{name}_ms" in report:
            times = ", ".join(f"{level} {value:,} ms" for level, value in report[f"{name}_ms"].items())
            lines.append(f"{name}: {times}")
    if report["not_counted"]:
        lines.append("not counted: " + ", ".join(f"{count:,} {name}" for name, count in report["not_counted"].items()))
    if "accuracy" in report:
        lines.append("accuracy: " + ", ".join(f"{name} {value:.4f}" for name, value in report["accuracy"].items()))
    return "\n".join(lines)
