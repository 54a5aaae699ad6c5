"""The tables of a device's file, and the number of their format."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from federank.errors import BadState

FORMAT = 8
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
    items INTEGER NOT NULL, noise INTEGER NOT NULL DEFAULT 0);
CREATE TABLE uploads (number INTEGER PRIMARY KEY, ticket TEXT NOT NULL, round INTEGER NOT NULL, message INTEGER,
    offer TEXT, outcome TEXT, ended REAL);
CREATE TABLE sums (one INTEGER PRIMARY KEY CHECK (one = 1), charter BLOB NOT NULL, helper_ca TEXT);
CREATE TABLE evaluation (one INTEGER PRIMARY KEY CHECK (one = 1), item INTEGER NOT NULL, answers INTEGER NOT NULL,
    last_version INTEGER NOT NULL);
"""


def make_tables(sql: sqlite3.Connection) -> None:
    """Make the tables of a new file, and mark it as a device's; they reach the disk with the first state."""
    marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
    sql.executescript(f"PRAGMA synchronous = OFF; BEGIN; {_SCHEMA} {marks} COMMIT;")


def check_format(sql: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a device's, not whole, or of another format."""
    (application,) = sql.execute("PRAGMA application_id").fetchone()
    (version,) = sql.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise BadState(f"{path} is not a device's file; --state names one that `federank device` made.")
    if version != FORMAT:
        raise BadState(
            f"{path} has format {version}, and this program reads format {FORMAT}; use the version of "
            "federank that wrote it, or enrol anew with another --state."
        )
    (check,) = sql.execute("PRAGMA quick_check(1)").fetchone()
    if check != "ok":
        raise sqlite3.DatabaseError(check)
