"""`federank audit poison`: malicious clients that push items, or degrade all lists."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from federank.audit.audit import rehearse_poisoning
from federank.audit.poisoning import PoisonSettings, SybilSettings, figures, rehearse_sybils
from federank.cli.options import JSON, Command, Reading, given_settings, reads_data_option, settings_options
from federank.cli.tables import new_table, show
from federank.data.splits import split_random


@click.command(cls=Command, params=[*settings_options(PoisonSettings)])
@JSON
@reads_data_option
def poison(reading: Reading, as_json: bool, **values: Any) -> None:
    """Malicious clients that push an unpopular item into all lists, or degrade all lists.

    The federation is simulated without an attack, attacked without defences, and attacked with the defences that
    `federank serve` has by default. Exposure is the share of honest users who have the item in their top 10.

    \b
    Examples:
      federank audit poison --data city --share 0.05 --aim push
      federank audit poison --data city --method frugal --attack loud --sees sums --json
    """
    settings = PoisonSettings(**given_settings(PoisonSettings, values))
    split = split_random(reading.interactions(), 0.2, seed=settings.seed)
    result = rehearse_poisoning(split, settings)
    if as_json:
        click.echo(json.dumps(asdict(settings) | result.figures(), indent=2))
        return

    click.echo(
        f"{result.malicious_users:,} of {split.train.n_users + result.malicious_users:,} clients are malicious; their "
        f"target is {result.target}.\n"
    )
    table = new_table("", "Exposure>", "Median rank>", "P@10>")
    rows = {
        "No attack": result.honest,
        "No attack, defended": result.honest_defended,
        "Attacked": result.undefended,
        "Attacked, defended": result.defended,
    }
    for name, (exposure, rank, precision) in rows.items():
        table.add_row(name, f"{exposure:.3f}", f"{rank:,.0f}", f"{precision:.4f}")
    show(table)


@click.command(cls=Command, params=[*settings_options(SybilSettings)])
@JSON
@reads_data_option
def sybil(reading: Reading, as_json: bool, **values: Any) -> None:
    """Clients of one attacker fill a round of secure aggregation, to read the upload of an honest client.

    Results are for 1, 5, 20 and 50 honest clients in the round, for a leader and for an outsider, with noise and
    without. Precision is the share of the items that the attacker names which the victim has.

    \b
    Example:
      federank audit sybil --data city --epsilon 2 --json
    """
    settings = SybilSettings(**given_settings(SybilSettings, values))
    rows = rehearse_sybils(reading.interactions(), settings)
    if as_json:
        click.echo(json.dumps(asdict(settings) | {"rows": figures(rows)}, indent=2))
        return
    table = new_table("Honest>", "Sybils>", "Attacker", "Epsilon>", "Precision>", "AUC>", "Popularity's AUC>")
    for row in rows:
        epsilon = "no noise" if row.epsilon is None else f"{row.epsilon:g}"
        cells = f"{row.precision:.3f}", f"{row.auc:.3f}", f"{row.popularity_auc:.3f}"
        table.add_row(f"{row.honest}", f"{row.sybils}", row.observer, epsilon, *cells)
    show(table)
