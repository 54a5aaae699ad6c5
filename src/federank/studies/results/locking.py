"""Locks between processes that work in the same folder.

A lock is the operating system's, on an open file: the kernel frees it when its holder ends, however it ends
(`kill -9` included), so that no lock is ever left behind. The file itself stays, empty and harmless.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

Lock = IO[bytes]
"""An open file whose lock is held; closing it frees the lock."""


def take(path: Path, *, wait: bool) -> Lock | None:
    """The lock on this file; without `wait`, None where another process holds it."""
    held = path.open("ab")
    try:
        taken = _lock(held.fileno(), wait=wait)
    except BaseException:
        held.close()
        raise
    if not taken:
        held.close()
        return None
    return held


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nobody else is inside a block with this file at the same time."""
    held = take(path, wait=True)
    assert held is not None
    with held:
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(number: int, *, wait: bool) -> bool:
        while True:
            try:
                os.lseek(number, 0, os.SEEK_SET)
                msvcrt.locking(number, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # LK_LOCK gives up after ten seconds
                if not wait:
                    return False
            else:
                return True

else:
    import fcntl

    def _lock(number: int, *, wait: bool) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True
