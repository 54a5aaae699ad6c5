"""Grants: which clients are given a ticket of a round, how many of them, and how often over a lifetime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from federank.service.server.store.database import Connection
from federank.service.server.tickets import Ticket, use_of


class Granted(NamedTuple):
    """What became of those who asked for a ticket."""

    tickets: list[Ticket]  # may be handed out
    used: set[bytes]  # uses of those whose client has reported already
    spent: set[Ticket]  # whose client has been invited as often as can be
    held: bool = False  # whether places were left to clients of other workers that were asked less often


def grant(
    connection: Connection,
    number: int,
    tickets: dict[Ticket, str],
    again: set[Ticket],
    most: int,
    invitations: int | None = None,
    version: int | None = None,
    worker: str = "",
) -> Granted:
    """Which of these clients' tickets may be handed out, no more than `most` in a round; all are of a `version`.

    Those in `again` were handed out before and are not counted twice. A round that is no longer open has none to give,
    whatever the worker that asks has seen so far; nor has one that is of another version. With `invitations` a client
    is invited to this many rounds in a season, counted here, and those who were invited least often come first; to be
    given the ticket of the same round again is no other invitation. Places are left for clients that wait
    at other workers and were invited less often.
    """
    used = used_tickets(connection, tickets)
    lock = f"{connection.update_lock()} OF g" if connection.update_lock() else ""
    row = connection.one(
        "SELECT g.granted, r.version FROM grants g JOIN rounds r ON r.number = g.round"
        f" WHERE g.round = ? AND r.state = 'open'{lock}",
        number,
    )
    if row is None or version not in (None, int(row[1])):
        return Granted([], used, set())
    spent: set[Ticket] = set()
    counts: dict[Ticket, int] = {}
    if invitations is not None:
        known = _invitations(connection, tickets.values())
        counted = {ticket: known.get(client, (0, -1)) for ticket, client in tickets.items()}
        counts = {ticket: count for ticket, (count, _) in counted.items()}
        again = {ticket for ticket, (_, last) in counted.items() if last == number}
        spent = {ticket for ticket, count in counts.items() if count >= invitations} - again
    fresh = [ticket for ticket in tickets if ticket.use not in used and ticket not in again and ticket not in spent]
    fresh.sort(key=lambda ticket: counts.get(ticket, 0))
    places = max(0, most - int(row[0]))
    others = {} if invitations is None else waiting_elsewhere(connection, worker)
    granted = 0
    for ticket in fresh[:places]:
        before = sum(count for level, count in others.items() if level < counts.get(ticket, 0))
        if granted + before >= places:
            break
        granted += 1
    held = granted < min(len(fresh), places)
    if granted:
        connection.run("UPDATE grants SET granted = granted + ? WHERE round = ?", granted, number)
    if invitations is not None:
        change = "UPDATE clients SET invitations = invitations + 1, invited_to = ? WHERE client IN"
        for marks, part in _in_parts([tickets[ticket] for ticket in fresh[:granted]]):
            connection.run(f"{change} {marks}", number, *part)
    repeated = [ticket for ticket in tickets if ticket.use not in used and ticket in again]
    return Granted(fresh[:granted] + repeated, used, spent, held)


WAITING_SECONDS = 3.0
"""How long a worker's note of who waits is believed."""
_NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)",
}


def note_waiting(connection: Connection, worker: str, clients: Iterable[str]) -> dict[str, int]:
    """Note how many clients wait at a worker, within the caller's transaction; how often each was invited."""
    known = {client: count for client, (count, _) in _invitations(connection, clients).items()}
    levels: dict[int, int] = {}
    for count in known.values():
        levels[count] = levels.get(count, 0) + 1
    connection.run("DELETE FROM waiting WHERE worker = ?", worker)
    for level, count in sorted(levels.items()):
        connection.run(
            f"INSERT INTO waiting (worker, level, count, seen) VALUES (?, ?, ?, {_NOW[connection.dialect]})",
            *(worker, level, count),
        )
    return known


def waiting_elsewhere(connection: Connection, worker: str) -> dict[int, int]:
    """How many clients wait at other workers, by how often they were invited."""
    rows = connection.all(
        f"SELECT level, SUM(count) FROM waiting WHERE worker <> ? AND seen > {_NOW[connection.dialect]} - ?"
        " GROUP BY level",
        *(worker, WAITING_SECONDS),
    )
    return {int(level): int(count) for level, count in rows}


def used_tickets(connection: Connection, tickets: Iterable[Ticket]) -> set[bytes]:
    """The uses of those tickets whose client has reported in their round."""
    used: set[bytes] = set()
    for marks, part in _in_parts(ticket.use for ticket in tickets):
        used |= {bytes(row[0]) for row in connection.all(f"SELECT ticket FROM uploads WHERE ticket IN {marks}", *part)}
    return used


def _invitations(connection: Connection, clients: Iterable[str]) -> dict[str, tuple[int, int]]:
    """How often these clients were invited, and to which round last."""
    known: dict[str, tuple[int, int]] = {}
    for marks, part in _in_parts(clients):
        rows = connection.all(f"SELECT client, invitations, invited_to FROM clients WHERE client IN {marks}", *part)
        known |= {str(client): (int(count), int(last)) for client, count, last in rows}
    return known


def uncharge(connection: Connection, number: int) -> None:
    """Give the clients that were invited to this round last their invitation back, within the caller's transaction."""
    connection.run(
        "UPDATE clients SET invitations = invitations - 1, invited_to = -1 WHERE invited_to = ? AND invitations > 0",
        number,
    )


def uncharge_absent(connection: Connection, number: int, ticket_key: bytes) -> None:
    """Give back the invitations whose upload did not come in time, within the transaction that ends the round."""
    invited = [str(client) for (client,) in connection.all("SELECT client FROM clients WHERE invited_to = ?", number)]
    uses = {use_of(ticket_key, client, number): client for client in invited}
    rows = connection.all("SELECT ticket FROM uploads WHERE round = ?", number)
    arrived = {bytes(ticket) for (ticket,) in rows}
    change = "UPDATE clients SET invitations = invitations - 1, invited_to = -1 WHERE invitations > 0 AND client IN"
    for marks, part in _in_parts(client for use, client in uses.items() if use not in arrived):
        connection.run(f"{change} {marks}", *part)


def _in_parts(values: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """As many values at a time as a statement may name, and their marks in it."""
    everything = list(values)
    for start in range(0, len(everything), 200):
        part = everything[start : start + 200]
        yield f"({', '.join('?' * len(part))})", part
