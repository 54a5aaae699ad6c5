"""`federank evaluate DIR --revisits FILE`: where people went later, known places included."""

from __future__ import annotations

import json
from pathlib import Path

import click

_ROWS = {
    "precision": "Precision",
    "recall": "Recall",
    "ndcg": "nDCG",
    "hit_rate": "Hit rate",
    "recall_known": "Recall of what people knew",
    "recall_new": "Recall of what was new to them",
}


def show_revisits(folder: Path, later: Path, at: tuple[int, ...], *, as_json: bool) -> None:
    """Judge a model by a file of later rows, and print it."""
    from federank.cli.tables import new_table, show
    from federank.data.loading import read_part
    from federank.evaluation.revisits import evaluate_revisits
    from federank.recommenders.stored.model_folder import load_model

    model, part = load_model(folder), read_part(later)
    found = {name: value for n in at for name, value in evaluate_revisits(model, part, at=n).items()}
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{model.training.name}, judged by {later}: all items are ranked, those that people have too\n")
    table = new_table("", *(f"@{n}>" for n in at))
    for name, title in _ROWS.items():
        table.add_row(title, *(f"{found[f'{name}@{n}']:.5f}" for n in at))
    show(table)
    click.echo(f"  {found['known_share']:.1%} of what {found['users']:,} people did later they had done before.")
    if found["rows_left_out"]:
        click.echo(f"  Rows of people or items that the model does not know, left out: {found['rows_left_out']:,}.")
