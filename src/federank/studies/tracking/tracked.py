"""What a tracker is told of a run, whoever the tracker is: `--track mlflow`, `--track tensorboard:FOLDER`.

1. a run has a key of its own (of a study, the run's id; of a model, its folder and when it was kept), so that one
   that is told twice is there once
2. params are its settings, metrics what it was judged by, points its curve, a step for each epoch
3. trackers know no @ and little else in names: `ndcg@10` is `ndcg_at_10` there
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from federank.checks import did_you_mean
from federank.errors import SettingError
from federank.extras import need
from federank.studies.results.line import Line, Point

TRACKERS = ("mlflow", "tensorboard")
_NOT_ALLOWED = re.compile(r"[^\w\-./]")
_PACKAGES = {"mlflow": "mlflow", "tensorboard": "tensorboardX"}


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """One run, as it is told."""

    key: str
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    points: Sequence[Point] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    failed: bool = False


class Tracker(Protocol):
    """Whoever is told of runs."""

    def log(self, run: Tracked) -> None:
        """Tell of a run; one whose key is known already is left as it is."""
        ...


def plain_name(name: str) -> str:
    """A metric's name, or a setting's, as every tracker allows it."""
    return _NOT_ALLOWED.sub("_", name.replace("@", "_at_"))


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
        from federank.studies.tracking.to_mlflow import MLflow

        return MLflow(place, experiment)
    from federank.studies.tracking.to_tensorboard import TensorBoard

    return TensorBoard(place, experiment)


def tracked_line(line: Line) -> Tracked:
    """A run of a study."""
    where = [line.data, line.group, *(f"{name} {value}" for name, value in {**line.swept, **line.chosen}.items())]
    tags = {"task": line.task, "data": line.data, "group": line.group, "data_fingerprint": line.data_fingerprint or ""}
    if line.part is not None:
        tags["judged_by"] = line.part
    if line.reason is not None:
        tags["reason"] = line.reason
    told = {"seconds": line.seconds, "memory_mb": line.memory_mb, "epoch": line.epoch}
    figures = {name: float(value) for name, value in {**line.metrics, **told}.items() if value is not None}
    return Tracked(
        key=line.id,
        name=f"{', '.join(where)}, seed {line.seed}, {line.task}",
        params={"method": line.model, "data": line.data, "seed": line.seed, **line.settings},
        metrics=figures,
        points=tuple(line.curve),
        tags=tags | {f"version.{name}": told for name, told in line.versions.items()},
        failed=not line.done,
    )
