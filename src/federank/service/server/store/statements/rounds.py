"""Rounds: how they begin, and how they end with enough reports or are abandoned.

Closing a round changes its row from `open` to `closed`, and waits for uploads on their way in (they hold the row). What
is folded is versions.py's business.
"""

from __future__ import annotations

from typing import NamedTuple

from federank.service.server.store.database import Connection
from federank.service.server.store.ending import note_end
from federank.service.server.store.recent import note_refused_aggregate
from federank.service.server.store.statements.facts import get_fact, put_fact


class Newest(NamedTuple):
    """The round that was begun last."""

    number: int
    version: int
    state: str
    reports: int
    granted: int


def newest_round(connection: Connection) -> Newest | None:
    """The round that was begun last, open or not."""
    row = connection.one("SELECT number, version, state FROM rounds ORDER BY number DESC LIMIT 1")
    if row is None:
        return None
    number = int(row[0])
    granted = connection.one("SELECT granted FROM grants WHERE round = ?", number)
    return Newest(
        number, int(row[1]), str(row[2]), count_reports(connection, number), int(granted[0]) if granted else 0
    )


def count_reports(connection: Connection, number: int) -> int:
    """How many Updates a round has."""
    row = connection.one("SELECT COUNT(*) FROM uploads WHERE round = ?", number)
    return int(row[0]) if row else 0


def open_round(connection: Connection, number: int, version: int) -> None:
    """Begin a round; nothing happens if it was begun already."""
    with connection.transaction():
        connection.run(
            "INSERT INTO rounds (number, version, state) VALUES (?, ?, 'open') ON CONFLICT (number) DO NOTHING",
            number,
            version,
        )
        connection.run("INSERT INTO grants (round, granted) VALUES (?, 0) ON CONFLICT (round) DO NOTHING", number)


def state_of_round(connection: Connection, number: int) -> str | None:
    """Whether a round is open, closed, folded or abandoned; None if it has not begun."""
    row = connection.one("SELECT state FROM rounds WHERE number = ?", number)
    return None if row is None else str(row[0])


def next_round(connection: Connection) -> int:
    """The round to go on with: the first that has not ended, or else the one after the last."""
    row = connection.one("SELECT MIN(number) FROM rounds WHERE state IN ('open', 'closed')")
    if row is not None and row[0] is not None:
        return int(row[0])
    row = connection.one("SELECT COALESCE(MAX(number) + 1, 0) FROM rounds")
    return int(row[0]) if row else 0


def close_round(connection: Connection, number: int, minimum: int) -> int | None:
    """End a round: how many reports it has, or None if they are too few and it is abandoned."""
    with connection.transaction():
        closed = connection.run("UPDATE rounds SET state = 'closed' WHERE number = ? AND state = 'open'", number)
        if not closed and state_of_round(connection, number) == "abandoned":
            return None  # the operator has gone back to an earlier version
        reports = count_reports(connection, number)
        if reports >= minimum:
            return reports
        note_end(connection, number)
        connection.run("UPDATE rounds SET state = 'abandoned', reports = ? WHERE number = ?", reports, number)
        connection.run("UPDATE uploads SET body = ? WHERE round = ?", b"", number)
        connection.run("UPDATE tallies SET abandoned = abandoned + 1")
        return None


def abandon_closed(connection: Connection, number: int) -> None:
    """End a closed round without a new version, within the caller's transaction: the bytes of its uploads go."""
    note_end(connection, number)
    abandoned = connection.run(
        "UPDATE rounds SET state = 'abandoned',"
        " reports = (SELECT COUNT(*) FROM uploads WHERE round = rounds.number)"
        " WHERE number = ? AND state = 'closed'",
        number,
    )
    if abandoned:
        connection.run("UPDATE tallies SET abandoned = abandoned + 1")
    connection.run("UPDATE uploads SET body = ? WHERE round = ?", b"", number)


def note_rejected(connection: Connection, number: int, reason: str) -> None:
    """Count an aggregate that was not applied, within the caller's transaction; the operator sees the last reason."""
    count = int((get_fact(connection, "rejected") or {}).get("count", 0))
    put_fact(connection, "rejected", {"count": count + 1, "round": number, "reason": reason})
    note_refused_aggregate(connection, number)


def ask_to_close(connection: Connection, number: int) -> None:
    """Ask the leader to end a round now."""
    put_fact(connection, "close", number)
