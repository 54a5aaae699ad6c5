"""A process that is watched: when it ends it is started again, after a pause that grows while it keeps ending early.

The process prints a word for each state that it reaches, one per line. `report` is called with every state:

    starting    the process was started
    ...         whatever the process prints
    stopped     the process has ended, and is started again after a pause
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

STARTING, RUNNING, STOPPED = "starting", "running", "stopped"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a process that has ended is started again; they double each time."""
STEADY_SECONDS = 120.0
"""A process that has lived this long did not end early: the next pause is the first one again."""


class Watched:
    """A process that is started, and started again whenever it ends, until `stop`.

    `command` gets the number of starts so far. `say` is called with a sentence when the process has ended.
    """

    def __init__(
        self, command: Callable[[int], list[str]], report: Callable[[str], None], say: Callable[[str], None]
    ) -> None:
        self._command, self._report, self._say = command, report, say
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # no process is started after `stop`
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def start(self) -> None:
        """Start the process, and watch it from a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the process, and do not start it again."""
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.terminate()
        self._thread.join()

    def _watch(self) -> None:
        starts, pause = 0, FIRST_PAUSE
        while (process := self._started(starts)) is not None:
            starts, began = starts + 1, time.monotonic()
            self._report(STARTING)
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    self._report(line.strip())
            code = process.wait()
            if self._stopping.is_set():
                return
            self._report(STOPPED)
            if time.monotonic() - began >= STEADY_SECONDS:
                pause = FIRST_PAUSE
            self._say(f"ended with exit code {code}; it is started again in {pause:.0f} s.")
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _started(self, starts: int) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            # In a session of its own: Ctrl-C in the terminal is for the parent, which then ends it.
            self._process = subprocess.Popen(
                self._command(starts), stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            return self._process
