"""One of several workers, as a process: its parent sends it, through stdin, what to serve and on which sockets."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys

from federank.errors import FedeRankError
from federank.service.server.processes import asyncio_run, serving_from

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Serve until a signal to stop, or until the parent has gone."""
    task = json.load(sys.stdin)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != task["parent"]:
            return 0  # it went before we could ask for the signal
    public, admin = (socket.socket(fileno=number) for number in task["sockets"])
    try:
        return asyncio_run(serving_from(task["serving"]), public, admin)
    except FedeRankError as mistake:
        sys.stderr.write(f"federank: {mistake}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
