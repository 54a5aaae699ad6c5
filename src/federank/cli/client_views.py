"""Views of a client's file: ledger, status, recommendations, export. None of them needs the network."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from federank.cli.client_policy import STATE, note, opened, policy_line, state_path
from federank.cli.options import AT_LEAST_1, FILE, JSON
from federank.cli.tables import new_table, plain, plural, show
from federank.federation.client import cost_of, epsilon_promised, epsilon_so_far, spent_in_total
from federank.files import PRIVATE, atomic_write
from federank.privacy.ledger import Ledger
from federank.secagg.config import SecaggConfig
from federank.service.client.client import messages_left
from federank.service.client.enrolment import client_of
from federank.service.client.outcomes import line_of
from federank.service.client.owner import exported, exported_ledger, ledger_as_text
from federank.service.client.owner import recommend as recommend_items
from federank.service.client.seasons import Totals, follow_season, lifetime_cap
from federank.service.client.state import ABANDONED, COUNTED, LATE, RELEASED, UNCHARGED, WAITING
from federank.service.client.store import ClientStore, taking_part


@click.command()
@STATE
@click.option("--out", type=FILE, help="Write all of it, as CSV or .json, to a file that only you can read.")
@JSON
def ledger(state: Path | None, out: Path | None, as_json: bool) -> None:
    """What this client has sent: by item, as liked or as a negative; and its uploads, where they are limited.

    \b
    Example:
      federank client ledger --out ledger.csv
    """
    store = opened(state)
    sent_items, history = store.ledger(), store.profile()
    if out is not None:
        atomic_write(out, ledger_as_text(store, out.suffix == ".json"), mode=PRIVATE)
        click.echo(f"{len(sent_items.entries):,} lines are in {out}.")
        return
    if as_json:
        content = {
            "rounds": store.rounds(),
            "disclosed": sent_items.disclosed(history),
            "entries": exported_ledger(store),
        }
        click.echo(json.dumps(content | ({"messages": sent_items.message_rows()} if sent_items.messages else {})))
        return
    catalogue, shows_ratings = store.catalogue(), store.identity().info.scale is not None
    entries, what = list(sent_items.entries.values()), "ratings" if shows_ratings else "items"
    share = f"Of your {len(history):,} {what} {sent_items.disclosed(history):.1%} were sent"
    real = {entry.item for entry in entries if (entry.real is True if shows_ratings else entry.times_liked)}
    others = f"{len(entries) - len(real):,} other items were"
    if store.identity().info.rules.counts_messages:
        covers = "; every upload covers the full catalogue" if shows_ratings else " as liked"
        click.echo(f"{messages_line(store)} {share}{covers}.")
    elif shows_ratings:
        hidden = f"{others} sampled and sent with virtual ratings. Only you can see which is which."
        click.echo(f"{plural(store.rounds(), 'round')}. {share}; {hidden}")
    else:
        click.echo(f"{plural(store.rounds(), 'round')}. {share} as liked; {others} sent as negatives.")
    if not shows_ratings:
        entries = [entry for entry in entries if entry.item in real]
    if not entries:
        return
    ends = ("Sent as",) if shows_ratings else ("Yours",)
    table = new_table("Item", "Title", *ends, "Times>", "First round>", "Last round>")
    for entry in sorted(entries, key=lambda entry: (entry.item not in real, -entry.times_liked, entry.item)):
        names = plain(catalogue.ids[entry.item]), plain(catalogue.titles[entry.item])
        kind = "rated" if entry.item in real else "sampled"
        kind = kind if shows_ratings else "yes" if entry.real else "a decoy"
        times = entry.times_liked + entry.times_compared * shows_ratings
        table.add_row(*names, kind, str(times), str(entry.first_round), str(entry.last_round))
    show(table)


def messages_line(store: ClientStore) -> str:
    """How many uploads were sent, and how many remain."""
    ledger = store.ledger()
    left = messages_left(store.identity(), store.policy().policy, ledger)
    sent = f"{plural(ledger.spent, 'upload')} {'is' if ledger.spent == 1 else 'are'} charged to this client"
    return f"{sent}, and {left} more are allowed." if left else f"{sent}, the maximum."


LEFT_OUT = {
    "norm-too-large": "its norm proof failed",
    "unopened": "the helper could not decrypt it",
    "copied": "another upload had its id",
    "malformed": "its format is not that of its round",
}
"""Why an upload is in no sum."""


def outcome_lines(store: ClientStore) -> list[str]:
    """The outcome of the uploads: how many are in the model, and a line for each that is not."""
    identity, uploads = store.identity(), store.uploads()
    words = [sent.outcome or WAITING for sent in uploads]
    if not words:
        return []
    counts = {
        "aggregated": words.count(COUNTED),
        "waiting for their round to end": words.count(WAITING),
        "discarded with their round": words.count(ABANDONED) + words.count(RELEASED),
        "too late, and not charged": words.count(LATE),
        "left out of their round": sum(word in LEFT_OUT for word in words),
    }
    counts["not taken, or not known"] = len(words) - sum(counts.values())
    lines = ["Uploads: " + ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) + "."]
    for sent, word in zip(uploads, words, strict=True):
        if word in LEFT_OUT:
            lines.append(f"Round {sent.round_number}: the upload is in no sum, and stays charged: {LEFT_OUT[word]}.")
        elif word in (ABANDONED, *UNCHARGED) and identity.info.rules.counts_messages:
            lines.append(f"Round {sent.round_number}: {line_of(word, identity)}")
    return lines


def guarantee_line(config: SecaggConfig, ledger: Ledger) -> str:
    """The privacy guarantee of the uploads so far, and of all of a client's lifetime."""
    most, now = epsilon_promised(config), epsilon_so_far(config, ledger)
    secure = "Secure aggregation: no single server can read an upload."
    if most is None or now is None:
        return f"{secure} There is no differential privacy guarantee, because not every sum has noise."
    return f"{secure} Differential privacy: epsilon {_bound(now)} so far, {_bound(most)} in total."


def _bound(epsilon: float) -> str:
    """Two digits, rounded up: a bound must still be one."""
    step = 10.0 ** (math.floor(math.log10(max(epsilon, 1e-9))) - 1)
    return f"{math.ceil(epsilon / step - 1e-9) * step:.2g}"


@click.command()
@STATE
@JSON
def status(state: Path | None, as_json: bool) -> None:
    """The federation of this client, its method and policy, what it has sent, and its model.

    \b
    Example:
      federank client status
    """
    store = opened(state)
    identity, chosen, ledger = store.identity(), store.policy(), store.ledger()
    info, version, rounds = identity.info, store.model_version(), store.rounds()
    counted = info.rules.counts_messages
    if as_json:
        content = {
            "server": identity.server,
            "federation": info.name,
            "method": info.method,
            "enrolled": bool(identity.token),
            "paused": chosen.policy.paused,
            "rounds": rounds,
            "model_version": None if version < 0 else version,
            "messages_sent": ledger.spent if counted else None,
            "messages_left": messages_left(identity, chosen.policy, ledger) if counted else None,
            "outcomes": [sent.outcome or "waiting" for sent in store.uploads()],
        }
        if identity.sums is not None:
            content |= {
                "epsilon": epsilon_so_far(identity.sums.config, ledger),
                "epsilon_promised": epsilon_promised(identity.sums.config),
                "delta": float(identity.sums.config.delta),
            }
        click.echo(json.dumps(content))
        return
    where = f"{plain(info.name or 'a federation')} ({info.method}) at {identity.server}"
    click.echo(f"Enrolled in {where}." if identity.token else f"Was enrolled in {where}, and has left.")
    click.echo(f"Policy: {policy_line(chosen.policy)}.")
    taken_part = f"This client has taken part in {plural(rounds, 'round')}."
    click.echo(messages_line(store) if counted else taken_part)
    if identity.sums is not None:
        click.echo(guarantee_line(identity.sums.config, ledger))
    for line in outcome_lines(store):
        click.echo(line)
    click.echo("It has no model yet." if version < 0 else f"It recommends from version {version:,} of the model.")


@click.command()
@STATE
@click.option("-n", "n", type=AT_LEAST_1, metavar="N", default=10, show_default=True, help="How many items.")
@JSON
def recommend(state: Path | None, n: int, as_json: bool) -> None:
    """The best items that you do not have, from the model as last received; works offline.

    \b
    Example:
      federank client recommend -n 5
    """
    store = opened(state)
    listed, is_rating = recommend_items(store, n), store.identity().info.scale is not None
    if as_json:
        click.echo(json.dumps([suggestion._asdict() for suggestion in listed]))
        return
    if is_rating and not listed:
        click.echo("No client has rated an item that you have not rated; there is nothing to recommend yet.")
        return
    table = new_table("Rank>", "Item", "Title", "You would give>" if is_rating else "Score>")
    for rank, (item, title, score) in enumerate(listed, start=1):
        table.add_row(str(rank), plain(item), plain(title), f"{score:.2f}" if is_rating else f"{score:.3f}")
    show(table)


@click.command()
@STATE
@click.option("--out", type=FILE, help="Write to a file that only you can read.")
def export(state: Path | None, out: Path | None) -> None:
    """The content of the client's file as JSON, without the token, which would let others act for you."""
    text = json.dumps(exported(opened(state)), indent=1)
    if out is None:
        click.echo(text)
    else:
        atomic_write(out, text, mode=PRIVATE)
        click.echo(f"Everything but the token is in {out}.")


@click.command()
@STATE
@click.option("--accept", is_flag=True, help="Go on in the federation's new season, though it is weaker.")
@JSON
def season(state: Path | None, accept: bool, as_json: bool) -> None:
    """The seasons of this client: uploads and epsilon sent and allowed in each, in total, and the lifetime cap.

    \b
    Examples:
      federank client season
      federank client season --accept
    """
    if accept:
        _accept(state_path(state))
    store = opened(state)
    rows, total, cap = budgets(store)
    if as_json:
        click.echo(json.dumps({"seasons": rows, "in_total": total, "cap": cap}))
        return
    table = new_table("Season>", "Uploads sent>", "Allowed>", "Epsilon so far>", "Guarantee>", "Until")
    for row in (*rows, {"season": "in total", "until": ""} | total):
        shown = [_number(row[name]) for name in ("sent", "uploads", "epsilon", "epsilon_promised")]
        table.add_row(str(row["season"]), *shown, row["until"] or "-")
    show(table)
    click.echo(f"Lifetime cap: {_number(cap['uploads'])} uploads, epsilon {_number(cap['epsilon'])}.")


def _accept(path: Path) -> None:
    with taking_part(path) as store, client_of(store.identity(), note) as client:
        before = store.identity()
        if follow_season(store, client, before, note, accepts=True).info.season == before.info.season:
            note(f"There is no newer season than {before.info.season}.")


def budgets(store: ClientStore) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """Uploads and epsilon by season and in total, and the client's lifetime cap."""
    identity, ledger, seasons = store.identity(), store.ledger(), store.seasons()
    is_summed = identity.sums is not None
    delta = float(identity.sums.config.delta) if identity.sums is not None else 1e-6
    rows = []
    for kept in seasons:
        sent = [message for message in ledger.messages if message.season == kept.number]
        has_noise = is_summed and kept.mu is not None
        cost = math.fsum(cost_of(message.noise) for message in sent) if has_noise else None
        guarantee = Totals(kept.uploads, None if kept.mu is None else kept.mu**2)
        rows.append(
            {
                "season": kept.season,
                "sent": len(sent),
                "uploads": kept.uploads,
                "epsilon": Totals(None, cost).epsilon(delta),
                "epsilon_promised": guarantee.epsilon(delta),
                "until": kept.until,
            }
        )
    spent, mus = spent_in_total(ledger), [kept.mu for kept in seasons]
    in_all = None if None in mus else math.fsum(mu**2 for mu in mus if mu is not None)
    counts = [kept.uploads for kept in seasons]
    total = {
        "sent": len(ledger.messages),
        "uploads": None if None in counts else sum(count or 0 for count in counts),
        "epsilon": Totals(None, spent if is_summed and math.isfinite(spent) and in_all else None).epsilon(delta),
        "epsilon_promised": Totals(None, in_all).epsilon(delta),
    }
    cap = lifetime_cap(store.policy().policy, seasons[0], delta)
    return rows, total, {"uploads": cap.uploads, "epsilon": cap.epsilon(delta)}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else f"{value:,}"
