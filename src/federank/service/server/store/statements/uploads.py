"""Uploads: how one is kept, once, and how a round's are read to be added up.

An upload is one row, inserted while its round is open. Its key is the use of its ticket: one for each device and round,
so that a device has one voice in a fold. A round's Updates are added up in the order of their digests, which is the
same whoever arrived first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from federank.service.server.store.database import Connection, StoreAway
from federank.service.server.tickets import Ticket, use_of

Outcome = Literal["stored", "again", "repeated", "late", "gone", "banned"]


class Upload(NamedTuple):
    """An accepted upload on its way into the store."""

    device: str
    ticket: Ticket
    kind: str
    digest: bytes
    body: bytes
    clipped: int


def keep_upload(connection: Connection, upload: Upload) -> tuple[Outcome, int]:
    """Store an upload in the open round, within the caller's transaction; what became of it, and its round. Idempotent.

    The ticket must be of the open round and its version.
    """
    known = connection.one("SELECT digest, round FROM uploads WHERE ticket = ?", upload.ticket.use)
    if known is not None:
        return ("again" if bytes(known[0]) == upload.digest else "repeated"), int(known[1])
    # The lock keeps the round from being closed before this upload is in.
    now = connection.one(f"SELECT number, version FROM rounds WHERE state = 'open'{connection.share_lock()}")
    number = upload.ticket.round_number
    if now is None or (int(now[0]), int(now[1])) != (number, upload.ticket.version):
        return "late", number
    inserted = connection.run(
        "INSERT INTO uploads (ticket, round, kind, digest, size, clipped, body)"
        " SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM devices WHERE device = ? AND banned = 0)"
        " ON CONFLICT DO NOTHING",
        upload.ticket.use,
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
    return "gone" if row is None else "banned"


def withdraw(connection: Connection, device: str, ticket_key: bytes) -> None:
    """Take a device's Update out of the round that is open, where it has one; one that is closed is being folded.

    In a federation of sums a share that was prepared is in its round's sum already, and stays there.
    """
    now = connection.one(f"SELECT number FROM rounds WHERE state = 'open'{connection.share_lock()}")
    if now is not None:
        connection.run(
            "DELETE FROM uploads WHERE ticket = ? AND ticket NOT IN (SELECT ticket FROM reports)",
            use_of(ticket_key, device, int(now[0])),
        )


class Fate(NamedTuple):
    """What is known of an upload: why it was left out (if it was), its round's state, and the helper's record of it."""

    outcome: str
    state: str
    is_confirmed: bool  # under secure aggregation: the helper has ended the round too
    helper_record: bytes  # under secure aggregation, and once the helper has sent it


def outcome_of(connection: Connection, use: bytes) -> Fate | None:
    """What became of the upload of a ticket, and of its round.

    The helper ends a round before it offers the next one: where there is a later offer, no record of it will come.
    """
    row = connection.one(
        "SELECT u.outcome, r.state, s.round IS NULL OR LENGTH(s.helper_record) > 0"
        " OR EXISTS (SELECT 1 FROM sums WHERE sums.round > s.round), s.helper_record"
        " FROM uploads u JOIN rounds r ON r.number = u.round LEFT JOIN sums s ON s.round = u.round WHERE u.ticket = ?",
        use,
    )
    return None if row is None else Fate(str(row[0]), str(row[1]), bool(row[2]), bytes(row[3] or b""))


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
