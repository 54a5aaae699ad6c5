"""The tables of a device's file, its format, and what brings a file of an earlier version up to date."""

from __future__ import annotations

import sqlite3
from itertools import chain
from pathlib import Path

from federank.errors import BadState

FORMAT = 7
"""Format 1 did not say what the vector of rounds was learnt from; format 2 knew of one method, and counted no messages;
format 3 pinned no charter of sums; format 4 held no item back to evaluate, and did not note the noise that hid a
message; format 5 did not ask what became of a message; format 6 knew of likes alone, and of no ratings. Such a file is
brought up to date when opened."""
_APPLICATION = 0x46446576  # SQLite's mark of whose file this is: "FDev"

_SCHEMA = """
CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), server TEXT NOT NULL, device TEXT NOT NULL,
    token TEXT NOT NULL, seed INTEGER NOT NULL, user INTEGER NOT NULL, federation TEXT NOT NULL, ca TEXT,
    insecure INTEGER NOT NULL);
CREATE TABLE person (one INTEGER PRIMARY KEY CHECK (one = 1), policy TEXT NOT NULL, chosen_by TEXT NOT NULL,
    vector BLOB NOT NULL, home BLOB, home_version INTEGER, rounds INTEGER NOT NULL, last_ticket TEXT,
    learnt_from TEXT);
CREATE TABLE profile (item INTEGER PRIMARY KEY, rating REAL);
CREATE TABLE ledger (item INTEGER PRIMARY KEY, first_round INTEGER NOT NULL, last_round INTEGER NOT NULL,
    times_liked INTEGER NOT NULL, times_compared INTEGER NOT NULL, real INTEGER);
CREATE TABLE pending (one INTEGER PRIMARY KEY CHECK (one = 1), ticket TEXT NOT NULL, round INTEGER NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE model (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, vectors BLOB NOT NULL,
    biases BLOB NOT NULL, weights BLOB, regulariser REAL, implicit BLOB, iteration INTEGER);
CREATE TABLE catalogue (one INTEGER PRIMARY KEY CHECK (one = 1), packed BLOB NOT NULL);
CREATE TABLE messages (number INTEGER PRIMARY KEY, allowed INTEGER NOT NULL, round INTEGER NOT NULL,
    items INTEGER NOT NULL, noise INTEGER NOT NULL DEFAULT 0, ticket TEXT, outcome TEXT);
CREATE TABLE sums (one INTEGER PRIMARY KEY CHECK (one = 1), charter BLOB NOT NULL, helper_ca TEXT);
CREATE TABLE evaluation (one INTEGER PRIMARY KEY CHECK (one = 1), item INTEGER NOT NULL, answers INTEGER NOT NULL,
    last_version INTEGER NOT NULL);
"""
_SINCE_1 = ("ALTER TABLE person ADD COLUMN learnt_from TEXT",)
_SINCE_2 = (
    "CREATE TABLE messages (number INTEGER PRIMARY KEY, allowed INTEGER NOT NULL, round INTEGER NOT NULL,"
    " items INTEGER NOT NULL)",
    "ALTER TABLE model ADD COLUMN weights BLOB",
    "ALTER TABLE model ADD COLUMN regulariser REAL",
)
_SINCE_3 = (
    "CREATE TABLE IF NOT EXISTS sums (one INTEGER PRIMARY KEY CHECK (one = 1), charter BLOB NOT NULL, helper_ca TEXT)",
)
_SINCE_4 = (
    "CREATE TABLE IF NOT EXISTS evaluation (one INTEGER PRIMARY KEY CHECK (one = 1), item INTEGER NOT NULL,"
    " answers INTEGER NOT NULL, last_version INTEGER NOT NULL)",
    "ALTER TABLE messages ADD COLUMN noise INTEGER NOT NULL DEFAULT 0",
)
_SINCE_5 = (
    "ALTER TABLE messages ADD COLUMN ticket TEXT",
    "ALTER TABLE messages ADD COLUMN outcome TEXT",
)
_SINCE_6 = (
    "ALTER TABLE profile ADD COLUMN rating REAL",
    "ALTER TABLE model ADD COLUMN implicit BLOB",
    "ALTER TABLE model ADD COLUMN iteration INTEGER",
)
_SINCE = (_SINCE_1, _SINCE_2, _SINCE_3, _SINCE_4, _SINCE_5, _SINCE_6)
_CHANGES = {version: tuple(chain(*_SINCE[version - 1 :])) for version in range(1, FORMAT)}
"""What brings a file of an earlier format up to date."""


def make_tables(sql: sqlite3.Connection) -> None:
    """Make the tables of a new file, and mark it as a device's; they reach the disk with the first state."""
    marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
    sql.executescript(f"PRAGMA synchronous = OFF; BEGIN; {_SCHEMA} {marks} COMMIT;")


def checked_format(sql: sqlite3.Connection, path: Path) -> int:
    """The format of a file, once it is sure to be a device's, whole, and one that this version reads."""
    (application,) = sql.execute("PRAGMA application_id").fetchone()
    (version,) = sql.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise BadState(f"{path} is not a device's file; --state names one that `federank device` made.")
    if not 1 <= version <= FORMAT:
        raise BadState(
            f"{path} has format {version}, and this program reads formats 1 to {FORMAT}; use the version of "
            "federank that wrote it, or enrol anew with another --state."
        )
    (check,) = sql.execute("PRAGMA quick_check(1)").fetchone()
    if check != "ok":
        raise sqlite3.DatabaseError(check)
    return int(version)


def bring_up_to_date(sql: sqlite3.Connection) -> None:
    """Change the tables of a file of an earlier version, within a transaction."""
    (version,) = sql.execute("PRAGMA user_version").fetchone()
    if version < FORMAT:  # else another process was quicker
        for change in _CHANGES[version]:
            sql.execute(change)
        sql.execute(f"PRAGMA user_version = {FORMAT}")
