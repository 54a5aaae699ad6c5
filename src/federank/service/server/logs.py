"""Structured logs: one JSON object a line, on stderr, without anything personal.

A line says what happened and how often; never who: no address, no device, no token, no item. That is seen to by what
is handed in (see the calls), and by this: text of exceptions is not logged, only their kind and place in our code.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from typing import Any, TextIO


class Log:
    """Where lines go; `None` is silence."""

    def __init__(self, stream: TextIO | None = sys.stderr) -> None:
        self._stream = stream

    def say(self, event: str, **facts: Any) -> None:
        """One line."""
        if self._stream is None:
            return
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **facts}
        try:
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # nobody reads any more

    def fault(self, where: str, fault: BaseException) -> None:
        """A fault of ours: its kind, and where in the code it arose."""
        frames = traceback.extract_tb(fault.__traceback__)[-4:]
        places = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames]
        self.say("fault", where=where, kind=type(fault).__name__, places=places)
