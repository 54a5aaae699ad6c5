"""The policy of a client: its options, and the commands that change it, pause, resume and leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import platformdirs

from federank.cli.options import FILE, JSON, Command, more, options
from federank.cli.tables import plural
from federank.errors import SettingError
from federank.privacy.policy import Policy
from federank.service.client.enrolment import leave as leave_federation
from federank.service.client.federation import Catalogue, FederationInfo
from federank.service.client.owner import exported_policy, never_items
from federank.service.client.state import ChosenPolicy, policy_from_values, suggested_policy
from federank.service.client.store import ClientStore

sharing_options = options(
    click.option("--pi", type=float, metavar="X", help="How much of what you like may be sent: 0 nothing, 1 all."),
    click.option(
        "--sharing",
        type=click.Choice(["all", "fixed-subset", "randomized-response"]),
        help="Drawn again every time, once per lifetime, or once with decoys.  [default: fixed-subset]",
    ),
    more("--item-epsilon", type=float, metavar="X", help="Randomized response: smaller hides more."),
    more(
        "--basis",
        type=click.Choice(["history", "shared"]),
        help="Compute uploads from the full history, or only from what is shared.",
    ),
    more("--budget", type=int, metavar="N", help="At most N items per user are ever sent."),
    more(
        "--filling",
        type=click.Choice(["hybrid", "average", "none"]),
        help="Ratings: virtual ratings are the user's mean, later predictions (hybrid), the mean, or none.",
    ),
    more("--rho", type=float, metavar="X", help="Ratings: number of virtual ratings per real one."),
    more(
        "--sampling",
        type=click.Choice(["fixed", "fresh"]),
        help="Virtual ratings are of the same items in all rounds, or drawn again in every round, which hides little.",
    ),
)
"""The options of a policy that simulated clients have too."""
policy_options = options(
    sharing_options,
    click.option("--messages", type=int, metavar="N", help="At most N uploads in all seasons together."),
    click.option("--epsilon", type=float, metavar="E", help="With a helper: at most E in all seasons together."),
    more("--triples", type=int, metavar="N", help="FPL: pairs to train on in a round, up to a limit."),
    click.option("--never-items", metavar="ITEM", multiple=True, help="Never send this item as liked; repeatable."),
    click.option("--never-categories", metavar="NAME", multiple=True, help="Never send any item of this category."),
)
_RATINGS = ("filling", "rho", "sampling")
_VALUES = ("pi", "sharing", "item_epsilon", "basis", "budget", "messages", "epsilon", "triples", *_RATINGS)
POLICY = (*_VALUES, "never_items", "never_categories")
"""The names of a policy's options."""
connection_options = options(
    click.option("--ca", metavar="FILE", help="The federation's own certificate, or its authority's."),
    more("--insecure", is_flag=True, help="Allow plain http to another machine."),
    more("--helper-ca", metavar="FILE", help="With secure aggregation: the helper's own certificate."),
)
STATE = click.option("--state", type=FILE, help="The client's file.  [default: in your data folder]")


def state_path(state: Path | None) -> Path:
    """The client's file: the one that was named, or the one in the user's data folder."""
    return Path(platformdirs.user_data_dir("federank")) / "device.sqlite" if state is None else state


def note(text: str) -> None:
    """Progress, on stderr."""
    click.echo(text, err=True)


def opened(state: Path | None) -> ClientStore:
    """The client's file, open until the command ends."""
    store = ClientStore(state_path(state))
    click.get_current_context().call_on_close(store.close)
    return store


def chosen_policy(info: FederationInfo, catalogue: Catalogue, specs: dict[str, Any]) -> ChosenPolicy:
    """The owner's policy where one is named, and otherwise the federation's suggestion as it is."""
    if not any_spec(specs):
        return suggested_policy(info)
    _refuse_other_methods(info, specs)
    if info.scale is None and specs["pi"] is None:
        raise SettingError("A policy needs --pi: how much of what you like may be sent, from 0 to 1.")
    before = None if info.scale is None else suggested_policy(info).policy
    return ChosenPolicy(changed_policy(before, catalogue, specs), "owner")


def changed_policy(before: Policy | None, catalogue: Catalogue, specs: dict[str, Any]) -> Policy:
    """The policy with the given options; what was not given stays as it was."""
    given: dict[str, Any] = {name: specs[name] for name in _VALUES if specs[name] is not None}
    if given.get("filling") == "none":
        given = {"rho": 0.0} | given  # overrides the suggestion
    never = never_items(catalogue, list(specs["never_items"]), list(specs["never_categories"]))
    if before is None:
        return policy_from_values({"sharing": "fixed-subset"} | given | {"never_items": never})
    never |= before.never_items
    if given.get("sharing", before.sharing) == before.sharing:
        return replace(before, **given, never_items=never)
    # Another kind of sharing has its own epsilon, basis and budget.
    kept = {name: getattr(before, name) for name in ("pi", "paused", "messages", "epsilon", "triples")}
    return policy_from_values(kept | given | {"never_items": never})


def _refuse_other_methods(info: FederationInfo, specs: dict[str, Any]) -> None:
    """Refuse options that this federation ignores or would cut."""
    named = [f"--{name}" for name in _RATINGS if specs[name] is not None]
    if named and info.scale is None:
        raise SettingError(
            f"{', '.join(named)} is about virtual ratings, and this federation uses likes; leave it out."
        )
    if specs["triples"] is None:
        return
    most = getattr(info.settings, "most_own_triples", None)
    if most is None:
        raise SettingError("--triples belongs to FPL, and this federation uses another method; leave it out.")
    if not 1 <= specs["triples"] <= most:
        raise SettingError(f"--triples is {specs['triples']}; this federation allows integers from 1 to {most}.")


def any_spec(specs: dict[str, Any]) -> bool:
    """Whether any part of a policy was named."""
    return any(value is not None and value != () for value in specs.values())


def policy_line(policy: Policy) -> str:
    """A policy in words."""
    profile = " profile" if policy.basis == "shared" else ""
    parts = [f"{policy.sharing} sharing, pi {policy.pi:g}, computed from the {policy.basis}{profile}"]
    if policy.item_epsilon is not None:
        parts.append(f"item epsilon {policy.item_epsilon:g}")
    if policy.filling is not None:
        parts = [f"{policy.pi:.0%} of your ratings, for its lifetime", _virtual_line(policy)]
    if policy.budget is not None:
        parts.append(f"at most {plural(policy.budget, 'item')} ever")
    if policy.messages is not None:
        parts.append(f"at most {plural(policy.messages, 'upload')} ever")
    if policy.epsilon is not None:
        parts.append(f"at most epsilon {policy.epsilon:g} ever")
    if policy.triples is not None:
        parts.append(f"{plural(policy.triples, 'pair')} a round at most")
    if policy.never_items:
        how = "never, or only as decoys" if policy.sharing == "randomized-response" else "never"
        parts.append(f"{plural(len(policy.never_items), 'item')} {how}")
    return ", ".join(parts) + (", paused" if policy.paused else "")


def _virtual_line(policy: Policy) -> str:
    """Virtual ratings in words."""
    if policy.filling == "none" or not policy.rho:
        return "no virtual ratings among them"
    how = "your mean" if policy.filling == "average" else "your mean, later predictions"
    when = "the same items for its lifetime" if policy.sampling == "fixed" else "other items in every round"
    return f"{policy.rho:g} virtual rating{'s' * (policy.rho != 1)} with each of them ({how}; {when})"


@click.command(cls=Command)
@policy_options
@STATE
@JSON
def policy(state: Path | None, as_json: bool, **specs: Any) -> None:
    """Show the policy of this client; with options, change it. A running client follows from its next round.

    What was sent already stays in the ledger and cannot be taken back. Never-lists only grow.

    \b
    Examples:
      federank client policy
      federank client policy --sharing fixed-subset --pi 0.1
    """
    store = opened(state)
    now, chosen_by = store.policy()
    if any_spec(specs):
        _refuse_other_methods(store.identity().info, specs)
        now, chosen_by = changed_policy(now, store.catalogue(), specs), "owner"
        store.identity().info.rules.sharing_policy(now)  # what the federation's method cannot keep is refused
        store.write_policy(now)
    if as_json:
        click.echo(json.dumps(exported_policy(store)))
    else:
        click.echo(f"{policy_line(now)} ({'your choice' if chosen_by == 'owner' else 'as the federation suggested'})")


@click.command()
@STATE
def pause(state: Path | None) -> None:
    """Pause: a running client begins no other round, and retries no upload."""
    _set_paused(state, True)


@click.command()
@STATE
def resume(state: Path | None) -> None:
    """Take part again."""
    _set_paused(state, False)


def _set_paused(state: Path | None, paused: bool) -> None:
    store = opened(state)
    now, chosen_by = store.policy()
    store.write_policy(replace(now, paused=paused), chosen_by)
    click.echo(
        "Paused: nothing more is sent until `federank client resume`. An upload under way may still arrive."
        if paused
        else "Takes part again."
    )


@click.command()
@STATE
@click.option("--erase", is_flag=True, help="Also remove the client's file, with its history and ledger.")
def leave(state: Path | None, erase: bool) -> None:
    """Leave the federation: the server forgets the client's token. The model keeps what it has learnt.

    The file stays, for its ledger and for recommending, unless --erase is given.
    """
    path = state_path(state)
    leave_federation(path, note)
    if erase:
        path.unlink()
    click.echo(f"Left. {path} is {'removed' if erase else 'kept, for its ledger and for recommending'}.")
