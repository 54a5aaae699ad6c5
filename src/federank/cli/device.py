"""`federank device`: one person's device, which learns at home and sends only what its owner allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from federank.cli.device_choices import (
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
    state_path,
)
from federank.cli.device_views import export, ledger, recommend, status
from federank.errors import SettingError

# `federank device rate` and `federank device predict`: stars, where a federation is of ratings. Nothing is sent.


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
    from federank.service.client.owner import rate as keep

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

    Of an item that no one has told the federation anything of, it is the mean of your ratings, and that is said.

    \b
    Example:
      federank device predict "Aliens (1986)"
    """
    from federank.cli.tables import plain
    from federank.service.client.owner import predict as predicted

    answer = predicted(opened(state), item)
    if as_json:
        click.echo(json.dumps(answer._asdict()))
        return
    click.echo(f"{answer.rating:.2f}")
    title = plain(answer.title)
    if answer.fallback:
        click.echo(f"No one has told this federation anything of {title} yet; this is your mean rating.", err=True)
    if answer.own is not None:
        click.echo(f"You have rated {title} yourself: {answer.own:g}.", err=True)


@click.group(invoke_without_command=True)
@click.option("--server", metavar="ADDRESS", help="Where the federation is, such as https://example.org:8470.")
@click.option(
    "--profile", type=click.Path(path_type=Path), metavar="CSV", help="Your history: `item`, and `rating` or not."
)
@policy_options
@STATE
@click.option("--invitation", metavar="CODE", help="Where only the invited may enrol: what the operator gave you.")
@click.option("--evaluate", is_flag=True, help="Hold one item back, and tell deniably whether it would be found.")
@click.option("--rounds", type=int, metavar="N", help="Take part in N rounds.  [default: until Ctrl-C]")
@click.option("--ca", metavar="FILE", help="The federation's own certificate, or its authority's.")
@click.option("--insecure", is_flag=True, help="Allow plain http to another machine.")
@click.option("--helper-ca", metavar="FILE", help="Where two servers take part: the helper's own certificate.")
@click.pass_context
def device(context: click.Context, /, **given: Any) -> None:
    """Take part in a federation with your own history, which stays in one file on this machine.

    The first time, it enrols and needs --server and --profile; afterwards it goes on from its file. A policy that you
    do not name is the federation's suggestion, shown before it is taken.

    \b
    Examples:
      federank device --server https://example.org:8470 --profile me.csv --pi 0.3
      federank device ledger
      federank device recommend -n 5
    """
    if context.invoked_subcommand is None:
        _take_part(**given)
    elif any(value for value in given.values()):
        raise SettingError(f"Write options after the word: `federank device {context.invoked_subcommand} ...`.")


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
            raise SettingError("Whether a device evaluates is chosen when it enrols; this one goes on as it is.")
        if profile is not None:
            _renew_profile(path, profile)
    with taking_part(path) as store, client_of(store.identity(), note) as client:
        stored = take_part(store, client, rounds, note)
    click.echo(f"{stored} {'Update was' if stored == 1 else 'Updates were'} sent and stored.")


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
            f"There is no device at {path} yet: --server says where the federation is and --profile which file has "
            "your history."
        )

    # The device may be started from another folder next time.
    ca, helper_ca = (None if file is None else str(Path(file).absolute()) for file in (ca, helper_ca))
    with Client(server, ca=ca, insecure=insecure, note=note, invitation=invitation) as client:
        matched, chosen, facts = enrol(
            client,
            path,
            profile,
            lambda facts, catalogue: chosen_policy(facts, catalogue, specs),
            ca=ca,
            insecure=insecure,
            helper_ca=helper_ca,
            evaluates=evaluate,
        )
    note(f"Enrolled in {facts.name or 'a federation'} of {facts.n_items:,} items; the device's file is {path}.")
    _report_matched(matched)
    who = "you chose" if chosen.chosen_by == "owner" else "the federation suggests, as you named none"
    note(f"Policy ({who}): {policy_line(chosen.policy)}. `federank device policy` shows and changes it.")
    if facts.scale is not None:
        _report_ratings(len(matched.profile), facts)
    if facts.is_summed:
        _notify_helper(path)
    if evaluate and facts.scale is not None:
        note(
            "One of your ratings is held back, for its lifetime: the server is told at most five times, rounded at "
            "random and "
            "wrongly one time in four, how near the model predicts it. No one is told which it is."
        )
    elif evaluate:
        note(
            "One item of your history is held back, for its lifetime: the server is told at most five times, and "
            "wrongly one "
            "time in four, whether the model would have found it. No one is told which item it is."
        )
    allowed = facts.rules.messages(facts.settings, chosen.policy)
    if allowed is not None:
        note(f"At most {allowed} {'message leaves' if allowed == 1 else 'messages leave'} this device in its lifetime.")


def _report_ratings(rated: int, facts: Any) -> None:
    """What an owner should know of a federation of ratings before the first Update leaves."""
    if not facts.is_summed:
        named = (
            "It is SVD++: every Update has a second list, and that one names exactly what you rated."
            if facts.settings.implicit
            else "Virtual ratings hide which items you rated, not perfectly; without them two Updates tell the ratings."
        )
        note(f"The server can read each Update of this device. {named} docs/audits.md has the figures.")
    if rated == 1:
        note("One rating says little: predictions will be about that number for everything. Rate some more.")


def _notify_helper(path: Path) -> None:
    """Who the second server is, for its owner to compare with what the helper says, and what can still be learnt."""
    from federank.service.client.store import DeviceStore

    with DeviceStore(path) as store:
        identity = store.identity()
    pinned = identity.sums
    if pinned is None:
        return
    note(
        f"No single server can read an upload: the second one is {pinned.charter.helper_origin}, fingerprint "
        f"{pinned.helper}. Both together could."
    )
    if not pinned.charter.has_noise:
        joins = "invited clients only" if identity.facts.invited_only else "anyone, so an outsider could try this"
        note(
            "The sums carry no noise: whoever controls all other clients of a round learns your upload from the public "
            f"model. The leader could do so; it admits {joins}."
        )


def _refuse_second_enrolment(path: Path, server: str | None, specs: dict[str, Any]) -> None:
    from federank.service.client.store import DeviceStore

    with DeviceStore(path) as store:
        identity = store.identity()
    if server is not None and server.rstrip("/") != identity.server:
        raise SettingError(
            f"The device of {path} is enrolled at {identity.server}; for another server, name another --state."
        )
    if any_spec(specs):
        raise SettingError("This device has a policy already; change it with `federank device policy`.")


def _renew_profile(path: Path, profile: Path) -> None:
    """A history that has grown takes the place of the one that is kept; what has left stays in the ledger."""
    from federank.service.client.enrolment import refuse_empty
    from federank.service.client.owner import read_profile
    from federank.service.client.store import taking_part

    with taking_part(path) as store:
        facts = store.identity().facts
        matched = read_profile(profile, store.catalogue(), facts.scale)
        refuse_empty(profile, matched, facts)
        store.write_history(matched.history)
    _report_matched(matched)


def _report_matched(matched: Any) -> None:
    from federank.cli.tables import plain

    note(f"Matched {matched.named - len(matched.unknown)} of {matched.named} items of your history.")
    if matched.unknown:
        shown = ", ".join(str(plain(text[:60])) for text in matched.unknown[:10])
        more = f" and {len(matched.unknown) - 10} more" if len(matched.unknown) > 10 else ""
        note(f"Unknown here, kept out and sent nowhere: {shown}{more}.")


for _command in (rate, predict, ledger, recommend, status, policy, pause, resume, leave, export):
    device.add_command(_command)
