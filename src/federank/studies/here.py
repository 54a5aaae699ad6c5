"""An executor in this very process: one run after the other, nothing started, nothing shipped.

For small studies (the demo): a worker process would compile and read everything once more.
"""

from __future__ import annotations

from collections import deque

from federank.studies.plan import Run
from federank.studies.task import Finished, carry_out


class Here:
    """Carries out one run at a time, when it is asked for the next result."""

    slots = 1

    def __init__(self) -> None:
        self._waiting: deque[Run] = deque()

    def submit(self, run: Run) -> None:
        """Take on a run."""
        self._waiting.append(run)

    def next(self, timeout: float | None = None) -> Finished | None:  # noqa: ARG002
        """Carry out the run that was taken on first, however long it takes."""
        return carry_out(self._waiting.popleft()) if self._waiting else None

    def close(self) -> None:
        """Forget what was not carried out."""
        self._waiting.clear()
