"""Grants: which devices are given a ticket of a round, how many of them, and how often in a life."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from federank.service.server.store.database import Connection
from federank.service.server.tickets import Ticket


class Granted(NamedTuple):
    """What became of those who asked for a ticket."""

    tickets: list[Ticket]  # may be handed out
    used: set[bytes]  # uses of those whose device has reported already
    spent: set[Ticket]  # whose device has been invited as often as can be


def grant(
    connection: Connection,
    number: int,
    tickets: dict[Ticket, str],
    again: set[Ticket],
    most: int,
    invitations: int | None = None,
    version: int | None = None,
) -> Granted:
    """Which of these devices' tickets may be handed out, no more than `most` in a round; all are of a `version`.

    Those in `again` were handed out before and are not counted twice. A round that is no longer open has none to give,
    whatever the worker that asks has seen so far; nor has one that has gone on to another version since, because the
    catalogue has grown. With `invitations` a device is invited to so many rounds in its life,
    counted here, and those who were invited least often come first; to be given the ticket of the same round again is
    no other invitation.
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
        counted = {ticket: known.get(device, (0, -1)) for ticket, device in tickets.items()}
        counts = {ticket: count for ticket, (count, _) in counted.items()}
        again = {ticket for ticket, (_, last) in counted.items() if last == number}
        spent = {ticket for ticket, count in counts.items() if count >= invitations} - again
    fresh = [ticket for ticket in tickets if ticket.use not in used and ticket not in again and ticket not in spent]
    fresh.sort(key=lambda ticket: counts.get(ticket, 0))
    room = min(len(fresh), max(0, most - int(row[0])))
    if room:
        connection.run("UPDATE grants SET granted = granted + ? WHERE round = ?", room, number)
    if invitations is not None:
        _invite(connection, number, [tickets[ticket] for ticket in fresh[:room]])
    repeated = [ticket for ticket in tickets if ticket.use not in used and ticket in again]
    return Granted(fresh[:room] + repeated, used, spent)


def used_tickets(connection: Connection, tickets: Iterable[Ticket]) -> set[bytes]:
    """The uses of those tickets whose device has reported in their round."""
    used: set[bytes] = set()
    for part in _in_parts(ticket.use for ticket in tickets):
        marks = ", ".join("?" * len(part))
        used |= {
            bytes(row[0]) for row in connection.all(f"SELECT ticket FROM uploads WHERE ticket IN ({marks})", *part)
        }
    return used


def _invitations(connection: Connection, devices: Iterable[str]) -> dict[str, tuple[int, int]]:
    """How often these devices were invited, and to which round last."""
    found: dict[str, tuple[int, int]] = {}
    for part in _in_parts(devices):
        marks = ", ".join("?" * len(part))
        query = f"SELECT device, invitations, invited_to FROM devices WHERE device IN ({marks})"
        found |= {str(device): (int(count), int(last)) for device, count, last in connection.all(query, *part)}
    return found


def _invite(connection: Connection, number: int, devices: list[str]) -> None:
    """Count one more invitation of each of these devices."""
    for part in _in_parts(devices):
        marks = ", ".join("?" * len(part))
        connection.run(
            f"UPDATE devices SET invitations = invitations + 1, invited_to = ? WHERE device IN ({marks})", number, *part
        )


def uncharge(connection: Connection, number: int) -> None:
    """Give the devices that were invited to this round last their invitation back, within the caller's transaction."""
    connection.run(
        "UPDATE devices SET invitations = invitations - 1, invited_to = -1 WHERE invited_to = ? AND invitations > 0",
        number,
    )


def _in_parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """As many values at a time as a statement may name."""
    everything = list(values)
    for start in range(0, len(everything), 200):
        yield everything[start : start + 200]


def tickets_under_way(connection: Connection) -> int:
    """How many tickets were given out of rounds that have not ended; none is, until the transaction ends."""
    lock = f"{connection.update_lock()} OF g" if connection.update_lock() else ""
    rows = connection.all(
        "SELECT g.granted FROM grants g JOIN rounds r ON r.number = g.round"
        f" WHERE r.state IN ('open', 'closed') ORDER BY g.round{lock}"
    )
    return sum(int(granted) for (granted,) in rows)
