"""A file of its owner alone: written completely or not at all, refused if others can open it, locked by one process.

Faults of the disk and of the file come out as sentences for the owner.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from federank.errors import BadState
from federank.files import PRIVATE

SECONDS_TO_WAIT = 10.0
"""How long a file that another process writes to is waited for."""


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """An empty file under another name, to be filled inside the `with`; it gets its own name once it is complete."""
    if path.exists():
        raise BadState(f"{path} is there already; a new device needs another --state.")
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    try:
        yield unfinished
        try:
            os.link(unfinished, path)  # unlike a rename, it never replaces a device that another process enrolled
        except FileExistsError:
            raise BadState(
                f"{path} was made by another process in the meantime; a new device needs another --state."
            ) from None
    finally:
        for left in (unfinished, unfinished.with_name(f"{unfinished.name}-journal")):
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """A lock on a file that the system releases with the process."""
    try:
        import fcntl
    except ImportError:
        raise BadState("Taking part needs a system that can lock files for a process: Linux or macOS.") from None
    refuse_absence(path)
    # Not one of SQLite's own locks (those are fcntl's, these flock's), so looking into the file stays possible.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadState(
                f"Another process takes part with {path} already; stop that one first, or give each device a --state "
                "of its own."
            ) from None
        yield
    finally:
        os.close(file)


def refuse_absence(path: Path) -> None:
    """A device that is not there must be enrolled first."""
    if not path.is_file():
        raise BadState(
            f"There is no device at {path}. `federank client --server ... --profile ...` enrols one; --state names its "
            "file."
        )


def refuse_other_readers(path: Path) -> None:
    """A history that others on the machine can open is not used until they cannot."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise BadState(
            f"{path} holds a person's history and can be opened by others on this machine; make it its owner's alone "
            f"with `chmod 600 {path}`."
        )


@contextlib.contextmanager
def faults_as_sentences(path: Path) -> Iterator[None]:
    """Faults of the disk and of the file, as sentences for the owner."""
    try:
        yield
    except sqlite3.Error as fault:
        raise BadState(_sentence(path, str(fault))) from fault
    except OSError as fault:
        reason = "disk is full" if fault.errno == errno.ENOSPC else str(fault)
        raise BadState(_sentence(path, reason)) from fault


def _sentence(path: Path, reason: str) -> str:
    if "full" in reason:
        return f"The disk that holds {path} is full; nothing of this step was kept or sent. Free space and try again."
    if "locked" in reason:
        return f"{path} is busy: another process has held it for {SECONDS_TO_WAIT:.0f} seconds. Try again."
    if "readonly" in reason or "unable to open" in reason or "Errno" in reason or "I/O" in reason:
        return f"{path} cannot be read and written ({reason}); look at the folder's permissions and disk."
    return (
        f"{path} is damaged ({reason}). Restore it from a copy, or enrol again with another --state; what the damaged "
        "file recorded as sent stays sent."
    )
