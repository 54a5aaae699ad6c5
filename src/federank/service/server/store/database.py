"""A thin layer over two databases: SQLite in one file, and PostgreSQL.

    sqlite:///federation.sqlite         a file here;  sqlite:////var/lib/federation.sqlite  is a file from the root
    postgresql://user@host/name         a server, which several machines can share

SQL is written once, with `?` where a value goes, in the words that both understand. A statement either works, or the
database is away (`StoreAway`): then the connection is dropped, and the next use opens a new one. Connections belong to
the thread that uses them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from federank.errors import StoreAway as StoreAway
from federank.errors import StoreError as StoreError
from federank.extras import need

# The address of a store as it may be shown: without a password.


def without_password(address: str) -> str:
    """The same address; a password in it becomes dots."""
    if not address.startswith(("postgresql://", "postgres://")):
        return address
    scheme, _, rest = address.partition("//")
    names, at, host = rest.rpartition("@")
    if _has_password(names.partition("?")[2]):
        return f"{scheme}//…"  # the `@` may be one of a password among the options
    user, colon, _ = names.partition(":")
    host, mark, options = host.partition("?")
    shown = "" if _has_password(options) else mark + options
    return f"{scheme}//{user}{':…' if colon else ''}{at}{host}{shown}"


def may_be_misread(address: str) -> bool:
    """Whether a database could take a part of the password for a host or a port, and complain of it by its name."""
    names = address.partition("//")[2].rpartition("@")[0]
    return "/" in names or "@" in names


def _has_password(options: str) -> bool:
    return "password" in unquote(options).lower()


BUSY_TIMEOUT = 10.0
CONNECT_TIMEOUT = 3
STATEMENT_TIMEOUT = 15
TRUNCATE_TIMEOUT = 0.2
PAGE_BYTES = 16_384
"""Of a SQLite file: uploads are long, and with SQLite's usual 4,096 keeping and dropping one takes twice the time."""
SYNCHRONOUS = "FULL"
"""Of SQLite: a commit has reached the disk before it is acknowledged."""


class Connection:
    """One thread's connection to the database."""

    def __init__(
        self,
        raw: Any,
        dialect: str,
        away: tuple[type[Exception], ...],
        forbidden: tuple[type[Exception], ...] = (),
    ) -> None:
        self.raw = raw
        self.dialect = dialect
        self._away = away
        self._forbidden = forbidden

    def run(self, statement: str, *values: Any) -> int:
        """Run a statement; how many rows it has changed."""
        with self._as_unavailable():
            return int(self.raw.execute(_in_dialect(statement, self.dialect), values).rowcount)

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a query answers with."""
        with self._as_unavailable():
            return list(self.raw.execute(_in_dialect(statement, self.dialect), values).fetchall())

    def one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row that a query answers with."""
        with self._as_unavailable():
            row: tuple[Any, ...] | None = self.raw.execute(_in_dialect(statement, self.dialect), values).fetchone()
            return row

    def value(self, statement: str, *values: Any) -> Any:
        """The first value of the first row; None where there is no row."""
        row = self.one(statement, *values)
        return None if row is None else row[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements within take effect together, durably, or none does."""
        with self._as_unavailable():
            # SQLite takes the right to write at once, so that two writers wait for each other instead of failing.
            self.raw.execute("BEGIN IMMEDIATE" if self.dialect == "sqlite" else "BEGIN")
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.raw.execute("ROLLBACK")
            raise
        with self._as_unavailable():
            try:
                self.raw.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    self.raw.execute("ROLLBACK")
                raise

    def share_lock(self) -> str:
        """What to add to a query so that its rows stay as they are until the transaction ends."""
        return "" if self.dialect == "sqlite" else " FOR SHARE"

    def update_lock(self) -> str:
        """The same for rows that this transaction is about to change."""
        return "" if self.dialect == "sqlite" else " FOR UPDATE"

    def truncate_log(self) -> bool:
        """Empty the log beside a SQLite file, which still has what was overwritten; whether no one was in the way.

        PostgreSQL has no such means: see docs/operating.md for what remains there, and for how long.
        """
        if self.dialect != "sqlite":
            return True
        self.run(f"PRAGMA busy_timeout = {round(1000 * TRUNCATE_TIMEOUT)}")
        try:
            return bool(self.value("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
        finally:
            self.run(f"PRAGMA busy_timeout = {round(1000 * BUSY_TIMEOUT)}")

    def close(self) -> None:
        """Let go of the database."""
        with suppress(Exception):
            self.raw.close()

    @contextmanager
    def _as_unavailable(self) -> Iterator[None]:
        try:
            yield
        except self._away as reason:
            away = StoreAway(f"The store does not answer now ({_first_line(reason)}).")
            away.is_full = _is_full(reason)
            raise away from reason
        except self._forbidden as reason:
            raise StoreError(
                f"The store's user may not do what is needed ({_first_line(reason)}); make it the database's owner."
            ) from reason


class Database:
    """Where the store is, and each thread's connection to it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._threads = threading.local()
        self._opened: list[Connection] = []
        if address.startswith("sqlite:///") and address != "sqlite:///":
            self.dialect = "sqlite"
            self.path = Path(address.removeprefix("sqlite:///"))
        elif address.startswith(("postgresql://", "postgres://")):
            self.dialect = "postgresql"
        else:
            raise StoreError(
                f"The store {address!r} is of no known kind; give sqlite:///FILE or postgresql://USER@HOST/NAME."
            )

    def free_bytes(self) -> int | None:
        """What is free on the disk of a store that is a file; None where another server keeps it."""
        return shutil.disk_usage(self.path.absolute().parent).free if self.dialect == "sqlite" else None

    def connect(self) -> Connection:
        """A new connection."""
        return self._to_sqlite() if self.dialect == "sqlite" else self._to_postgresql()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """This thread's connection, opened where there is none; dropped when the database turns out to be away."""
        found: Connection | None = getattr(self._threads, "connection", None)
        if found is None:
            found = self._threads.connection = self.connect()
            self._opened.append(found)
        try:
            yield found
        except StoreAway:
            self.release()
            raise

    def release(self) -> None:
        """Close this thread's connection."""
        found: Connection | None = getattr(self._threads, "connection", None)
        if found is not None:
            found.close()
            self._threads.connection = None
            with suppress(ValueError):  # `close` has been here, while this thread was still at work
                self._opened.remove(found)

    def close(self) -> None:
        """Close every thread's connection, once no thread uses it any more."""
        while self._opened:
            self._opened.pop().close()

    def _to_sqlite(self) -> Connection:
        away = (sqlite3.OperationalError, sqlite3.DatabaseError)
        # A new file is its owner's alone, and so are the files that SQLite puts beside it: there are keys in them.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            raw = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
            raw.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file; others keep theirs
            _turn_on_wal(raw)
            raw.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            raw.execute("PRAGMA secure_delete = ON")  # uploads are overwritten; see `truncate_log` for their copies
        except away as reason:
            raise StoreAway(f"The store {self.path} cannot be opened ({reason}).") from reason
        return Connection(raw, "sqlite", away)

    def _to_postgresql(self) -> Connection:
        need("service", "PostgreSQL", "psycopg")
        import psycopg

        away = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
        try:
            raw = psycopg.connect(
                self.address,
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT,
                options=f"-c statement_timeout={STATEMENT_TIMEOUT * 1000} -c synchronous_commit=on",
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
            )
        except psycopg.ProgrammingError:
            # The reason may quote the password, and is not shown.
            raise StoreError(
                f"The store {without_password(self.address)} cannot be understood; give postgresql://USER@HOST/NAME, "
                "with %25 and the like for special characters in it."
            ) from None
        except away as reason:
            if may_be_misread(self.address):  # the reason may quote a part of the password
                raise StoreAway(
                    f"The PostgreSQL server of {without_password(self.address)} cannot be used; write a / or @ in a "
                    "password as %2F or %40."
                ) from None
            raise StoreAway(f"The PostgreSQL server cannot be used ({_first_line(reason)}).") from reason
        forbidden = (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName)
        return Connection(raw, "postgresql", away, forbidden)


def _first_line(reason: Exception) -> str:
    return str(reason).strip().splitlines()[0]


def _is_full(reason: Exception) -> bool:
    """Whether a full disk is to blame."""
    if isinstance(reason, sqlite3.Error):
        # A write that was cut short is reported as an error of input and output.
        code = getattr(reason, "sqlite_errorcode", 0)
        return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
    return getattr(reason, "sqlstate", None) == "53100"


@cache
def _in_dialect(statement: str, dialect: str) -> str:
    """A statement in the words of a dialect."""
    return statement if dialect == "sqlite" else statement.replace("?", "%s")


def _turn_on_wal(raw: sqlite3.Connection) -> None:
    """Write-ahead logging. Where two connections turn it on at once SQLite refuses one of them without waiting."""
    end = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as reason:
            if reason.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
        time.sleep(0.01)


# Who leads: one worker of all plays the rounds, chosen by a lock that a crash releases.
#
# With SQLite it is a lock on a file beside the store, which the operating system drops when the process ends, however
# it ends. With PostgreSQL it is an advisory lock of the leader's connection: gone when the connection is.
#
# The lock only spares work. That a round is aggregated once is seen to by the store (store/queries.py), even if two
# workers should both believe that they lead.


_LOCK_OF_ROUNDS = 7361906


class LeaderLock:
    """The right to lead, once it is acquired."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._file: int | None = None

    def acquire(self, connection: Connection) -> bool:
        """Try to lead; whether this worker does."""
        if connection.dialect == "postgresql":
            return bool(connection.value("SELECT pg_try_advisory_lock(?)", _LOCK_OF_ROUNDS))
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
