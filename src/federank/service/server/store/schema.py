"""The store's tables, and the name of their format.

    metadata   what the federation is: recipe, catalogue, round settings, key of the tickets, hash of the admin token
    devices    a random id, the hash of its token and whether it brought an invitation; where uploads are counted, how
               often it was asked for one and in which round last; how often it has evaluated; nothing else
    rounds     one row each: open -> closed -> folded, or open -> abandoned; `skipped` after a restored backup; when it
               ended, and how many devices there were and had left by then (ending.py)
    grants     how many devices have been given a round's task
    uploads    one row per device and round: the digest, and until it is folded the bytes (any kind:
               see federation/server.py); where only sums are read, whether it was counted or why not (sums/store.py)
    tallies    one row: how many devices there are, how many have left, how many rounds were abandoned
    versions   the rows of the model that a version changed; now and then the full model; with the newest, what the
               next fold has to remember, if anything
    refusals   how many uploads were refused in a round, by reason
    sums       where no single server reads uploads: a round's offer, its sum of shares, and what is published of it
    reports    which uploads of such a round the helper has looked at, until the round has ended
    actions    what the operator did, in order (actions.py)
    hits       randomised answers on whether an item was among a device's first ten (hits.py)
    waiting    where uploads are counted: how many clients wait at each worker, by how often they were asked so far
    invites    hashes of invitations that no one has used yet

From the first release on, the number in the format's name goes up with every change of these tables. A store of another
format is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from federank.service.server.store.database import Connection, StoreError

FORMAT = "federank server 1"

SCHEMA = (
    "CREATE TABLE metadata (name TEXT PRIMARY KEY, value {bytes} NOT NULL)",
    "CREATE TABLE devices (device TEXT PRIMARY KEY, token {bytes} NOT NULL UNIQUE,"
    " invitations {integer} NOT NULL DEFAULT 0, invited_to {integer} NOT NULL DEFAULT -1,"
    " banned {integer} NOT NULL DEFAULT 0, invited {integer} NOT NULL DEFAULT 0,"
    " answers {integer} NOT NULL DEFAULT 0)",
    "CREATE TABLE rounds (number {integer} PRIMARY KEY, version {integer} NOT NULL, state TEXT NOT NULL,"
    " reports {integer} NOT NULL DEFAULT 0, bytes {integer} NOT NULL DEFAULT 0, clipped {integer} NOT NULL DEFAULT 0,"
    " drift {real} NOT NULL DEFAULT 0, seconds {real} NOT NULL DEFAULT 0, ended {real}, devices {integer},"
    " departures {integer})",
    "CREATE INDEX rounds_by_state ON rounds (state)",
    "CREATE TABLE grants (round {integer} PRIMARY KEY, granted {integer} NOT NULL)",
    "CREATE TABLE uploads (ticket {bytes} PRIMARY KEY, round {integer} NOT NULL,"
    " kind TEXT NOT NULL, digest {bytes} NOT NULL, size {integer} NOT NULL, clipped {integer} NOT NULL,"
    " body {bytes} NOT NULL, outcome TEXT NOT NULL DEFAULT '', invited {integer} NOT NULL DEFAULT 0)",
    "CREATE INDEX uploads_by_round ON uploads (round)",
    "CREATE TABLE tallies (devices {integer} NOT NULL, departures {integer} NOT NULL, abandoned {integer} NOT NULL)",
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
            found = connection.one("SELECT name FROM store_format")
            if found != (name,):
                raise StoreError(
                    f"The store has the format {found[0] if found else ''!r}, and {name!r} is needed. Use the program "
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
