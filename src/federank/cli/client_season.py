"""`federank client season`: what each season has promised, what was sent in it, and consent to a new one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.cli.client_policy import STATE, note, opened, state_path

if TYPE_CHECKING:
    from federank.service.client.store import DeviceStore


@click.command()
@STATE
@click.option("--accept", is_flag=True, help="Go on in the federation's new season, though it is weaker.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def season(state: Path | None, accept: bool, as_json: bool) -> None:
    """The seasons of this client: uploads and epsilon sent and promised in each, in total, and the lifetime cap.

    \b
    Examples:
      federank client season
      federank client season --accept
    """
    from federank.cli.tables import new_table, show

    if accept:
        _accept(state_path(state))
    store = opened(state)
    rows, total, cap = budgets(store)
    if as_json:
        click.echo(json.dumps({"seasons": rows, "in_total": total, "cap": cap}))
        return
    table = new_table("Season>", "Uploads sent>", "Promised>", "Epsilon so far>", "Promised>", "Until")
    for row in (*rows, {"season": "in total", "until": ""} | total):
        shown = [_number(row[name]) for name in ("sent", "uploads", "epsilon", "epsilon_promised")]
        table.add_row(str(row["season"]), *shown, row["until"] or "-")
    show(table)
    click.echo(f"Lifetime cap: {_number(cap['uploads'])} uploads, epsilon {_number(cap['epsilon'])}.")


def _accept(path: Path) -> None:
    from federank.service.client.enrolment import client_of
    from federank.service.client.seasons import follow_season
    from federank.service.client.store import taking_part

    with taking_part(path) as store, client_of(store.identity(), note) as client:
        before = store.identity()
        if follow_season(store, client, before, note, accepts=True).info.season == before.info.season:
            note(f"There is no newer season than {before.info.season}.")


def budgets(store: DeviceStore) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """Uploads and epsilon by season and in total, and the client's lifetime cap."""
    from federank.federation.client import cost_of, spent_in_total
    from federank.service.client.seasons import Totals, lifetime_cap

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
    promised = None if None in mus else math.fsum(mu**2 for mu in mus if mu is not None)
    counts = [kept.uploads for kept in seasons]
    total = {
        "sent": len(ledger.messages),
        "uploads": None if None in counts else sum(count or 0 for count in counts),
        "epsilon": Totals(None, spent if is_summed and math.isfinite(spent) and promised else None).epsilon(delta),
        "epsilon_promised": Totals(None, promised).epsilon(delta),
    }
    cap = lifetime_cap(store.policy().policy, seasons[0], delta)
    return rows, total, {"uploads": cap.uploads, "epsilon": cap.epsilon(delta)}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else f"{value:,}"
