"""`federank client`: one user's client, which trains locally and uploads only what its owner allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from federank.cli.client_policy import (
    POLICY,
    STATE,
    any_spec,
    chosen_policy,
    connection_options,
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
from federank.cli.options import ABOVE_0, AT_LEAST_1, FILE, JSON, SHARE, Command, CommandGroup, more
from federank.cli.tables import plain, plural
from federank.errors import SettingError
from federank.service.client.client import take_part
from federank.service.client.enrolment import client_of, enrol, refuse_empty
from federank.service.client.federation import fetch_model
from federank.service.client.http import Client, checked_address
from federank.service.client.owner import Matched, read_profile
from federank.service.client.owner import predict as predict_rating
from federank.service.client.owner import rate as store_rating
from federank.service.client.store import ClientStore, taking_part


@click.command(cls=Command)
@click.option("--server", metavar="ADDRESS", required=True, help="Where the federation is.")
@click.option(
    "--data", "source", metavar="NAME_OR_FILE", default="city", show_default=True, help="The users' histories."
)
@click.option(
    "--method", type=click.Choice(["frugal", "fpl", "pmf", "svdpp"]), help="Only if the federation uses this method."
)
@click.option("--users", type=AT_LEAST_1, metavar="N", help="How many clients.  [default: all users of the data]")
@click.option("--rounds", type=AT_LEAST_1, metavar="N", help="End after N rounds of the server, or when all is sent.")
@click.option("--seconds", type=ABOVE_0, metavar="X", help="End X seconds after all have enrolled.")
@click.option(
    "--vanish", type=SHARE, metavar="SHARE", default=0.0, help="Clients that drop out in a round.  [default: 0]"
)
@click.option("--rate", type=ABOVE_0, metavar="X", help="At most X interactions per second.  [default: no limit]")
@click.option("--processes", type=AT_LEAST_1, metavar="N", default=1, show_default=True, help="Processes.")
@sharing_options
@click.option("--seed", type=int, metavar="N", default=1, show_default=True, help="Seed of the clients.")
@click.option(
    "--test", type=float, metavar="SHARE", default=0.0, help="Hold out each user's newest items, and test on them."
)
@click.option("--random-test", is_flag=True, help="Hold out at random instead, as the papers on ratings do.")
@click.option("--min-interactions", type=int, metavar="N", help="Keep users with at least N items.")
@connection_options
@JSON
def simulate(server: str, processes: int, as_json: bool, **values: Any) -> None:
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
    # An owner's client needs none of this.
    from federank.data.loading import load
    from federank.data.splits import split_random, split_temporal
    from federank.service.simulated_clients.methods import Plan
    from federank.service.simulated_clients.processes import Rehearsal, accuracy, fetch_federation, rehearse

    where = {name: values.pop(name) for name in ("ca", "insecure", "helper_ca")}
    address = checked_address(server, where["insecure"])
    data = load(values.pop("source"))
    if (least := values.pop("min_interactions")) is not None:
        data = data.keep_users(least)
    divide, test = split_random if values.pop("random_test") else split_temporal, values.pop("test")
    split = divide(data, test=test) if test else None
    method, rounds, seconds, rate = (values.pop(name) for name in ("method", "rounds", "seconds", "rate"))
    rehearsal = Rehearsal(
        plan=Plan(address=address, seconds=seconds, vanish=values.pop("vanish"), rate=rate and rate / processes),
        data=data if split is None else split.train,
        rounds=rounds,
        users=values.pop("users"),
        seed=values.pop("seed"),
        specs={"pi": 1.0} | {name: value for name, value in values.items() if value is not None},
        note=note,
        **where,
    )
    with Client(address, ca=where["ca"], insecure=where["insecure"], note=note) as client:
        federation = fetch_federation(client)
        if method not in (None, federation.info.method):
            raise SettingError(
                f"The federation at {address} uses {federation.info.method}, not {method}; leave --method out, or "
                "name another --server."
            )
        if rounds is None and seconds is None and federation.info.method != "frugal":
            raise SettingError("When should the simulation end? Add --rounds N or --seconds X.")
        result = rehearse(rehearsal, processes)
        report = {"clients": len(result.users)} | result.tally.report()
        report["full_model_bytes"] = federation.info.rules.model_bytes - 4096
        if split is not None:
            federation = fetch_federation(client)  # another season may have begun meanwhile
            model = fetch_model(client, federation.info)
            report["accuracy"] = accuracy(rehearsal, federation, model, result.vectors, split)
    click.echo(json.dumps(report) if as_json else _lines(report))


def _lines(report: dict[str, Any]) -> str:
    lines = [
        f"{report['interactions']:,} interactions of {report['clients']:,} clients in {report['rounds']:,} rounds and "
        f"{report['seconds']:,} seconds: {report['interactions_per_s']:,} per second",
    ]
    if report["interactions"]:
        lines.append(
            f"{report['bytes_per_interaction']:,} bytes per interaction ({report['bytes_up_per_interaction']:,} up); "
            f"the full model is {report['full_model_bytes']:,}"
        )
    lines += [
        f"{name}: " + ", ".join(f"{level} {value:,} ms" for level, value in report[f"{name}_ms"].items())
        for name in ("task", "upload", "interaction")
        if f"{name}_ms" in report
    ]
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
@JSON
def rate(item: str, stars: str, state: Path | None, as_json: bool) -> None:
    """Rate an item by its id or title; `none` removes a rating. A running client uses it from its next round.

    The rating stays in the client's file. What was sent because of an earlier rating stays in the ledger.

    \b
    Examples:
      federank client rate "Alien (1979)" 4.5
      federank client rate "Alien (1979)" none
    """
    rated = store_rating(opened(state), item, stars)
    if as_json:
        click.echo(json.dumps(rated._asdict()))
    elif rated.rating is None:
        click.echo(f"{plain(rated.title)}: the rating of {rated.before:g} is removed.")
    else:
        before = "" if rated.before in (None, rated.rating) else f"; it was {rated.before:g}"
        click.echo(f"{plain(rated.title)}: {rated.rating:g}{before}.")


@click.command()
@click.argument("item")
@STATE
@JSON
def predict(item: str, state: Path | None, as_json: bool) -> None:
    """Predict your rating of an item, by its id or title, from the model as last received; works offline.

    For an item without any upload it is the mean of your ratings, and a note says so.

    \b
    Example:
      federank client predict "Aliens (1986)"
    """
    answer = predict_rating(opened(state), item)
    if as_json:
        click.echo(json.dumps(answer._asdict()))
        return
    click.echo(f"{answer.rating:.2f}")
    if answer.fallback:
        note(f"No client has rated {plain(answer.title)} yet; this is your mean rating.")
    if answer.own is not None:
        note(f"You have rated {plain(answer.title)} yourself: {answer.own:g}.")


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--server", metavar="ADDRESS", help="The federation's address, such as https://example.org:8470.")
@click.option("--profile", type=FILE, metavar="CSV", help="Your history, with a column `item`; and perhaps `rating`.")
@policy_options
@STATE
@more("--invitation", metavar="CODE", help="An invitation from the operator, where one is needed.")
@more(
    "--evaluate",
    is_flag=True,
    help="Hold one item back, and report with randomized response whether it is recommended.",
)
@click.option(
    "--rounds", type=click.IntRange(min=0), metavar="N", help="Take part in N rounds.  [default: until Ctrl-C]"
)
@connection_options
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
    elif any(given.values()):
        raise SettingError(f"Write options after the command: `federank client {context.invoked_subcommand} ...`.")


def _take_part(state: Path | None, rounds: int | None, **given: Any) -> None:
    path = state_path(state)
    if not path.exists():
        _enrol(path, **given)
    else:
        _go_on(path, **given)
    with taking_part(path) as store, client_of(store.identity(), note) as client:
        stored = take_part(store, client, rounds, note)
    click.echo(f"{stored} {'upload was' if stored == 1 else 'uploads were'} sent and stored.")


def _enrol(
    path: Path, server: str | None, profile: Path | None, invitation: str | None, evaluate: bool, **given: Any
) -> None:
    """Enrol with this history, and say what the owner should know before the first upload."""
    if server is None or profile is None:
        raise SettingError(
            f"There is no client at {path} yet: --server names the federation and --profile the file with your history."
        )
    insecure = given.pop("insecure")
    # The client may be started from another folder next time.
    ca, helper_ca = (str(Path(file).absolute()) if (file := given.pop(name)) else None for name in ("ca", "helper_ca"))
    with Client(server, ca=ca, insecure=insecure, note=note, invitation=invitation) as client:
        matched, chosen, info = enrol(
            client,
            path,
            profile,
            lambda info, catalogue: chosen_policy(info, catalogue, given),
            ca=ca,
            insecure=insecure,
            helper_ca=helper_ca,
            evaluates=evaluate,
        )
    note(f"Enrolled in {info.name or 'a federation'} of {info.n_items:,} items; the client's file is {path}.")
    _report_matched(matched)
    who = "your choice" if chosen.chosen_by == "owner" else "suggested by the federation"
    note(f"Policy ({who}): {policy_line(chosen.policy)}. `federank client policy` shows and changes it.")
    has_ratings = info.scale is not None
    if has_ratings and not info.is_summed:
        named = (
            "It is SVD++: every upload has a second list, which names exactly the items that you rated."
            if info.settings.implicit
            else "Virtual ratings hide which items you rated, not perfectly; without them two uploads disclose ratings."
        )
        note(f"The server can read each upload of this client. {named} docs/audits.md has the figures.")
    if has_ratings and len(matched.profile) == 1:
        note("With one rating every prediction is about that number. Rate some more.")
    if info.is_summed:
        _notify_helper(path)
    if evaluate:
        what = "rating" if has_ratings else "item"
        question = "how close the prediction is" if has_ratings else "whether it is recommended"
        note(
            f"One {what} of your history is held back, for the client's lifetime. The server receives at most five "
            f"reports of {question}, each wrong with probability 1/4. The {what} itself is never sent."
        )
    allowed = info.rules.messages(chosen.policy)
    if allowed is not None:
        note(f"At most {plural(allowed, 'upload')} of this client in a season.")


def _notify_helper(path: Path) -> None:
    """Who the second server is, for its owner to compare with what the helper says, and what can still be learnt."""
    with ClientStore(path) as store:
        identity = store.identity()
    pinned = identity.sums
    assert pinned is not None, "the federation has secure aggregation"
    note(
        f"No single server can read an upload: the second one is {pinned.config.helper_origin}, fingerprint "
        f"{pinned.helper}. Only both together could read an upload."
    )
    if not pinned.config.has_noise:
        joins = "invited clients only" if identity.info.invited_only else "anyone, so an outsider could try this"
        note(
            "The sums carry no noise: one who controls all other clients of a round learns your upload from the public "
            f"model. The leader could do so; it admits {joins}. One who knows some of your items learns others from "
            "rounds of few clients."
        )


def _go_on(path: Path, server: str | None, profile: Path | None, evaluate: bool, **given: Any) -> None:
    """Refuse what is chosen at enrolment; a newer history replaces the stored one. The ledger keeps what was sent."""
    with ClientStore(path) as store:
        enrolled_at = store.identity().server
    if server is not None and server.rstrip("/") != enrolled_at:
        raise SettingError(
            f"The client of {path} is enrolled at {enrolled_at}; for another server, name another --state."
        )
    if any_spec({name: given[name] for name in POLICY}):
        raise SettingError("This client has a policy; change it with `federank client policy`.")
    if evaluate:
        raise SettingError("--evaluate is chosen when a client enrols; this one is enrolled already.")
    if profile is None:
        return
    with taking_part(path) as store:
        info = store.identity().info
        matched = read_profile(profile, store.catalogue(), info.scale)
        refuse_empty(profile, matched, info)
        store.write_history(matched.history)
    _report_matched(matched)


def _report_matched(matched: Matched) -> None:
    note(f"Matched {matched.named - len(matched.unknown)} of {matched.named} items of your history.")
    if matched.unknown:
        listed = ", ".join(str(plain(text[:60])) for text in matched.unknown[:10])
        more = f" and {len(matched.unknown) - 10} more" if len(matched.unknown) > 10 else ""
        note(f"Unknown here, ignored and not sent: {listed}{more}.")


for _command in (rate, predict, ledger, recommend, status, season, policy, pause, resume, leave, export, simulate):
    client.add_command(_command)
