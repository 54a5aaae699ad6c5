"""Who leads: one worker of all plays the rounds, chosen by a lock that a crash releases.

With SQLite it is a lock on a file beside the store, which the operating system drops when the process ends, however it
ends. With PostgreSQL it is an advisory lock of the leader's connection: gone when the connection is.

The lock only spares work. That a round is folded once is seen to by the store (store/statements/), even if two
workers should both believe that they lead.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from federank.service.server.store.database import Connection, Database

_LOCK_OF_ROUNDS = 7361906


class LeaderLock:
    """The right to lead, once it is acquired."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._file: int | None = None

    def acquire(self, connection: Connection) -> bool:
        """Try to lead; whether this worker does."""
        if connection.dialect == "postgresql":
            row = connection.one("SELECT pg_try_advisory_lock(?)", _LOCK_OF_ROUNDS)
            return bool(row and row[0])
        if self._file is not None:
            return True
        file = os.open(f"{self._database.path}.leader", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Let another worker lead."""
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None
