"""MLflow: a run of ours is a run of an experiment, in a folder, at a server, or in a database that MLflow knows.

    --track mlflow                          what MLFLOW_TRACKING_URI says, or else the folder mlruns
    --track mlflow:results/mlruns           a folder
    --track mlflow:http://localhost:5000    a server

MLflow calls folders a thing of the past and refuses them unless it is told that they are wanted; whoever names one here
has said so.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

from federank.errors import SettingError
from federank.studies.tracking.tracked import Tracked, plain_name

_KEY = "federank.run"
_BATCH = 500
"""The most metrics that MLflow takes at once is 1,000."""
_LONGEST_PARAM = 500


class MLflow:
    """An experiment of MLflow."""

    def __init__(self, place: str, experiment: str) -> None:
        place = place or os.environ.get("MLFLOW_TRACKING_URI", "") or "mlruns"
        if "://" not in place:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            place = Path(place).resolve().as_uri()
        try:
            self._client = MlflowClient(tracking_uri=place)
            found = self._client.get_experiment_by_name(experiment)
            self._experiment = found.experiment_id if found else self._client.create_experiment(experiment)
        except (MlflowException, OSError) as reason:
            raise SettingError(f"MLflow cannot keep runs at {place}: {reason}") from reason

    def log(self, run: Tracked) -> None:
        """Tell of a run, once."""
        if self._client.search_runs([self._experiment], filter_string=f"tags.`{_KEY}` = '{run.key}'", max_results=1):
            return
        tags = {_KEY: run.key, **{f"federank.{name}": told for name, told in run.tags.items()}}
        made = self._client.create_run(self._experiment, tags=tags, run_name=run.name).info.run_id
        now = int(time.time() * 1000)
        last = max((point.epoch for point in run.points), default=0)
        metrics = [
            Metric(plain_name(name), value, now, point.epoch)
            for point in run.points
            for name, value in point.values.items()
        ]
        metrics += [Metric(plain_name(name), value, now, last) for name, value in run.metrics.items()]
        params = [Param(plain_name(name), str(value)[:_LONGEST_PARAM]) for name, value in run.params.items()]
        self._client.log_batch(made, params=params)
        for begin in range(0, len(metrics), _BATCH):
            self._client.log_batch(made, metrics=metrics[begin : begin + _BATCH])
        self._client.set_terminated(made, "FAILED" if run.failed else "FINISHED")
