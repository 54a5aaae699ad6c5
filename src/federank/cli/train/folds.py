"""`federank train METHOD --folds K`: a model for each of K random parts of the data, which it is tested on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from federank.errors import ModelError

if TYPE_CHECKING:
    from federank.cli.reading import Reading
    from federank.data.splits import Split
    from federank.engines.conduct import Conduct
    from federank.recommenders.recommender import Recommender


def train_folds(
    method: type[Recommender],
    settings: dict[str, Any],
    reading: Reading,
    out: Path,
    conduct: Conduct,
    *,
    folds: int,
    split_seed: int,
    overwrite: bool,
    resume: bool,
    count: bool,
    as_json: bool,
) -> None:
    """Train the models one after the other and keep them in one folder."""
    from federank.cli.train.report import count_communication
    from federank.data.splits import split_folds
    from federank.recommenders.stored.folds import is_folds, train_each, unfinished
    from federank.recommenders.stored.model_folder import refuse_place

    refuse_place(out)
    if overwrite and not resume:
        shutil.rmtree(unfinished(out), ignore_errors=True)
    _refuse_lost_work(out, replaceable=overwrite and is_folds(out))

    def fit(model: Recommender, split: Split, number: int, checkpoint: Path) -> None:
        click.echo(f"Fold {number} of {folds}", err=True)
        here = replace(conduct, checkpoint=checkpoint, resume=checkpoint.exists()) if method.in_rounds else conduct
        model.fit(split.train, conduct=here)
        count_communication(model, count)

    splits = split_folds(reading.interactions(), folds, split_seed)
    try:
        models = train_each(lambda: method(**settings), splits, out, fit, resume=resume)
    except KeyboardInterrupt:
        click.echo(f"\nThe run is kept in {unfinished(out)}; the same command with --resume goes on.", err=True)
        raise
    if as_json:
        click.echo(json.dumps({"out": str(out), "folds": [model.report for model in models]}))
        return
    seconds = sum(model.report.get("seconds", 0.0) for model in models)
    click.echo(f"{folds} models of {method.name} learnt in {seconds:.1f} s. Kept in {out}.")
    click.echo(f"Next: federank evaluate {out}")


def _refuse_lost_work(out: Path, *, replaceable: bool) -> None:
    """Nothing that took time to make is replaced unless its owner says so; only folds are replaced by folds."""
    if out.exists() and not replaceable and (not out.is_dir() or any(out.iterdir())):
        raise ModelError(f"{out} is there already; choose another --out, or add --overwrite to replace earlier folds.")
