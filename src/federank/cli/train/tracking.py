"""`federank train METHOD --track mlflow`: a finished model told to a tracker, with what its test part says of it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from federank.data.splits import Split
    from federank.recommenders.recommender import Recommender
    from federank.studies.tracking.tracked import Tracker

TRACK_HELP = "Tell mlflow or tensorboard of it; a place may follow a colon: mlflow:mlruns, tensorboard:logs."


def track_model(tracker: Tracker, model: Recommender, split: Split | None, out: Path) -> None:
    """Tell of a model that was kept: settings, report, and its metrics on the test part where there is one."""
    from federank import __version__
    from federank.evaluation.evaluate import evaluate
    from federank.evaluation.prediction import prediction_errors
    from federank.recommenders.predicting import PredictsRatings
    from federank.studies.results.line import Point
    from federank.studies.tracking.tracked import Tracked

    metrics = _numbers(model.report)
    if split is not None and len(split.test):
        metrics |= {name: float(value) for name, value in evaluate(model, split).means.items()}
        if isinstance(model, PredictsRatings):
            errors = prediction_errors(model, split.test)
            metrics |= {"mae": errors.mae, "rmse": errors.rmse}
    stop = model.report.get("early_stopping", {})
    curve = [
        Point(epoch, {f"validation {stop['metric']}": value}) for epoch, value in enumerate(stop.get("curve", ()), 1)
    ]
    kept = (out / "model.json").read_bytes()
    tracker.log(
        Tracked(
            key=hashlib.sha256(str(out.resolve()).encode() + kept).hexdigest()[:16],
            name=f"{model.training.name}, {model.name}, {out}",
            params={"method": model.name, "data": model.training.name, **asdict(model.settings)},
            metrics=metrics,
            points=curve,
            tags={"folder": str(out), "split": "none" if split is None else split.how, "version": __version__},
        )
    )


def _numbers(report: dict[str, Any], before: str = "") -> dict[str, float]:
    """The numbers of a report, each under the path to it."""
    found: dict[str, float] = {}
    for name, value in report.items():
        if isinstance(value, dict):
            found |= _numbers(value, f"{before}{name}.")
        elif isinstance(value, int | float):
            found[f"{before}{name}"] = float(value)
    return found
