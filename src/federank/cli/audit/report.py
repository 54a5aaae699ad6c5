"""How an audit is told to a person: who guesses how well, and what it means."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from federank.audit.findings import Findings

ROWS = {
    "popularity": "What is popular anyway",
    "sign": "One message, its signs",
    "vector_signs": "One message, vectors alone",
    "accumulation": "All messages, their signs",
    "frequency": "Sent more than once",
    "magnitude": "Size of the gradients",
    "absence": "Never sent as a negative",
    "vector_recovery": "One row gives the vector",
    "presence": "Named in one message",
    "intersection": "Named in every message",
    "second_rows": "Rows of the second kind",
    "membership": "Sums with and without",
    "sum_vector": "Sums give the vector",
    "reading": "A message, read backwards",
    "vector": "The vector in a message",
    "neighbours": "Those who send alike",
    "learned": "Learnt on own devices",
    "held_back": "Learnt, of what was kept",
    "fused": "All of these together",
}
"""What each attack is called in a table."""

_SERVERS = {
    "updates": "A curious server that keeps every message",
    "anonymous": "A curious server that sees one message at a time",
    "sums": "A curious server that sees only sums over rounds of {cohort:,} devices",
    "plain": "A curious server that keeps every message",
    "both": "Two servers that collude and so open every message",
    "leader": "A leader that sees sums over rounds of {cohort:,} devices",
    "helper": "A helper that sees sums over rounds of {cohort:,} devices",
    "outsider": "Somebody outside who sees every sum and every model, in rounds of {cohort:,} devices",
}
"""How a report begins."""

_INSTEAD = {
    ("sums", "updates"): "A round has one device here, and the sum over one device is its message:\nthe server sees"
    " every message. `--cohort K` makes rounds of K devices.\n",
    ("updates", "sums"): "Noise hides the signs of a message, so the messages of a device are averaged\nover rounds,"
    " as sums over one device.\n",
}
"""What was asked for, what was audited in its place, and why."""


def tell_audit(findings: list[Findings], about: dict[str, Any], asked: str) -> None:
    """Print the findings of the last epoch as a table, and of each epoch if there are several.

    `asked` is the threat model that was asked for; another may have been audited in its place.
    """
    from federank.cli.tables import new_table, plain, show

    found, seen = findings[-1], about["sees"]
    if (asked, seen) in _INSTEAD:
        click.echo(_INSTEAD[asked, seen])
        seen = "updates"
    heading = (
        f"{_SERVERS[seen].format(**about)} of {plain(about['data'])} ({about['users']:,} people, "
        f"{about['items']:,} items) {_after(found, about)}:"
    )
    click.echo(f"{fill(heading, 79)}\n")
    table = new_table("How it guesses", "Right>", "Found>", "Order>", "Kept back>", "Gain>")
    for name, marks in found.attacks.items():
        table.add_row(
            ROWS.get(name, name),
            _percent(marks["precision"]),
            _percent(marks["recall"]),
            *("-" if marks[mark] is None else f"{marks[mark]:.3f}" for mark in ("auc", "auc_held_back")),
            "-" if marks["gain"] is None else f"{marks['gain']:+.3f}",
        )
    show(table)
    click.echo(
        "  Right: of the items it names, those a person has (at random: "
        f"{found.base_rate:.1%}).\n"
        "  Found: of a person's items, those it names. Order: how often it ranks one of\n"
        "  a person's items above another item (0.5: chance, 1: always). Kept back: order\n"
        "  of those never sent as liked. Gain: order beyond popularity or chance.\n"
    )
    if len(findings) > 1:
        _tell_epochs(findings, about)
    _tell_more(found)
    best = found.attacks[_strongest(found)]
    told = (
        f"What it means: {found.disclosed_share:.1%} of a person's items {_left(about)} at least once. With everything "
        f"it saw, it names {_percent(best['recall'])} of a person's items, and {_percent(best['precision'])} of what "
        "it names is right."
    )
    click.echo(fill(told, 79))
    if about.get("family") == "squares":
        _tell_of_few_messages(about)
    _tell_sample(about)


def _tell_sample(about: dict[str, Any]) -> None:
    """How many people the figures are means over, and why not all."""
    attacked, users = about["people_attacked"], about["users"]
    own = about["attackers_own_devices"]
    learnt = f" {own:,} more are the server's own devices, to learn on, and are not judged." if own else ""
    if attacked + own >= users:
        told = f"Means over all {attacked:,} people that can be attacked, with 95 % intervals over people.{learnt}"
    else:
        told = (
            f"Means over {attacked:,} of {users:,} people, drawn with the seed, with 95 % intervals over people: notes "
            "and attacks take room and time for every person and item, and whoever takes no part cannot be attacked. "
            f"`--people N` says how many.{learnt}"
        )
    click.echo(fill(told, 79))


def _after(found: Findings, about: dict[str, Any]) -> str:
    """How long the server has watched."""
    if about.get("family") == "squares":
        most = min(found.epoch, about["messages"])
        return f"after at most {most} message{'s' * (most > 1)} of each device"
    return f"after {found.epoch} epoch{'s' * (found.epoch > 1)} of training"


def _left(about: dict[str, Any]) -> str:
    """How what has left a device has left it."""
    if about.get("family") == "squares" and about["sees"] in ("sums", "leader", "helper", "outsider"):
        return "went into a sum"
    return "were sent in two parts that both servers put together" if about["sees"] == "both" else "were sent openly"


def _tell_of_few_messages(about: dict[str, Any]) -> None:
    """What a table of few messages must not be taken for."""
    if "epsilon" in about:
        inferred = (
            f"Sums carry noise: epsilon {about['epsilon']:.3g} at delta {about['delta']:g} against this observer. "
            "Whoever knows all else tells a world with a person's messages from one with zeros in their place with an "
            f"order of at most {about['order_allowed']:.3f} (0.5: chance), whatever the attack."
        )
    elif about["sees"] in ("leader", "helper", "outsider"):
        inferred = (
            "The sums carry no noise here, so nothing bounds what they tell: sums hide a person among the members of "
            "their rounds, and no better than that (`train frugal --epsilon 4` adds noise)."
        )
    elif about["sees"] == "both":
        inferred = (
            "Two servers that put their parts together read every message, noise or not: nothing hides a person then."
        )
    elif about["sees"] == "sums":
        inferred = (
            "Sums hide a person among the members of their rounds, and no better than that: two rounds that differ by "
            "one member give that member's items, and a round of one gives everything. No noise is added here."
        )
    else:
        inferred = (
            "A plain message gives away everything that it was made from: one is enough. Few messages are few "
            "chances to read one, not secrecy. Only sums hide messages (`--sees sums`); only what is held back "
            "(`--sharing sticky --pi 0.3`) is in none, and taste still points at it."
        )
    click.echo(fill(inferred, 79))


def _tell_epochs(findings: list[Findings], about: dict[str, Any]) -> None:
    from federank.cli.tables import new_table, show

    sent = "Sent openly>" if _left(about).endswith("openly") else "Sent>"
    table = new_table("Epoch>", sent, "All together: right>", "Found>", "Order>", "Gain>")
    for found in findings:
        best = found.attacks[_strongest(found)]
        table.add_row(
            str(found.epoch),
            f"{found.disclosed_share:.1%}",
            _percent(best["precision"]),
            _percent(best["recall"]),
            f"{best['auc']:.3f}",
            f"{best['gain']:+.3f}",
        )
    show(table)


def _tell_more(found: Findings) -> None:
    """The headline, and what the guesses tell beyond items."""
    best = found.best
    for of, what in (("", ""), ("_held_back", " at what was kept back")):
        name = best[f"by_auc{of}"]
        if name is None or best[f"gain{of}"] is None:
            continue
        low, high = best[f"gain{of}_low"], best[f"gain{of}_high"]
        between = "" if low is None else f" (95 %: {low:+.3f} to {high:+.3f})"
        click.echo(
            f"The best guess{what}: {ROWS.get(name, name).lower()},\n"
            f"{best[f'auc{of}']:.3f}, {best[f'gain{of}']:+.3f} beyond popularity or chance{between}."
        )
    if found.categories is not None:
        plainly, inferred = found.categories["popularity"], found.categories["fused"]
        click.echo(
            f"Shares of categories: off by {inferred['error']:.3f} on average (popularity: {plainly['error']:.3f}),\n"
            f"correlation {inferred['correlation']:.2f} ({plainly['correlation']:.2f})."
        )
    if found.ratings:
        inferred, plainly = found.ratings["two_steps"], found.ratings["mean"]
        click.echo(
            f"Ratings from two messages: {_percent(inferred['exact'])} exact, off by {inferred['error']:.2f} "
            f"(the mean: {_percent(plainly['exact'])}, {plainly['error']:.2f})."
        )


def _strongest(found: Findings) -> str:
    """The attack that speaks for all: the fused one, or the best in order."""
    return "fused" if "fused" in found.attacks else str(found.best["by_auc"])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
