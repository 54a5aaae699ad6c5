"""`federank evaluate DIR`, where DIR holds folds: each model on its own test part, then means and deviations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from federank.data.splits import Split
    from federank.recommenders.recommender import Recommender

RATING_ROWS = {"mae": "MAE", "rmse": "RMSE"}


def rating_figures(model: Recommender | None, split: Split) -> tuple[dict[str, float], list[str]]:
    """MAE and RMSE of a model that predicts ratings, with notes on its fallbacks; nothing for any other."""
    from federank.evaluation.prediction import prediction_errors
    from federank.recommenders.predicting import PredictsRatings

    if not isinstance(model, PredictsRatings):
        return {}, []
    found = prediction_errors(model, split.test)
    return {"mae": found.mae, "rmse": found.rmse}, found.notes


def show_errors(errors: dict[str, float]) -> None:
    """MAE and RMSE on a line each, where there are any."""
    for name, value in errors.items():
        click.echo(f"  {RATING_ROWS[name]:<5} {value:.4f}")
    if errors:
        click.echo()


def evaluate_folds(folder: Path, at: tuple[int, ...], *, as_json: bool) -> None:
    """Judge every fold, and print what they say together."""
    from federank.evaluation.evaluate import evaluate as judge
    from federank.evaluation.prediction import over_folds
    from federank.recommenders.stored.folds import folds_in
    from federank.recommenders.stored.model_folder import load_model, load_split

    figures, notes, name = [], [], ""
    for number, position in enumerate(folds_in(folder), start=1):
        model, split = load_model(position), load_split(position)
        name = split.train.name
        errors, fallbacks = rating_figures(model, split)
        found = judge(model, split, at=at)
        figures.append(errors | found.means)
        notes += [f"Fold {number}: {note}" for note in (*fallbacks, *found.notes)]
    together = over_folds(figures)
    if as_json:
        content: dict[str, Any] = {**together, "folds": len(figures), "per_fold": figures, "notes": notes}
        click.echo(json.dumps(content, indent=2))
        return
    click.echo(f"{name}, {len(figures)} folds, each model judged by its own test part\n")
    _show(together, figures, at)
    for note in notes:
        click.echo(f"  {note}")


def _show(together: dict[str, float], figures: list[dict[str, float]], at: tuple[int, ...]) -> None:
    from federank.cli.evaluate.command import ROWS, figure
    from federank.cli.tables import new_table, show

    table = new_table("", "Mean>", "Deviation>", "Least>", "Most>")
    titles = RATING_ROWS | {f"{name}@{n}": f"{title} @{n}" for n in at for name, title in ROWS.items()}
    for name, title in titles.items():
        if name in together:
            values = [fold[name] for fold in figures]
            shown = (together[name], together[f"{name}_std"], min(values), max(values))
            table.add_row(title, *(figure(float(value)) for value in shown))
    show(table)
