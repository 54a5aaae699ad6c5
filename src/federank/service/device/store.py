"""A device's memory: everything private in one file that only its owner can read.

The file is an SQLite database (rollback journal, every commit flushed to the disk), so a crash or a power cut leaves
either all of a step or none of it. It holds

    identity    the server, this device's id and token there, and two random words that its draws are named by
    person      the owner's policy and who chose it, the vector used in rounds and what it was learnt from, the home
                vector
    profile     the items of the owner's history
    ledger      what has left this device, item by item
    pending     an Update that is recorded as sent and whose receipt has not come yet: the very bytes
    model       the shared model as last received, and its version
    catalogue   the items' ids, titles and categories

A round is one transaction: the new vector, the ledger's lines, the model and the pending Update are written
together, before a byte is sent. A second one removes the pending Update when its receipt or a definite refusal has
come. So whatever happens, what may have left is in the ledger, and an interrupted upload is sent again with the same
bytes: never a second Update for the same ticket.

Taking part needs `taking_part()`, a lock that the system releases with the process; looking and changing one's policy
do not, so an owner can read the ledger or pause while the device runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from federank.errors import BadState as BadState

FORMAT = 2
"""Format 1 did not say what the vector of rounds was learnt from; such a file is brought up to date when opened."""
_APPLICATION = 0x46446576  # SQLite's mark of whose file this is: "FDev"
_SECONDS_TO_WAIT = 10.0

_SCHEMA = """
CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), server TEXT NOT NULL, device TEXT NOT NULL,
    token TEXT NOT NULL, seed INTEGER NOT NULL, user INTEGER NOT NULL, federation TEXT NOT NULL, ca TEXT,
    insecure INTEGER NOT NULL);
CREATE TABLE person (one INTEGER PRIMARY KEY CHECK (one = 1), policy TEXT NOT NULL, chosen_by TEXT NOT NULL,
    vector BLOB NOT NULL, home BLOB, home_version INTEGER, rounds INTEGER NOT NULL, last_ticket TEXT,
    learnt_from TEXT);
CREATE TABLE profile (item INTEGER PRIMARY KEY);
CREATE TABLE ledger (item INTEGER PRIMARY KEY, first_round INTEGER NOT NULL, last_round INTEGER NOT NULL,
    times_liked INTEGER NOT NULL, times_compared INTEGER NOT NULL, real INTEGER);
CREATE TABLE pending (one INTEGER PRIMARY KEY CHECK (one = 1), ticket TEXT NOT NULL, round INTEGER NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE model (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, vectors BLOB NOT NULL,
    biases BLOB NOT NULL);
CREATE TABLE catalogue (one INTEGER PRIMARY KEY CHECK (one = 1), packed BLOB NOT NULL);
"""


class DeviceStore:
    """An open state file: SQL in whole transactions, and faults as sentences."""

    def __init__(self, path: Path) -> None:
        """Open an existing file; `created` makes a new one."""
        self.path = path
        _refuse_absence(path)
        _refuse_other_readers(path)
        with _sentences(path):
            self._sql = sqlite3.connect(path, timeout=_SECONDS_TO_WAIT, isolation_level=None)
            try:
                if self._checked_format() < FORMAT:
                    self._renew_format()
                self._sql.execute("PRAGMA synchronous = EXTRA")
            except BaseException:
                self._sql.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of what is done inside, on the disk, or none of it."""
        with _sentences(self.path):
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield self._sql
                self._sql.execute("COMMIT")
            except BaseException:
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with _sentences(self.path):
            return self._sql.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """The one row that a query finds, if it finds any."""
        found = self.rows(query, *values)
        return found[0] if found else None

    def _checked_format(self) -> int:
        (application,) = self._sql.execute("PRAGMA application_id").fetchone()
        (version,) = self._sql.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise BadState(f"{self.path} is not a device's file; --state names one that `federank device` made.")
        if not 1 <= version <= FORMAT:
            raise BadState(
                f"{self.path} has format {version}, and this program reads formats 1 to {FORMAT}; use the version of "
                "federank that wrote it, or enrol anew with another --state."
            )
        (found,) = self._sql.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        return int(version)

    def _renew_format(self) -> None:
        with self.transaction() as sql:
            (version,) = sql.execute("PRAGMA user_version").fetchone()
            if version < FORMAT:  # else another process was quicker
                sql.execute("ALTER TABLE person ADD COLUMN learnt_from TEXT")
                sql.execute(f"PRAGMA user_version = {FORMAT}")


@contextlib.contextmanager
def created(path: Path) -> Iterator[sqlite3.Connection]:
    """A new state file, to be filled inside the `with`: it gets its name only once it is whole."""
    if path.exists():
        raise BadState(f"{path} is there already; a new device needs another --state.")
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    with _sentences(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            sql = sqlite3.connect(unfinished, isolation_level=None)
            try:
                sql.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                sql.execute(f"PRAGMA application_id = {_APPLICATION}")
                sql.execute(f"PRAGMA user_version = {FORMAT}")
                sql.execute("BEGIN")
                yield sql
                sql.execute("COMMIT")
            finally:
                sql.close()
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
def taking_part(path: Path) -> Iterator[None]:
    """Keep every other process from taking part with the same state file."""
    try:
        import fcntl
    except ImportError:
        raise BadState("Taking part needs a system that can lock files for a process: Linux or macOS.") from None
    _refuse_absence(path)
    # Not one of SQLite's own locks (those are fcntl's, these flock's), so looking into the file stays possible. The
    # file must be closed after SQLite's connection: closing it drops the locks that SQLite holds in this process.
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


def _refuse_absence(path: Path) -> None:
    if not path.is_file():
        raise BadState(
            f"There is no device at {path}. `federank device --server ... --profile ...` enrols one; --state names its "
            "file."
        )


def _refuse_other_readers(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise BadState(
            f"{path} holds a person's history and can be opened by others on this machine; make it its owner's alone "
            f"with `chmod 600 {path}`."
        )


@contextlib.contextmanager
def _sentences(path: Path) -> Iterator[None]:
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
        return f"The disk that holds {path} is full; nothing of this step was kept or sent. Make room and try again."
    if "locked" in reason:
        return f"{path} is busy: another process has held it for {_SECONDS_TO_WAIT:.0f} seconds. Try again."
    if "readonly" in reason or "unable to open" in reason or "Errno" in reason or "I/O" in reason:
        return f"{path} cannot be read and written ({reason}); look at the folder's permissions and disk."
    return (
        f"{path} is damaged ({reason}). Restore it from a copy, or enrol anew with another --state; what the damaged "
        "file recorded as sent stays sent."
    )
