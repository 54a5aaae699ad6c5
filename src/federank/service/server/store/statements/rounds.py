"""Rounds: how they begin, and how they end with enough reports or are abandoned.

Closing a round changes its row from `open` to `closed`, and waits for uploads on their way in (they hold the row). What
is folded is versions.py's business.
"""

from __future__ import annotations

from typing import NamedTuple

from federank.service.server.store.database import Connection
from federank.service.server.store.ending import note_end
from federank.service.server.store.statements.facts import put_fact


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


def close_round(connection: Connection, number: int, minimum: int, *, opens_next: bool = False) -> int | None:
    """End a round: how many reports it has, or None if they are too few and it is abandoned.

    A buffer's next round is opened in the same moment (`opens_next`): there is always one to put an Update into.
    """
    with connection.transaction():
        if opens_next:
            connection.run(
                "INSERT INTO rounds (number, version, state) SELECT number + 1, version, 'open' FROM rounds"
                " WHERE number = ? AND state = 'open' ON CONFLICT (number) DO NOTHING",
                number,
            )
            connection.run(
                "INSERT INTO grants (round, granted) VALUES (?, 0) ON CONFLICT (round) DO NOTHING", number + 1
            )
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


def ask_to_close(connection: Connection, number: int, minimum: int) -> int | None:
    """Ask the leader to end a round now; if it has fewer reports than `minimum`, how many it has."""
    reports = count_reports(connection, number)
    if reports < minimum:
        return reports
    put_fact(connection, "close", number)
    return None
