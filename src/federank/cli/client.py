"""`federank client`: one user's client, which trains locally and uploads only what its owner allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from federank.cli.client_policy import (
    STATE,
    any_spec,
    chosen_policy,
    leave,
    note,
    opened,
    pause,
    policy,
    policy_line,
    policy_options,
    resume,
    sharing_options,
    state_path,
)
from federank.cli.client_views import export, ledger, recommend, season, status
from federank.cli.options import FILE
from federank.errors import SettingError

# `federank client simulate`: many simulated clients against a server, as a rehearsal or a load test.


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
    from federank.service.simulated_clients.methods import Plan
    from federank.service.simulated_clients.processes import Rehearsal, accuracy, fetch_federation, rehearse

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


# `rate` and `predict`, for federations with ratings. Nothing is sent.


@click.command()
@click.argument("item")
@click.argument("stars", metavar="STARS")
@STATE
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def rate(item: str, stars: str, state: Path | None, as_json: bool) -> None:
    """Rate an item by its id or title; `none` removes a rating. A running client uses it from its next round.

    The rating stays in the client's file. What was sent because of an earlier rating stays in the ledger.

    \b
    Examples:
      federank client rate "Alien (1979)" 4.5
      federank client rate "Alien (1979)" none
    """
    from federank.cli.tables import plain
    from federank.service.client.owner import rate as store_rating

    rated = store_rating(opened(state), item, stars)
    if as_json:
        click.echo(json.dumps(rated._asdict()))
        return
    before = "" if rated.before is None or rated.before == rated.rating else f"; it was {rated.before:g}"
    title = plain(rated.title)
    click.echo(
        f"{title}: the rating of {rated.before:g} is removed."
        if rated.rating is None
        else f"{title}: {rated.rating:g}{before}."
    )


@click.command()
@click.argument("item")
@STATE
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def predict(item: str, state: Path | None, as_json: bool) -> None:
    """Predict your rating of an item, by its id or title, from the model as last received; works offline.

    For an item without any upload it is the mean of your ratings, and a note says so.

    \b
    Example:
      federank client predict "Aliens (1986)"
    """
    from federank.cli.tables import plain
    from federank.service.client.owner import predict as predict_rating

    answer = predict_rating(opened(state), item)
    if as_json:
        click.echo(json.dumps(answer._asdict()))
        return
    click.echo(f"{answer.rating:.2f}")
    title = plain(answer.title)
    if answer.fallback:
        click.echo(f"No client has rated {title} yet; this is your mean rating.", err=True)
    if answer.own is not None:
        click.echo(f"You have rated {title} yourself: {answer.own:g}.", err=True)


@click.group(invoke_without_command=True)
@click.option("--server", metavar="ADDRESS", help="The federation's address, such as https://example.org:8470.")
@click.option("--profile", type=FILE, metavar="CSV", help="Your history: a column `item`, and perhaps `rating`.")
@policy_options
@STATE
@click.option("--invitation", metavar="CODE", help="An invitation from the operator, where one is needed.")
@click.option(
    "--evaluate",
    is_flag=True,
    help="Hold one item back, and report with randomized response whether it is recommended.",
)
@click.option("--rounds", type=int, metavar="N", help="Take part in N rounds.  [default: until Ctrl-C]")
@click.option("--ca", metavar="FILE", help="The federation's own certificate, or its authority's.")
@click.option("--insecure", is_flag=True, help="Allow plain http to another machine.")
@click.option("--helper-ca", metavar="FILE", help="With secure aggregation: the helper's own certificate.")
@click.pass_context
def client(context: click.Context, /, **given: Any) -> None:
    """Take part in a federation with your own history, which stays in one file on this machine.

    The first time, it enrols and needs --server and --profile; afterwards it goes on from its file. A policy that you
    do not name is the federation's suggestion, shown before it is taken.

    \b
    Examples:
      federank client --server https://example.org:8470 --profile me.csv --pi 0.3
      federank client ledger
      federank client recommend -n 5
    """
    if context.invoked_subcommand is None:
        _take_part(**given)
    elif any(value for value in given.values()):
        raise SettingError(f"Write options after the command: `federank client {context.invoked_subcommand} ...`.")


def _take_part(
    server: str | None,
    profile: Path | None,
    state: Path | None,
    rounds: int | None,
    ca: str | None,
    insecure: bool,
    helper_ca: str | None,
    invitation: str | None = None,
    evaluate: bool = False,
    **specs: Any,
) -> None:
    from federank.checks import check_int
    from federank.service.client.client import take_part
    from federank.service.client.enrolment import client_of
    from federank.service.client.store import taking_part

    if rounds is not None:
        check_int("--rounds", rounds, 0)
    path = state_path(state)
    if not path.exists():
        _enrol(path, server, profile, ca, insecure, helper_ca, specs, invitation, evaluate)
    else:
        _refuse_second_enrolment(path, server, specs)
        if evaluate:
            raise SettingError("--evaluate is chosen when a client enrols; this one is enrolled already.")
        if profile is not None:
            _renew_profile(path, profile)
    with taking_part(path) as store, client_of(store.identity(), note) as client:
        stored = take_part(store, client, rounds, note)
    click.echo(f"{stored} {'upload was' if stored == 1 else 'uploads were'} sent and stored.")


def _enrol(
    path: Path,
    server: str | None,
    profile: Path | None,
    ca: str | None,
    insecure: bool,
    helper_ca: str | None,
    specs: dict[str, Any],
    invitation: str | None,
    evaluate: bool,
) -> None:
    from federank.service.client.enrolment import enrol
    from federank.service.client.http import Client

    if server is None or profile is None:
        raise SettingError(
            f"There is no client at {path} yet: --server names the federation and --profile the file with your history."
        )

    # The client may be started from another folder next time.
    ca, helper_ca = (None if file is None else str(Path(file).absolute()) for file in (ca, helper_ca))
    with Client(server, ca=ca, insecure=insecure, note=note, invitation=invitation) as client:
        matched, chosen, info = enrol(
            client,
            path,
            profile,
            lambda info, catalogue: chosen_policy(info, catalogue, specs),
            ca=ca,
            insecure=insecure,
            helper_ca=helper_ca,
            evaluates=evaluate,
        )
    note(f"Enrolled in {info.name or 'a federation'} of {info.n_items:,} items; the client's file is {path}.")
    _report_matched(matched)
    who = "your choice" if chosen.chosen_by == "owner" else "suggested by the federation"
    note(f"Policy ({who}): {policy_line(chosen.policy)}. `federank client policy` shows and changes it.")
    if info.scale is not None:
        _report_ratings(len(matched.profile), info)
    if info.is_summed:
        _notify_helper(path)
    if evaluate:
        what = "rating" if info.scale is not None else "item"
        question = "how close the prediction is" if info.scale is not None else "whether it is recommended"
        note(
            f"One {what} of your history is held back, for the client's lifetime. The server receives at most five "
            f"reports of {question}, each wrong with probability 1/4. The {what} itself is never sent."
        )
    allowed = info.rules.messages(info.settings, chosen.policy)
    if allowed is not None:
        note(f"At most {allowed} {'upload' if allowed == 1 else 'uploads'} of this client in a season.")


def _report_ratings(rated: int, info: Any) -> None:
    """What an owner should know of a federation with ratings before the first upload."""
    if not info.is_summed:
        named = (
            "It is SVD++: every upload has a second list, which names exactly the items that you rated."
            if info.settings.implicit
            else "Virtual ratings hide which items you rated, not perfectly; without them two uploads disclose ratings."
        )
        note(f"The server can read each upload of this client. {named} docs/audits.md has the figures.")
    if rated == 1:
        note("With one rating every prediction is about that number. Rate some more.")


def _notify_helper(path: Path) -> None:
    """Who the second server is, for its owner to compare with what the helper says, and what can still be learnt."""
    from federank.service.client.store import DeviceStore

    with DeviceStore(path) as store:
        identity = store.identity()
    pinned = identity.sums
    if pinned is None:
        return
    note(
        f"No single server can read an upload: the second one is {pinned.config.helper_origin}, fingerprint "
        f"{pinned.helper}. Only both together could read an upload."
    )
    if not pinned.config.has_noise:
        joins = "invited clients only" if identity.info.invited_only else "anyone, so an outsider could try this"
        note(
            "The sums carry no noise: one who controls all other clients of a round learns your upload from the public "
            f"model. The leader could do so; it admits {joins}."
        )


def _refuse_second_enrolment(path: Path, server: str | None, specs: dict[str, Any]) -> None:
    from federank.service.client.store import DeviceStore

    with DeviceStore(path) as store:
        identity = store.identity()
    if server is not None and server.rstrip("/") != identity.server:
        raise SettingError(
            f"The client of {path} is enrolled at {identity.server}; for another server, name another --state."
        )
    if any_spec(specs):
        raise SettingError("This client has a policy; change it with `federank client policy`.")


def _renew_profile(path: Path, profile: Path) -> None:
    """Replace the stored history by a newer one; what was sent stays in the ledger."""
    from federank.service.client.enrolment import refuse_empty
    from federank.service.client.owner import read_profile
    from federank.service.client.store import taking_part

    with taking_part(path) as store:
        info = store.identity().info
        matched = read_profile(profile, store.catalogue(), info.scale)
        refuse_empty(profile, matched, info)
        store.write_history(matched.history)
    _report_matched(matched)


def _report_matched(matched: Any) -> None:
    from federank.cli.tables import plain

    note(f"Matched {matched.named - len(matched.unknown)} of {matched.named} items of your history.")
    if matched.unknown:
        listed = ", ".join(str(plain(text[:60])) for text in matched.unknown[:10])
        more = f" and {len(matched.unknown) - 10} more" if len(matched.unknown) > 10 else ""
        note(f"Unknown here, ignored and not sent: {listed}{more}.")


for _command in (rate, predict, ledger, recommend, status, season, policy, pause, resume, leave, export, simulate):
    client.add_command(_command)
