"""Uploads: how one is kept, once, and how a round's are read to be added up.

An upload is one row, inserted while its round is open. Its ticket is the row's key, so it cannot be there twice; its
device and the round that takes it in are another key, so that a device has one voice in a fold. A round's Updates are
added up in the order of their digests, which is the same whoever arrived first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from federank.service.server.store.database import Connection, StoreAway
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


def outcome_of(connection: Connection, use: bytes) -> tuple[str, str] | None:
    """What became of the upload of a ticket, as far as it was looked at, and the state of its round."""
    row = connection.one(
        "SELECT u.outcome, r.state FROM uploads u JOIN rounds r ON r.number = u.round WHERE u.ticket = ?", use
    )
    return None if row is None else (str(row[0]), str(row[1]))


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
