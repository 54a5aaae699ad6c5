"""Experiment tracking: `--track mlflow`, `--track tensorboard:FOLDER`.

A run has a key (of a study, the run's id; of a model, its folder and content), so that it is logged once. Trackers
allow few characters in names: `ndcg@10` is logged as `ndcg_at_10`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from federank.checks import did_you_mean
from federank.errors import SettingError
from federank.extras import need
from federank.studies.results import Point, RunRecord

if TYPE_CHECKING:
    from federank.data.splits import Split
    from federank.methods.recommender import Recommender


class Tracked(NamedTuple):
    """One run, as it is logged."""

    key: str
    name: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    points: Sequence[Point]  # its curve
    tags: Mapping[str, str]
    failed: bool = False

    def scalars(self) -> Iterator[tuple[str, float, int]]:
        """Every value with its name and step: the curve's at their epochs, then the metrics at the last epoch."""
        last = Point(max((point.epoch for point in self.points), default=0), self.metrics)
        for epoch, values in (*self.points, last):
            yield from ((plain_name(name), value, epoch) for name, value in values.items())


def plain_name(name: str) -> str:
    """A metric's name, or a setting's, as every tracker allows it."""
    # A slash would be a folder.
    return re.sub(r"[^\w\-./]", "_", name.replace("@", "_at_").replace("/", " "))


def open_tracker(where: str, experiment: str) -> MLflow | TensorBoard:
    """The tracker that `--track` names: its kind and, after a colon, its place."""
    kind, _, place = where.partition(":")
    trackers: dict[str, type[MLflow | TensorBoard]] = {"mlflow": MLflow, "tensorboard": TensorBoard}
    if kind not in trackers:
        raise SettingError(
            f"--track is {where!r}.{did_you_mean(kind, trackers)} It can be mlflow or tensorboard, with a place after "
            "a colon: mlflow:http://localhost:5000, or tensorboard:logs."
        )
    need("tracking", f"--track {kind}", "mlflow" if kind == "mlflow" else "tensorboardX")
    return trackers[kind](place, experiment)


def tracked_record(record: RunRecord) -> Tracked:
    """A run of a study."""
    values = (f"{name} {value}" for name, value in {**record.swept, **record.chosen}.items())
    tags = {"task": record.task, "data": record.data, "group": record.group, "judged_by": record.part}
    tags |= {"reason": record.reason, "data_fingerprint": record.data_fingerprint or ""}
    tags |= {f"version.{name}": value for name, value in record.versions.items()}
    costs = {"seconds": record.seconds, "memory_mb": record.memory_mb, "epoch": record.epoch}
    return Tracked(
        key=record.id,
        name=f"{', '.join([record.data, record.group, *values])}, seed {record.seed}, {record.task}",
        params={"method": record.model, "data": record.data, "seed": record.seed, **record.settings},
        metrics={name: float(value) for name, value in {**record.metrics, **costs}.items() if value is not None},
        points=tuple(record.curve),
        tags={name: value for name, value in tags.items() if value is not None},
        failed=not record.done,
    )


def tracked_model(model: Recommender, split: Split | None, out: Path) -> Tracked:
    """A stored model: its settings, its report, and its metrics on the test part where there is one."""
    from federank import __version__
    from federank.evaluation.evaluate import evaluate, prediction_errors
    from federank.methods.predicting import PredictsRatings

    metrics = _numbers(model.report)
    if split is not None and len(split.test):
        metrics |= {name: float(value) for name, value in evaluate(model, split).means.items()}
        if isinstance(model, PredictsRatings):
            errors = prediction_errors(model, split.test)
            metrics |= {"mae": errors.mae, "rmse": errors.rmse}
    stop = model.report.get("early_stopping", {})
    curve = enumerate(stop.get("curve", ()), start=1)
    digest = hashlib.sha256(str(out.resolve()).encode() + (out / "model.json").read_bytes())
    return Tracked(
        key=digest.hexdigest()[:16],
        name=f"{model.training.name}, {model.name}, {out}",
        params={"method": model.name, "data": model.training.name, **asdict(model.settings)},
        metrics=metrics,
        points=[Point(epoch, {f"validation {stop['metric']}": value}) for epoch, value in curve],
        tags={"folder": str(out), "split": "none" if split is None else split.how, "version": __version__},
    )


def _numbers(report: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a report, each under the path to it."""
    numbers: dict[str, float] = {}
    for name, value in report.items():
        if isinstance(value, dict):
            numbers |= _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            numbers[f"{prefix}{name}"] = float(value)
    return numbers


_KEY = "federank.run"


class MLflow:
    """An experiment of MLflow: in a folder, at a server, or in a database that MLflow knows."""

    def __init__(self, place: str, experiment: str) -> None:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        place = place or os.environ.get("MLFLOW_TRACKING_URI", "") or "mlruns"
        if "://" not in place:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            place = Path(place).resolve().as_uri()
        try:
            self._client = MlflowClient(tracking_uri=place)
            result = self._client.get_experiment_by_name(experiment)
            self._experiment = result.experiment_id if result else self._client.create_experiment(experiment)
        except (MlflowException, OSError) as reason:
            raise SettingError(f"MLflow cannot keep runs at {place}: {reason}") from reason

    def log(self, run: Tracked) -> None:
        """Log a run, once."""
        from mlflow.entities import Metric, Param

        if self._client.search_runs([self._experiment], filter_string=f"tags.`{_KEY}` = '{run.key}'", max_results=1):
            return
        tags = {_KEY: run.key, **{f"federank.{name}": value for name, value in run.tags.items()}}
        made = self._client.create_run(self._experiment, tags=tags, run_name=run.name).info.run_id
        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value, step in run.scalars()]
        params = [Param(plain_name(name), str(value)[:500]) for name, value in run.params.items()]
        self._client.log_batch(made, params=params)
        for begin in range(0, len(metrics), 500):  # MLflow takes 1,000 at most at once
            self._client.log_batch(made, metrics=metrics[begin : begin + 500])
        self._client.set_terminated(made, "FAILED" if run.failed else "FINISHED")


class TensorBoard:
    """A folder of runs, each a folder of events below PLACE/EXPERIMENT (`tensorboard --logdir PLACE`)."""

    def __init__(self, place: str, experiment: str) -> None:
        self._folder = Path(place or "tensorboard") / _as_file_name(experiment)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise SettingError(
                f"TensorBoard's events cannot be written to {self._folder}: {reason.strerror}."
            ) from reason

    def log(self, run: Tracked) -> None:
        """Log a run, once."""
        from tensorboardX import SummaryWriter

        folder = self._folder / f"{_as_file_name(run.name)[:180]} [{run.key[:16]}]"
        if folder.exists():
            return
        with SummaryWriter(str(folder)) as events:
            about = {"settings": dict(run.params), "about": dict(run.tags), "failed": run.failed}
            events.add_text("run", f"```\n{json.dumps(about, indent=2, default=str)}\n```")
            for metric, value, step in run.scalars():
                events.add_scalar(metric, value, step)


def _as_file_name(text: str) -> str:
    return re.sub(r"[^\w\-.,= ]", "_", text)
