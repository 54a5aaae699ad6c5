"""The report of `federank train`: how much data, how fast, what was sent, and the privacy guarantee."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from federank.data.interactions import Interactions
    from federank.methods.recommender import Recommender


_WAYS = {"up": "up", "down_changed": "down, changed rows only", "down_dense": "down, full model"}


def count_communication(model: Recommender, wanted: bool) -> None:
    """Put into the report what the run has sent, where the method sends anything."""
    if wanted and hasattr(model, "communication") and (sent := model.communication()):
        model.report["communication"] = sent


def warn_of_named_items(settings: Any) -> None:
    """Say on stderr where nothing hides which items were rated."""
    if not getattr(settings, "federated", False) or getattr(settings, "rho", None) != 0:
        return
    remedy = (
        "SVD++ does so with any rho"
        if settings.implicit
        else "--rho 1 hides them among as many virtual ratings of other items"
    )
    click.echo(f"rho is 0: each upload names exactly the items that its user has rated; {remedy}.", err=True)


def report(model: Recommender, out: Path, part: Interactions) -> None:
    """Print the report, and what to do next."""
    from federank.cli.tables import plain

    figures, learnt_from = model.report, model.learns_from
    click.echo(f"{type(model).__name__} learnt from {len(part):,} interactions of {plain(part.name)}.")
    if part.repeats_left_out:
        click.echo(f"{part.repeats_left_out:,} rows of the source repeat a user's item and were left out.")
    if learnt_from in figures:
        speed = figures[learnt_from] / max(figures["seconds"], 1e-9)
        rate = f"{speed / 1e6:.1f} million" if speed >= 1e5 else f"{speed:,.0f}"
        click.echo(
            f"{figures['rounds']:,} rounds with {figures[learnt_from]:,} {learnt_from} in {figures['seconds']:.2f} s "
            f"({rate} a second)."
        )
    if figures.get("skipped_users"):
        who = "1 user takes" if figures["skipped_users"] == 1 else f"{figures['skipped_users']:,} users take"
        click.echo(f"{who} no part: they share nothing, or have the full catalogue, so no pair can be drawn.")
    if "privacy" in figures:
        click.echo(_privacy(figures["privacy"]))
    if "adjacency" in figures:
        click.echo(fill(reported_guarantee(figures), 79))
    if "communication" in figures:
        _report_communication(figures["communication"])
    click.echo(f"\nKept in {out}. Next: federank recommend {out} --user {part.user_ids[part.users[0]]}")


def reported_guarantee(report: dict[str, Any]) -> str:
    """The differential privacy guarantee of a report in a sentence."""
    if report["epsilon"] is None:
        return "The sums carry no noise: there is no differential privacy guarantee."
    uploads = f"The {report['messages']} uploads of a client together" if "messages" in report else "A user's data"
    against = f", against {report['against']}" if "against" in report else ""
    return f"{uploads}: epsilon {report['epsilon']:.3g} at delta {report['delta']:g}{against}."


def _privacy(guarantee: dict[str, Any]) -> str:
    """The guarantee of clipping and noise, or why no figure is stated."""
    if guarantee["epsilon"] is None:
        return f"No differential-privacy figure can be stated: {guarantee['reason']}"
    against = f" against a server that sees {guarantee['against']}" if "against" in guarantee else ""
    text = f"Differential privacy{against}: epsilon {guarantee['epsilon']:.3g} at delta {guarantee['delta']:g}"
    if "rounds" in guarantee:
        text += f" for the user with the most rounds ({guarantee['rounds']:,})"
    return f"{text}, {guarantee['epsilon_median']:.3g} for the median." if "epsilon_median" in guarantee else f"{text}."


def _report_communication(sent: dict[str, Any]) -> None:
    from federank.cli.tables import new_table, show

    click.echo(f"\nWhat was sent, in {sent['downloads']:,} downloads and {sent['uploads']:,} uploads:\n")
    table = new_table("", "Rows>", "Rows a round>", "Megabytes>")
    for key, name in _WAYS.items():
        if key in sent:
            way = sent[key]
            table.add_row(name, f"{way['rows']:,}", f"{way['rows_per_round']:,.1f}", f"{way['bytes'] / 1e6:,.1f}")
    show(table)
    papers = sent.get("papers", {})
    if not papers:
        return
    if "cce" in papers:
        click.echo(
            f"The papers' measures: CCE {papers['cce']:,.0f} rows an epoch, freshness {papers['freshness']:,} "
            f"(normalised {papers['normalised_freshness']:.4g})."
        )
    else:
        click.echo(
            f"An iteration's traffic: {papers['counted_per_iteration'] / 1e6:,.1f} megabytes; by the paper's formula "
            f"(PMF, bare numbers) {papers['bytes_per_iteration'] / 1e6:,.1f}."
        )
