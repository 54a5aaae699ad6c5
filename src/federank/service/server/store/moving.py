"""Moving a federation from SQLite to PostgreSQL: every table in one transaction, compared afterwards.

The server must not run. Nothing can write to the old store meanwhile, and afterwards its file has another name, so that
no server continues from it: two servers that continue from one state would count uploads twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from federank.errors import StoreError
from federank.service.server.store.database import Connection, Database
from federank.service.server.store.leader_lock import LeaderLock
from federank.service.server.store.schema import SCHEMA, create_tables

TABLES = tuple(re.findall(r"CREATE TABLE (\w+)", "\n".join(SCHEMA)))
_ROWS_AT_A_TIME = 16
"""A row can be an upload of a megabyte."""


class Moved(NamedTuple):
    """One table, the same in both stores."""

    table: str
    rows: int
    digest: str


def move_store(source: str, target: str) -> tuple[list[Moved], Path]:
    """Copy a federation into an empty PostgreSQL database and compare; the tables, and where the old file is now."""
    old, new = Database(source), Database(target)
    if old.dialect != "sqlite" or new.dialect != "postgresql":
        raise StoreError("A store is moved from sqlite:///FILE to postgresql://USER@HOST/NAME.")
    if not old.path.exists():
        raise StoreError(f"There is no store {old.path}; name the one to be moved with --store.")
    lock = LeaderLock(old)
    try:
        with old.connection() as reading:
            create_tables(reading)
            if reading.one("SELECT 1 FROM metadata WHERE name = 'config'") is None:
                raise StoreError(f"The store {old.path} holds no federation.")
            if not lock.acquire(reading):
                raise StoreError(f"The store {old.path} is in use by a running server; stop it first.")
            with new.connection() as writing:
                create_tables(writing)
                with reading.transaction(), writing.transaction():  # nothing else writes to the old store meanwhile
                    writing.run("SET LOCAL statement_timeout = 0")
                    moved = _copy(reading, writing)
            reading.truncate_log()
        old.close()
        kept = old.path.rename(old.path.with_name(f"{old.path.name}.moved"))
    finally:
        old.close()
        new.close()
        lock.release()
    return moved, kept


def _copy(reading: Connection, writing: Connection) -> list[Moved]:
    if writing.one("SELECT 1 FROM metadata LIMIT 1") is not None:
        raise StoreError("The PostgreSQL database holds a federation already; name an empty one.")
    writing.run("DELETE FROM tallies")  # a new store begins with a row of zeros
    moved = []
    for table in TABLES:
        columns = [str(name) for _, name, *_ in reading.all(f"PRAGMA table_info({table})")]
        insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
        rows = reading.raw.execute(f"SELECT {', '.join(columns)} FROM {table}")
        with writing.raw.cursor() as cursor:
            while some := rows.fetchmany(_ROWS_AT_A_TIME):
                cursor.executemany(insert, some)
        here, there = (_table(connection, table, columns) for connection in (reading, writing))
        if here != there:
            raise StoreError(f"The table {table} is not the same in the new store; nothing was moved.")
        moved.append(here)
    return moved


def _table(connection: Connection, table: str, columns: list[str]) -> Moved:
    """The number of rows and a digest of them that does not depend on their order."""
    count, total = 0, 0
    query = f"SELECT {', '.join(columns)} FROM {table}"
    rows: Any = connection.raw.execute(query) if connection.dialect == "sqlite" else _streamed(connection, query)
    for row in rows:
        count += 1
        values = [bytes(value) if isinstance(value, memoryview) else value for value in row]
        total += int.from_bytes(hashlib.sha256(repr(values).encode()).digest(), "big")
    return Moved(table, count, f"{total % 2**256:064x}")


def _streamed(connection: Connection, query: str) -> Iterator[Any]:
    """Rows of PostgreSQL, a few at a time."""
    with connection.raw.cursor(name="moved") as cursor:
        cursor.itersize = _ROWS_AT_A_TIME
        cursor.execute(query)
        yield from cursor
