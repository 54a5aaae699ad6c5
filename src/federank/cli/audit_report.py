"""The report of `federank audit`: what each attack infers, and what the figures mean."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from federank.audit.scoring import Findings

ROWS = {
    "popularity": "Popularity alone",
    "sign": "One upload, its signs",
    "vector_signs": "One upload, vectors alone",
    "accumulation": "All uploads, their signs",
    "frequency": "Sent more than once",
    "magnitude": "Size of the gradients",
    "absence": "Never sent as a negative",
    "vector_recovery": "One row gives the vector",
    "presence": "Named in one upload",
    "intersection": "Named in every upload",
    "second_rows": "Rows of the second kind",
    "membership": "Sums with and without",
    "sum_vector": "Sums give the vector",
    "reading": "One upload, inverted",
    "vector": "The vector in an upload",
    "neighbours": "Clients with similar uploads",
    "learned": "Trained on own clients",
    "held_back": "Trained, on held-back items",
    "fused": "All attacks combined",
}
"""The name of each attack in a table."""

_SERVERS = {
    "updates": "An honest-but-curious server that stores every upload",
    "anonymous": "An honest-but-curious server that sees single uploads",
    "sums": "An honest-but-curious server that sees only sums over rounds of {cohort:,} clients",
    "plain": "An honest-but-curious server that stores every upload",
    "both": "Two servers that collude and so open every upload",
    "leader": "A leader that sees sums over rounds of {cohort:,} clients",
    "helper": "A helper that sees sums over rounds of {cohort:,} clients",
    "outsider": "An outsider who sees every sum and every model, in rounds of {cohort:,} clients",
}
"""The first words of a report, by threat model."""

_INSTEAD = {
    ("sums", "updates"): "A round has one client here, and the sum over one client is its upload:\nthe server sees"
    " every upload. `--cohort K` makes rounds of K clients.\n",
    ("updates", "sums"): "Noise hides the signs of an upload, so the uploads of a client are averaged\nover rounds,"
    " as sums over one client.\n",
}
"""The requested threat model, the one that was audited instead, and why."""


def report_audit(findings: list[Findings], about: dict[str, Any], requested: str) -> None:
    """Print the findings of the last epoch as a table, and of each epoch if there are several.

    `requested` is the threat model of the command line; another may have been audited instead.
    """
    from federank.cli.tables import new_table, plain, show

    result, seen = findings[-1], about["sees"]
    if (requested, seen) in _INSTEAD:
        click.echo(_INSTEAD[requested, seen])
        seen = "updates"
    heading = (
        f"{_SERVERS[seen].format(**about)} of {plain(about['data'])} ({about['users']:,} users, "
        f"{about['items']:,} items) {_after(result, about)}:"
    )
    click.echo(f"{fill(heading, 79)}\n")
    table = new_table("Attack", "Precision>", "Recall>", "AUC>", "Held back>", "Gain>")
    for name, marks in result.attacks.items():
        table.add_row(
            ROWS.get(name, name),
            _percent(marks["precision"]),
            _percent(marks["recall"]),
            *("-" if marks[mark] is None else f"{marks[mark]:.3f}" for mark in ("auc", "auc_held_back")),
            "-" if marks["gain"] is None else f"{marks['gain']:+.3f}",
        )
    show(table)
    click.echo(
        f"  Precision: share of the named items that a user has (at random: {result.base_rate:.1%}).\n"
        "  Recall: share of a user's items that are named. AUC: how often an item of\n"
        "  the user is ranked above another item (0.5: chance). Held back: AUC of items\n"
        "  never sent as liked. Gain: AUC beyond popularity or chance.\n"
    )
    if len(findings) > 1:
        _report_epochs(findings, about)
    _report_more(result)
    best = result.attacks[_strongest(result)]
    meaning = (
        f"What it means: {result.disclosed_share:.1%} of a user's items {_left(about)} at least once. From everything "
        f"it saw, the observer names {_percent(best['recall'])} of a user's items, and {_percent(best['precision'])} "
        "of what it names is right."
    )
    click.echo(fill(meaning, 79))
    if about.get("family") == "squares":
        _report_limits(about)
    _report_sample(about)


def _report_sample(about: dict[str, Any]) -> None:
    """How many users the figures are means over, and why not all."""
    attacked, users = about["people_attacked"], about["users"]
    own = about["attackers_own_devices"]
    shadows = f" {own:,} more are the server's own clients, for training attacks, and are not judged." if own else ""
    if attacked + own >= users:
        sample = f"Means over all {attacked:,} users that can be attacked, with 95 % intervals over users.{shadows}"
    else:
        sample = (
            f"Means over {attacked:,} of {users:,} users, drawn with the seed, with 95 % intervals over users: attacks "
            "take memory and time for every user and item, and users who take no part cannot be attacked. "
            f"`--sample N` sets the number.{shadows}"
        )
    click.echo(fill(sample, 79))


def _after(result: Findings, about: dict[str, Any]) -> str:
    """How long the observer has watched."""
    if about.get("family") == "squares":
        most = min(result.epoch, about["messages"])
        return f"after at most {most} upload{'s' * (most > 1)} of each client"
    return f"after {result.epoch} epoch{'s' * (result.epoch > 1)} of training"


def _left(about: dict[str, Any]) -> str:
    """How items have left a client."""
    if about.get("family") == "squares" and about["sees"] in ("sums", "leader", "helper", "outsider"):
        return "went into a sum"
    return "were sent in two shares that both servers combine" if about["sees"] == "both" else "were sent openly"


def _report_limits(about: dict[str, Any]) -> None:
    """What the figures do not show."""
    if "epsilon" in about:
        inferred = (
            f"Sums carry noise: epsilon {about['epsilon']:.3g} at delta {about['delta']:g} against this observer. "
            "Someone who knows everything else distinguishes a user's uploads from zeros with an AUC of at most "
            f"{about['order_allowed']:.3f} (0.5: chance), whatever the attack."
        )
    elif about["sees"] in ("leader", "helper", "outsider"):
        inferred = (
            "The sums carry no noise here, so nothing bounds their leakage: sums hide a user among the clients of "
            "their rounds, and no better than that (`train frugal --epsilon 4` adds noise)."
        )
    elif about["sees"] == "both":
        inferred = "Two servers that combine their shares read every upload, noise or not: nothing hides a user then."
    elif about["sees"] == "sums":
        inferred = (
            "Sums hide a user among the clients of their rounds, and no better than that: two rounds that differ by "
            "one client give that client's items, and a round of one gives everything. No noise is added here."
        )
    else:
        inferred = (
            "A plain upload discloses everything that it was computed from: one is enough. Few uploads are few "
            "chances to read one, not secrecy. Only secure sums hide uploads (`--sees sums`); only held-back items "
            "(`--sharing fixed-subset --pi 0.3`) are in none, and taste still points at them."
        )
    click.echo(fill(inferred, 79))

    for name, figures in about.get("side_knowledge", {}).items():
        known = (
            f"Someone who knows {figures['known']} of a user's items and {_GUESSED[name]} names 10 more: "
            f"{_percent(figures['inside'])} are right for users in the federation, {_percent(figures['outside'])} for "
            f"the same users left out of it, {_percent(figures['popularity'])} by popularity "
            f"({figures['users']:,} users)."
        )
        click.echo(fill(known, 79))


_GUESSED = {
    "shares": "combines all sums into shares of users",
    "cosines": "combines all sums into cosines of items",
    "model": "has the published vectors",
    "weights": "has the published item-item weights",
}


def _report_epochs(findings: list[Findings], about: dict[str, Any]) -> None:
    from federank.cli.tables import new_table, show

    sent = "Sent openly>" if _left(about).endswith("openly") else "Sent>"
    table = new_table("Epoch>", sent, "Precision>", "Recall>", "AUC>", "Gain>")
    for result in findings:
        best = result.attacks[_strongest(result)]
        table.add_row(
            str(result.epoch),
            f"{result.disclosed_share:.1%}",
            _percent(best["precision"]),
            _percent(best["recall"]),
            f"{best['auc']:.3f}",
            f"{best['gain']:+.3f}",
        )
    show(table)


def _report_more(result: Findings) -> None:
    """The best attack, and what is inferred beyond items."""
    best = result.best
    for of, what in (("", ""), ("_held_back", " on held-back items")):
        name = best[f"by_auc{of}"]
        if name is None or best[f"gain{of}"] is None:
            continue
        low, high = best[f"gain{of}_low"], best[f"gain{of}_high"]
        between = "" if low is None else f" (95 %: {low:+.3f} to {high:+.3f})"
        click.echo(
            f"The best attack{what}: {ROWS.get(name, name).lower()},\n"
            f"{best[f'auc{of}']:.3f}, {best[f'gain{of}']:+.3f} beyond popularity or chance{between}."
        )
    if result.categories is not None:
        plainly, inferred = result.categories["popularity"], result.categories["fused"]
        click.echo(
            f"Shares of categories: off by {inferred['error']:.3f} on average (popularity: {plainly['error']:.3f}),\n"
            f"correlation {inferred['correlation']:.2f} ({plainly['correlation']:.2f})."
        )
    if result.ratings:
        inferred, plainly = result.ratings["two_steps"], result.ratings["mean"]
        click.echo(
            f"Ratings from two uploads: {_percent(inferred['exact'])} exact, off by {inferred['error']:.2f} "
            f"(the mean: {_percent(plainly['exact'])}, {plainly['error']:.2f})."
        )


def _strongest(result: Findings) -> str:
    """The strongest attack: the combined one, or the one with the best AUC."""
    return "fused" if "fused" in result.attacks else str(result.best["by_auc"])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
