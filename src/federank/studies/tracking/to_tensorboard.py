"""TensorBoard: a run of ours is a folder of events below PLACE/EXPERIMENT (`tensorboard --logdir PLACE`).

    --track tensorboard             the folder tensorboard
    --track tensorboard:logs        another

Events are written by tensorboardX, a small package; TensorBoard itself is what looks at them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tensorboardX import SummaryWriter

from federank.errors import SettingError
from federank.studies.tracking.tracked import Tracked, plain_name

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
        """Tell of a run, once."""
        end = f" [{run.key[:16]}]"
        name = _ALLOWED.sub("_", run.name)[: 200 - len(end)] + end
        if (self._folder / name).exists():
            return
        with SummaryWriter(str(self._folder / name)) as events:
            about = {"settings": dict(run.params), "about": dict(run.tags), "failed": run.failed}
            events.add_text("run", f"```\n{json.dumps(about, indent=2, default=str)}\n```")
            for point in run.points:
                for metric, value in point.values.items():
                    events.add_scalar(plain_name(metric), value, point.epoch)
            last = max((point.epoch for point in run.points), default=0)
            for metric, value in run.metrics.items():
                events.add_scalar(plain_name(metric), value, last)
