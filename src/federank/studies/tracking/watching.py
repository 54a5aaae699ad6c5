"""A study that is tracked: each run is told as it finishes, and those of an earlier start that were not, at the end."""

from __future__ import annotations

from federank.studies.plan.plan import Plan, Run
from federank.studies.results.line import Line
from federank.studies.results.results import Results
from federank.studies.run.run import Watch
from federank.studies.tracking.tracked import Tracker, tracked_line


class Tracking:
    """Passes on what it sees to whoever watches, and tells a tracker of finished runs."""

    def __init__(self, watch: Watch, tracker: Tracker) -> None:
        self._watch, self._tracker = watch, tracker

    def begin(self, plan: Plan, there: int) -> None:
        """Pass it on."""
        self._watch.begin(plan, there)

    def started(self, run: Run) -> None:
        """Pass it on."""
        self._watch.started(run)

    def finished(self, line: Line, *, ours: bool) -> None:
        """Pass it on, and tell of it."""
        self._watch.finished(line, ours=ours)
        self._tracker.log(tracked_line(line))


def track_all(results: Results, tracker: Tracker) -> None:
    """Tell of every run of the study as it is now; what the tracker knows already is left as it is."""
    for line in results.lines():
        tracker.log(tracked_line(line))
