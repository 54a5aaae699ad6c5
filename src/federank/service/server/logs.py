"""Structured logs: one JSON object a line, on stderr, without anything personal.

Each line has a level (info, warning, error) and the number of the worker that writes it; 0 is the process that was
started, others are its workers. A line says what happened and how often; never who: no address, no client, no token, no
item. That is seen to by what is handed in (see the calls), and by this: text of exceptions is not logged, only their
kind and where in our code.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from typing import Any, Literal, TextIO

Level = Literal["info", "warning", "error"]


class Log:
    """Where lines go; `None` is silence."""

    def __init__(self, stream: TextIO | None = sys.stderr, worker: int = 0) -> None:
        self._stream, self._worker = stream, worker

    def say(self, event: str, level: Level = "info", **fields: Any) -> None:
        """One line."""
        if self._stream is None:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "level": level, "worker": self._worker, "event": event, **fields}
        try:
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # no one reads any more

    def store_away(self, reason: BaseException) -> None:
        """The store does not take what it is given: that the disk is full has a name of its own."""
        full = getattr(reason, "is_full", False)
        self.say("disk full" if full else "store away", "error" if full else "warning", reason=type(reason).__name__)

    def fault(self, where: str, fault: BaseException) -> None:
        """A fault of ours: its kind, and where in the code it arose."""
        frames = traceback.extract_tb(fault.__traceback__)[-4:]
        lines = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames]
        self.say("fault", "error", where=where, kind=type(fault).__name__, places=lines)
