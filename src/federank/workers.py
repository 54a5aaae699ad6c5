"""Threads for compiled code: the same work, divided by number."""

from __future__ import annotations

import threading
from collections.abc import Callable


def at_once(work: Callable[[int], None], workers: int) -> None:
    """Run the same work in this thread and in as many others as it takes; each gets its number."""
    others = [threading.Thread(target=work, args=(worker,)) for worker in range(1, workers)]
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()
