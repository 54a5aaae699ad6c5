"""The store's tables, as numbered migrations: a store remembers which of them it has had.

    facts      what the federation is: recipe, catalogue, round settings, key of the tickets, hash of the admin token
    devices    a random id and the hash of its token; where messages are counted, how often it was invited and to which
               round last; nothing else is known of anybody
    rounds     one row each: open -> closed -> folded, or open -> abandoned; `skipped` after a restored backup; when it
               ended, and how many devices there were and had left by then (ending.py)
    grants     how many devices have been given a round's task
    uploads    one row per ticket used, and per device and fold: the digest, and until it is folded the bytes (any kind:
               see families/family.py); where only sums are read, whether it was counted or why not (sums/store.py)
    tallies    one row: how many devices there are, how many have left, how many rounds were abandoned
    versions   the rows of the model that a version changed; now and then the whole model; with the newest, what the
               next fold has to remember, if anything
    refusals   how many uploads were refused in a round, by reason
    sums       where no single server reads uploads: a round's offer, its sum of shares, and what is published of it
    reports    which uploads of such a round the helper has looked at, until the round has ended
    actions    what the operator did, in order (actions.py)
    hits       randomised answers on whether an item was among a device's first ten (hits.py)
    invites    hashes of invitations that nobody has used yet

A migration is never edited once it is released: a change is a new number at the end.
"""

from __future__ import annotations

from federank.service.server.store.database import Connection, StoreError

MIGRATIONS: list[list[str]] = [
    [
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value {bytes} NOT NULL)",
        "CREATE TABLE devices (device TEXT PRIMARY KEY, token {bytes} NOT NULL UNIQUE)",
        "CREATE TABLE rounds (number {whole} PRIMARY KEY, version {whole} NOT NULL, state TEXT NOT NULL,"
        " reports {whole} NOT NULL DEFAULT 0, bytes {whole} NOT NULL DEFAULT 0, clipped {whole} NOT NULL DEFAULT 0,"
        " drift {real} NOT NULL DEFAULT 0, seconds {real} NOT NULL DEFAULT 0)",
        "CREATE INDEX rounds_by_state ON rounds (state)",
        "CREATE TABLE grants (round {whole} PRIMARY KEY, granted {whole} NOT NULL)",
        "CREATE TABLE uploads (ticket {bytes} PRIMARY KEY, round {whole} NOT NULL, kind TEXT NOT NULL,"
        " digest {bytes} NOT NULL, size {whole} NOT NULL, clipped {whole} NOT NULL, body {bytes} NOT NULL)",
        "CREATE INDEX uploads_by_round ON uploads (round)",
        "CREATE TABLE versions (version {whole} PRIMARY KEY, round {whole} NOT NULL, whole {whole} NOT NULL,"
        " body {bytes} NOT NULL, changed {bytes} NOT NULL)",
        "CREATE TABLE refusals (round {whole} NOT NULL, reason TEXT NOT NULL, count {whole} NOT NULL,"
        " PRIMARY KEY (round, reason))",
    ],
    [
        "ALTER TABLE uploads ADD COLUMN reporter {bytes}",
        "UPDATE uploads SET reporter = ticket",
        "CREATE UNIQUE INDEX uploads_by_reporter ON uploads (reporter)",
        "CREATE TABLE tallies (devices {whole} NOT NULL, departures {whole} NOT NULL, abandoned {whole} NOT NULL)",
        "INSERT INTO tallies SELECT (SELECT COUNT(*) FROM devices), 0,"
        " (SELECT COUNT(*) FROM rounds WHERE state = 'abandoned')",
        "DELETE FROM facts WHERE name = 'departures'",
    ],
    ["ALTER TABLE versions ADD COLUMN state {bytes}"],
    [
        "ALTER TABLE devices ADD COLUMN invitations {whole} NOT NULL DEFAULT 0",
        "ALTER TABLE devices ADD COLUMN invited_to {whole} NOT NULL DEFAULT -1",
    ],
    [
        "CREATE TABLE sums (round {whole} PRIMARY KEY, offer {bytes} NOT NULL, total {bytes} NOT NULL,"
        " members {bytes} NOT NULL, helper_sum {bytes} NOT NULL, helper_record {bytes} NOT NULL,"
        " noisy {bytes} NOT NULL, record {bytes} NOT NULL)",
        "CREATE TABLE reports (ticket {bytes} PRIMARY KEY, round {whole} NOT NULL, identifier {bytes} NOT NULL,"
        " report {bytes} NOT NULL, stands {whole} NOT NULL, UNIQUE (round, identifier))",
    ],
    [
        "ALTER TABLE devices ADD COLUMN banned {whole} NOT NULL DEFAULT 0",
        "CREATE TABLE actions (number {whole} PRIMARY KEY, time TEXT NOT NULL, action TEXT NOT NULL,"
        " detail TEXT NOT NULL, digest {bytes} NOT NULL)",
    ],
    [
        "CREATE TABLE invites (code {bytes} PRIMARY KEY)",
        "CREATE TABLE hits (version {whole} NOT NULL, reporter {bytes} NOT NULL, hit {whole} NOT NULL,"
        " PRIMARY KEY (version, reporter))",
    ],
    ["ALTER TABLE uploads ADD COLUMN outcome TEXT NOT NULL DEFAULT ''"],
    [
        "ALTER TABLE rounds ADD COLUMN ended {real}",
        "ALTER TABLE rounds ADD COLUMN devices {whole}",
        "ALTER TABLE rounds ADD COLUMN departures {whole}",
    ],
    ["ALTER TABLE hits ADD COLUMN squared {whole} NOT NULL DEFAULT 0"],
]
"""Each migration's statements, in order; the first is number 1."""

_TYPES = {
    "sqlite": {"bytes": "BLOB", "whole": "INTEGER", "real": "REAL"},
    "postgresql": {"bytes": "BYTEA", "whole": "BIGINT", "real": "DOUBLE PRECISION"},
}
_LOCK_OF_MIGRATIONS = 7361905


def migrate(connection: Connection, migrations: list[list[str]] = MIGRATIONS) -> int:
    """Bring the store up to date; how many migrations it had before. Several processes may do this at once."""
    with connection.transaction():
        if connection.dialect == "postgresql":
            connection.one("SELECT pg_advisory_xact_lock(?)", _LOCK_OF_MIGRATIONS)
        else:
            _refuse_another_s_file(connection)
        connection.run("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)")
        row = connection.one("SELECT COALESCE(MAX(number), 0) FROM migrations")
        had = int(row[0]) if row else 0
        if had > len(migrations):
            raise StoreError(
                f"The store has had {had} migrations, and this version of FedeRank knows {len(migrations)}: it was "
                "used by a newer version. Use that version, or restore a backup from before."
            )
        for number in range(had + 1, len(migrations) + 1):
            for statement in migrations[number - 1]:
                connection.run(statement.format(**_TYPES[connection.dialect]))
            connection.run("INSERT INTO migrations (number) VALUES (?)", number)
    return had


def _refuse_another_s_file(connection: Connection) -> None:
    """A file with other tables belongs to something else, a device perhaps, and is left as it is."""
    tables = {name for (name,) in connection.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and "migrations" not in tables:
        raise StoreError("The store is a file of something else than a federation; name another with --store.")
