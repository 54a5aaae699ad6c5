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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from federank.checks import did_you_mean
from federank.errors import SettingError
from federank.extras import need
from federank.studies.results import Point, RunRecord

if TYPE_CHECKING:
    from federank.data.splits import Split
    from federank.methods.recommender import Recommender

TRACKERS = ("mlflow", "tensorboard")
_NOT_ALLOWED = re.compile(r"[^\w\-./]")
_PACKAGES = {"mlflow": "mlflow", "tensorboard": "tensorboardX"}


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """One run, as it is logged."""

    key: str
    name: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    points: Sequence[Point]
    """Its curve."""
    tags: Mapping[str, str]
    failed: bool = False

    def scalars(self) -> Iterator[tuple[str, float, int]]:
        """Every value with its name and step: the curve's at their epochs, then the metrics at the last epoch."""
        for point in self.points:
            for name, value in point.values.items():
                yield plain_name(name), value, point.epoch
        last = max((point.epoch for point in self.points), default=0)
        for name, value in self.metrics.items():
            yield plain_name(name), value, last


class Tracker(Protocol):
    """A tracker of runs."""

    def log(self, run: Tracked) -> None:
        """Log a run; one whose key is known is left as it is."""
        ...


def plain_name(name: str) -> str:
    """A metric's name, or a setting's, as every tracker allows it."""
    return _NOT_ALLOWED.sub("_", name.replace("@", "_at_").replace("/", " "))  # a slash would be a folder


def open_tracker(where: str, experiment: str) -> Tracker:
    """The tracker that `--track` names: its kind and, after a colon, its place."""
    kind, _, place = where.partition(":")
    if kind not in TRACKERS:
        raise SettingError(
            f"--track is {where!r}.{did_you_mean(kind, TRACKERS)} It can be mlflow or tensorboard, with a place after "
            "a colon: mlflow:http://localhost:5000, or tensorboard:logs."
        )
    need("tracking", f"--track {kind}", _PACKAGES[kind])
    if kind == "mlflow":
        return MLflow(place, experiment)
    return TensorBoard(place, experiment)


def tracked_record(record: RunRecord) -> Tracked:
    """A run of a study."""
    where = [
        record.data,
        record.group,
        *(f"{name} {value}" for name, value in {**record.swept, **record.chosen}.items()),
    ]
    tags = {
        "task": record.task,
        "data": record.data,
        "group": record.group,
        "data_fingerprint": record.data_fingerprint or "",
    }
    tags |= {
        name: value for name, value in (("judged_by", record.part), ("reason", record.reason)) if value is not None
    }
    costs = {"seconds": record.seconds, "memory_mb": record.memory_mb, "epoch": record.epoch}
    figures = {name: float(value) for name, value in {**record.metrics, **costs}.items() if value is not None}
    return Tracked(
        key=record.id,
        name=f"{', '.join(where)}, seed {record.seed}, {record.task}",
        params={"method": record.model, "data": record.data, "seed": record.seed, **record.settings},
        metrics=figures,
        points=tuple(record.curve),
        tags=tags | {f"version.{name}": value for name, value in record.versions.items()},
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


# MLflow: a run of ours is a run of an experiment, in a folder, at a server, or in a database that MLflow knows.


_KEY = "federank.run"
_BATCH = 500
"""The most metrics that MLflow takes at once is 1,000."""
_LONGEST_PARAM = 500


class MLflow:
    """An experiment of MLflow."""

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
        params = [Param(plain_name(name), str(value)[:_LONGEST_PARAM]) for name, value in run.params.items()]
        self._client.log_batch(made, params=params)
        for begin in range(0, len(metrics), _BATCH):
            self._client.log_batch(made, metrics=metrics[begin : begin + _BATCH])
        self._client.set_terminated(made, "FAILED" if run.failed else "FINISHED")


# TensorBoard: a run of ours is a folder of events below PLACE/EXPERIMENT (`tensorboard --logdir PLACE`).


_ALLOWED = re.compile(r"[^\w\-.,= ]")


class TensorBoard:
    """A folder of runs."""

    def __init__(self, place: str, experiment: str) -> None:
        self._folder = Path(place or "tensorboard") / _ALLOWED.sub("_", experiment)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise SettingError(
                f"TensorBoard's events cannot be written to {self._folder}: {reason.strerror}."
            ) from reason

    def log(self, run: Tracked) -> None:
        """Log a run, once."""
        from tensorboardX import SummaryWriter

        end = f" [{run.key[:16]}]"
        name = _ALLOWED.sub("_", run.name)[: 200 - len(end)] + end
        if (self._folder / name).exists():
            return
        with SummaryWriter(str(self._folder / name)) as events:
            about = {"settings": dict(run.params), "about": dict(run.tags), "failed": run.failed}
            events.add_text("run", f"```\n{json.dumps(about, indent=2, default=str)}\n```")
            for metric, value, step in run.scalars():
                events.add_scalar(metric, value, step)
