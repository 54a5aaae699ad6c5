"""The store's tables, and the name of their format.

    metadata   what the federation is: recipe, catalogue, round settings, key of the tickets, hash of the admin token
    clients    a random id, the hash of its token and whether it brought an invitation; where uploads are counted, how
               often it was asked for one and in which round last; how often it has evaluated; nothing else
    rounds     one row each: open -> closed -> aggregated, or open -> abandoned; `skipped` after a restored backup; when
               it ended, and how many clients there were and had left by then
    grants     how many clients have been given a round's task
    uploads    one row per client and round: the digest, and until it is aggregated the bytes;
               where only sums are read, whether it was counted or why not (secure.py)
    tallies    one row: how many clients there are, how many have left, how many rounds were abandoned
    versions   the rows of the model that a version changed; now and then the full model; with the newest, what the
               next step has to remember, if anything
    refusals   how many uploads were refused in a round, by reason
    sums       where no single server reads uploads: a round's offer, its sum of shares, and what is published of it
    reports    which uploads of such a round the helper has looked at, until the round has ended
    actions    what the operator did, in order (writer.py)
    hits       randomised answers on whether an item was among a client's first ten (evaluation.py)
    waiting    where uploads are counted: how many clients wait at each worker, by how often they were asked so far
    invites    hashes of invitations that no one has used yet

From the first release on, the number in the format's name goes up with every change of these tables. A store of another
format is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from federank.service.server.store.database import Connection, Database, LeaderLock, StoreError

FORMAT = "federank server 1"

SCHEMA = (
    "CREATE TABLE metadata (name TEXT PRIMARY KEY, value {bytes} NOT NULL)",
    "CREATE TABLE clients (client TEXT PRIMARY KEY, token {bytes} NOT NULL UNIQUE,"
    " invitations {integer} NOT NULL DEFAULT 0, invited_to {integer} NOT NULL DEFAULT -1,"
    " banned {integer} NOT NULL DEFAULT 0, invited {integer} NOT NULL DEFAULT 0,"
    " answers {integer} NOT NULL DEFAULT 0)",
    "CREATE TABLE rounds (number {integer} PRIMARY KEY, version {integer} NOT NULL, state TEXT NOT NULL,"
    " reports {integer} NOT NULL DEFAULT 0, bytes {integer} NOT NULL DEFAULT 0, clipped {integer} NOT NULL DEFAULT 0,"
    " drift {real} NOT NULL DEFAULT 0, seconds {real} NOT NULL DEFAULT 0, ended {real}, clients {integer},"
    " departures {integer})",
    "CREATE INDEX rounds_by_state ON rounds (state)",
    "CREATE TABLE grants (round {integer} PRIMARY KEY, granted {integer} NOT NULL)",
    "CREATE TABLE uploads (ticket {bytes} PRIMARY KEY, round {integer} NOT NULL,"
    " digest {bytes} NOT NULL, size {integer} NOT NULL, clipped {integer} NOT NULL,"
    " body {bytes} NOT NULL, outcome TEXT NOT NULL DEFAULT '', invited {integer} NOT NULL DEFAULT 0)",
    "CREATE INDEX uploads_by_round ON uploads (round)",
    "CREATE TABLE tallies (clients {integer} NOT NULL, departures {integer} NOT NULL, abandoned {integer} NOT NULL)",
    "INSERT INTO tallies VALUES (0, 0, 0)",
    "CREATE TABLE versions (version {integer} PRIMARY KEY, round {integer} NOT NULL, is_full {integer} NOT NULL,"
    " body {bytes} NOT NULL, changed {bytes} NOT NULL, state {bytes})",
    "CREATE TABLE refusals (round {integer} NOT NULL, reason TEXT NOT NULL, count {integer} NOT NULL,"
    " PRIMARY KEY (round, reason))",
    "CREATE TABLE sums (round {integer} PRIMARY KEY, offer {bytes} NOT NULL, total {bytes} NOT NULL,"
    " members {bytes} NOT NULL, helper_sum {bytes} NOT NULL, helper_record {bytes} NOT NULL,"
    " noisy {bytes} NOT NULL, record {bytes} NOT NULL)",
    "CREATE TABLE reports (ticket {bytes} PRIMARY KEY, round {integer} NOT NULL, identifier {bytes} NOT NULL,"
    " report {bytes} NOT NULL, stands {integer} NOT NULL, UNIQUE (round, identifier))",
    "CREATE TABLE actions (number {integer} PRIMARY KEY, time TEXT NOT NULL, action TEXT NOT NULL,"
    " detail TEXT NOT NULL, digest {bytes} NOT NULL)",
    "CREATE TABLE hits (version {integer} NOT NULL, reporter {bytes} NOT NULL, hit {integer} NOT NULL,"
    " squared {integer} NOT NULL DEFAULT 0, PRIMARY KEY (version, reporter))",
    "CREATE TABLE waiting (worker TEXT NOT NULL, level {integer} NOT NULL, count {integer} NOT NULL, seen {real}"
    " NOT NULL, PRIMARY KEY (worker, level))",
    "CREATE TABLE invites (code {bytes} PRIMARY KEY)",
)

_TYPES = {
    "sqlite": {"bytes": "BLOB", "integer": "INTEGER", "real": "REAL"},
    "postgresql": {"bytes": "BYTEA", "integer": "BIGINT", "real": "DOUBLE PRECISION"},
}
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
}
_LOCK_OF_SCHEMA = 7361905


def create_tables(connection: Connection, schema: Sequence[str] = SCHEMA, name: str = FORMAT) -> bool:
    """Create the tables of an empty store, and say whether this call did it. A store of another format is refused.

    Several processes may do this at once.
    """
    with connection.transaction():
        if connection.dialect == "postgresql":
            connection.one("SELECT pg_advisory_xact_lock(?)", _LOCK_OF_SCHEMA)
        tables = {str(name) for (name,) in connection.all(_TABLES[connection.dialect])}
        if "store_format" in tables:
            found = connection.value("SELECT name FROM store_format")
            if found != name:
                raise StoreError(
                    f"The store has the format {found!r}, and {name!r} is needed. Use the program "
                    "that wrote it, or name another with --store."
                )
            return False
        # A database of PostgreSQL may have tables of other programs; a file of SQLite is one program's.
        if tables if connection.dialect == "sqlite" else "rounds" in tables:
            raise StoreError(
                "The store holds tables that this version of FedeRank has not written: it belongs to another program, "
                "or to a version before the first release. Name another with --store."
            )
        for statement in ("CREATE TABLE store_format (name TEXT NOT NULL)", *schema):
            connection.run(statement.format(**_TYPES[connection.dialect]))
        connection.run("INSERT INTO store_format VALUES (?)", name)
    return True


# Moving a federation from SQLite to PostgreSQL: every table in one transaction, compared afterwards.
#
# The server must not run. Nothing can write to the old store meanwhile, and afterwards its file has another name, so
# that no server continues from it: two servers that continue from one state would count uploads twice.


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
