"""The store: every statement that the federation's life consists of, as functions on a connection.

What makes rounds durable and exact is here, and is little:

1. an upload is one row, inserted while its round is open; its ticket is the row's key, so it cannot be there twice, and
   its device and the round that takes it in are another key, so that a device has one voice in a fold;
2. closing a round changes its row from `open` to `closed`, and waits for uploads on their way in (they hold the row);
3. folding writes the next version and changes `closed` to `folded` in one transaction: both happened, or neither
   (versions.py).

So a crash leaves a round open, closed or folded, and whoever comes next goes on from there. A round's Updates are added
up in the order of their digests, which is the same whoever arrived first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from federank.service.server.store.database import Connection, StoreAway
from federank.service.server.store.ending import note_end
from federank.service.server.tickets import Ticket, use_of

Outcome = Literal["stored", "again", "repeated", "reported", "late", "gone", "banned"]


class Upload(NamedTuple):
    """An accepted upload on its way into the store."""

    device: str
    ticket: Ticket
    ticket_key: bytes
    kind: str
    digest: bytes
    body: bytes
    clipped: int


class Newest(NamedTuple):
    """The round that was begun last."""

    number: int
    version: int
    state: str
    reports: int
    granted: int


def get_fact(connection: Connection, name: str) -> Any:
    """What is kept under a name; None where nothing is."""
    content = get_content(connection, name)
    return None if content is None else json.loads(content)


def put_fact(connection: Connection, name: str, value: Any) -> None:
    """Keep something under a name."""
    connection.run(
        "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        json.dumps(value).encode(),
    )


def get_content(connection: Connection, name: str) -> bytes | None:
    """The bytes that are kept under a name."""
    row = connection.one("SELECT value FROM facts WHERE name = ?", name)
    return None if row is None else bytes(row[0])


def put_content(connection: Connection, name: str, content: bytes) -> None:
    """Keep bytes under a name that is not used yet."""
    connection.run("INSERT INTO facts (name, value) VALUES (?, ?)", name, content)


def replace_content(connection: Connection, name: str, content: bytes) -> None:
    """Keep other bytes under a name that is used."""
    connection.run("UPDATE facts SET value = ? WHERE name = ?", content, name)


def lock_facts(connection: Connection) -> None:
    """Keep others from writing facts until the transaction ends; with SQLite a transaction does that by itself."""
    if connection.dialect == "postgresql":
        connection.run("LOCK TABLE facts IN EXCLUSIVE MODE")


def enrol(connection: Connection, device: str, token_hash: bytes, code: bytes | None = None) -> bool:
    """A new device, which uses up the invitation with this hash if one is asked for; whether there was one."""
    if code is not None and not connection.run("DELETE FROM invites WHERE code = ?", code):
        return False
    connection.run("INSERT INTO devices (device, token) VALUES (?, ?)", device, token_hash)
    connection.run("UPDATE tallies SET devices = devices + 1")
    return True


def invite(connection: Connection, codes: Iterable[bytes]) -> None:
    """Keep the hashes of new invitations."""
    for code in codes:
        connection.run("INSERT INTO invites (code) VALUES (?)", code)


def leave(connection: Connection, device: str) -> None:
    """Forget a device; its token dies. One that is banned stays known."""
    if connection.run("DELETE FROM devices WHERE device = ? AND banned = 0", device):
        connection.run("UPDATE tallies SET devices = devices - 1, departures = departures + 1")


def ban(connection: Connection, device: str) -> bool | None:
    """Take no Update of a device any more; whether it was not banned before, None if there is no such device."""
    if connection.run("UPDATE devices SET banned = 1 WHERE device = ? AND banned = 0", device):
        connection.run("UPDATE tallies SET devices = devices - 1, departures = departures + 1")
        return True
    return None if connection.one("SELECT 1 FROM devices WHERE device = ?", device) is None else False


def withdraw(connection: Connection, device: str, ticket_key: bytes) -> None:
    """Take a device's Update out of the round that is open, where it has one; one that is closed is being folded.

    In a federation of sums a share that was prepared is in its round's sum already, and stays there.
    """
    now = connection.one(f"SELECT number FROM rounds WHERE state = 'open'{connection.share_lock()}")
    if now is not None:
        connection.run(
            "DELETE FROM uploads WHERE reporter = ? AND ticket NOT IN (SELECT ticket FROM reports)",
            use_of(ticket_key, device, int(now[0])),
        )


class Tallies(NamedTuple):
    """What is counted as it happens, because to count it anew would take longer the more there is."""

    devices: int
    departures: int
    abandoned: int


def tallies(connection: Connection) -> Tallies:
    """How many devices there are, how many have left, how many rounds were abandoned."""
    row = connection.one("SELECT devices, departures, abandoned FROM tallies")
    assert row is not None, "the migration that makes the table makes its row"
    return Tallies(*map(int, row))


class Owner(NamedTuple):
    """Whose token it is."""

    device: str
    banned: bool


def device_of(connection: Connection, token_hash: bytes) -> Owner | None:
    """Whose token this is."""
    row = connection.one("SELECT device, banned FROM devices WHERE token = ?", token_hash)
    return None if row is None else Owner(str(row[0]), bool(row[1]))


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


def tickets_under_way(connection: Connection) -> int:
    """How many tickets were given out of rounds that have not ended; none is, until the transaction ends."""
    lock = f"{connection.update_lock()} OF g" if connection.update_lock() else ""
    rows = connection.all(
        "SELECT g.granted FROM grants g JOIN rounds r ON r.number = g.round"
        f" WHERE r.state IN ('open', 'closed') ORDER BY g.round{lock}"
    )
    return sum(int(granted) for (granted,) in rows)


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


def _in_parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """As many values at a time as a statement may name."""
    everything = list(values)
    for start in range(0, len(everything), 200):
        yield everything[start : start + 200]


def used_tickets(connection: Connection, tickets: Iterable[Ticket]) -> set[bytes]:
    """Those of these tickets whose device has reported in their round, with this ticket or with an older one."""
    used: set[bytes] = set()
    for part in _in_parts(ticket.use for ticket in tickets):
        marks = ", ".join("?" * len(part))
        used |= {
            bytes(row[0]) for row in connection.all(f"SELECT reporter FROM uploads WHERE reporter IN ({marks})", *part)
        }
    return used


def keep_upload(connection: Connection, upload: Upload, staleness: int | None) -> tuple[Outcome, int]:
    """Store an upload in the open round, within the caller's transaction; what became of it, and its round. Idempotent.

    Without `staleness` the ticket must be of the open round and its version; with it, of a version at most so many
    behind.
    """
    known = connection.one("SELECT digest, round FROM uploads WHERE ticket = ?", upload.ticket.use)
    if known is not None:
        return ("again" if bytes(known[0]) == upload.digest else "repeated"), int(known[1])
    # The lock keeps the round from being closed before this upload is in.
    open_now = f"SELECT number, version FROM rounds WHERE state = 'open'{connection.share_lock()}"
    now = connection.one(open_now)
    if now is None and staleness is not None:
        now = connection.one(open_now)  # who waited for the lock of a closing round sees its successor only now
    if now is None:
        return "late", upload.ticket.round_number
    number, version = int(now[0]), int(now[1])
    ticket = upload.ticket
    exact = (number, version) == (ticket.round_number, ticket.version)
    if not (exact if staleness is None else version - ticket.version <= staleness):
        return "late", upload.ticket.round_number
    inserted = connection.run(
        "INSERT INTO uploads (ticket, reporter, round, kind, digest, size, clipped, body)"
        " SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM devices WHERE device = ? AND banned = 0)"
        " ON CONFLICT DO NOTHING",
        upload.ticket.use,
        use_of(upload.ticket_key, upload.device, number),
        number,
        upload.kind,
        upload.digest,
        len(upload.body),
        upload.clipped,
        upload.body,
        upload.device,
    )
    return ("stored" if inserted else _why_not(connection, upload)), number


def _why_not(connection: Connection, upload: Upload) -> Outcome:
    """Why an upload that came in time was not stored."""
    known = connection.one("SELECT digest FROM uploads WHERE ticket = ?", upload.ticket.use)
    if known is not None:
        return "again" if bytes(known[0]) == upload.digest else "repeated"
    row = connection.one("SELECT banned FROM devices WHERE device = ?", upload.device)
    return "gone" if row is None else "banned" if row[0] else "reported"


def outcome_of(connection: Connection, use: bytes) -> tuple[str, str] | None:
    """What became of the upload of a ticket, as far as it was looked at, and the state of its round."""
    row = connection.one(
        "SELECT u.outcome, r.state FROM uploads u JOIN rounds r ON r.number = u.round WHERE u.ticket = ?", use
    )
    return None if row is None else (str(row[0]), str(row[1]))


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


def bodies_in_order(connection: Connection, number: int) -> Iterator[tuple[str, bytes]]:
    """A round's uploads, kind and bytes, in the order in which they are added up: by their digests."""
    tickets = connection.all("SELECT ticket FROM uploads WHERE round = ? ORDER BY digest, ticket", number)
    for (ticket,) in tickets:
        row = connection.one("SELECT kind, body FROM uploads WHERE ticket = ?", ticket)
        if row is None:
            raise StoreAway("An upload has left the store while its round was folded.")
        yield str(row[0]), bytes(row[1])


def count_refusals(connection: Connection, number: int, counts: dict[str, int]) -> None:
    """Add to the counts of refused uploads."""
    for reason, count in sorted(counts.items()):
        connection.run(
            "INSERT INTO refusals (round, reason, count) VALUES (?, ?, ?)"
            " ON CONFLICT (round, reason) DO UPDATE SET count = refusals.count + excluded.count",
            number,
            reason,
            count,
        )
