"""Sums in the store: a round's offer, its sum of shares so far, who stands, and in the end what is published of it.

A share is added to its round's sum and its bytes are dropped in one transaction, together with the row that says so: a
share is in the sum once or not at all, whatever is killed. The set is fixed by the round being closed and every upload
of it being prepared: from then on nothing can change it.

An upload that is left out is counted with its reason in the same transaction, and its client receives it when it asks:

    unopened         the helper could not open it, or its parts do not belong together
    norm-too-large   its norm proof failed: its norm may exceed the bound
    copied           another upload of the round has its id
    malformed        it has another form than the round's uploads
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from federank.secagg.exchange import decode_reports
from federank.secagg.ring import RingVector, ring_bytes, ring_from
from federank.secagg.round_config import config_of_offer
from federank.secagg.upload import Report
from federank.service.server.store.database import Connection, StoreAway
from federank.service.server.store.grants import uncharge
from federank.service.server.store.queries import count_refusals, discard_round

COUNTED, UNOPENED, NORM_TOO_LARGE, COPIED, MALFORMED = "counted", "unopened", "norm-too-large", "copied", "malformed"


class Prepared(NamedTuple):
    """An upload that both servers have looked at, and what came of it."""

    ticket: bytes
    report: bytes
    identifier: bytes
    outcome: str

    @property
    def counts(self) -> bool:
        """Whether it is in the sum."""
        return self.outcome == COUNTED


class SumRow(NamedTuple):
    """What is kept of a round of sums."""

    offer: bytes
    members: bytes  # ids of the reports in the sum, ascending; empty until the round is aggregated
    helper_record: bytes
    record: bytes


def put_offer(connection: Connection, number: int, offer: bytes, length: int) -> None:
    """Keep the offer of a round that is about to open; the sum begins at zero."""
    connection.run(
        "INSERT INTO sums (round, offer, total, members, helper_sum, helper_record, noisy, record)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (round) DO NOTHING",
        *(number, offer, bytes(4 * length), b"", b"", b"", b"", b""),
    )


def abandon_unopened(connection: Connection, config: str) -> None:
    """End rounds of an earlier season that were offered and never opened: their numbers are used up."""
    with connection.transaction():
        rows = connection.all(
            "SELECT s.round, s.offer FROM sums s LEFT JOIN rounds r ON r.number = s.round WHERE r.number IS NULL"
        )
        for number, offer in rows:
            if config_of_offer(bytes(offer)) != config:
                connection.run("INSERT INTO rounds (number, version, state) VALUES (?, 0, 'abandoned')", int(number))
                connection.run("UPDATE tallies SET abandoned = abandoned + 1")


def renew_offer(connection: Connection, number: int, offer: bytes) -> None:
    """Keep the same offer under another signature."""
    connection.run("UPDATE sums SET offer = ? WHERE round = ?", offer, number)


def sum_row(connection: Connection, number: int) -> SumRow | None:
    """A round of sums."""
    row = connection.one("SELECT offer, members, helper_record, record FROM sums WHERE round = ?", number)
    return None if row is None else SumRow(*map(bytes, row))


def unprepared(connection: Connection, number: int, most: int) -> list[tuple[bytes, bytes]]:
    """Tickets and bytes of uploads that the helper has not been asked about, at most this many."""
    # The tickets first: a database that sorts rows with their bytes would read those of all that wait.
    tickets = connection.all(
        "SELECT u.ticket FROM uploads u LEFT JOIN reports r ON r.ticket = u.ticket"
        " WHERE u.round = ? AND r.ticket IS NULL ORDER BY u.ticket LIMIT ?",
        number,
        most,
    )
    bodies = [(ticket, connection.one("SELECT body FROM uploads WHERE ticket = ?", ticket)) for (ticket,) in tickets]
    return [(bytes(ticket), bytes(row[0])) for ticket, row in bodies if row is not None]


def add_prepared(connection: Connection, number: int, prepared: list[Prepared], shares: RingVector) -> None:
    """Add the shares of those that count to their round's sum, and drop the bytes of all; once, or not at all."""
    with connection.transaction():
        total = connection.value(f"SELECT total FROM sums WHERE round = ?{connection.update_lock()}", number)
        if total is None:
            raise StoreAway(f"Round {number} has no sum; it was never offered.")
        for one in prepared:
            if not connection.run(
                "INSERT INTO reports (ticket, round, identifier, report, stands) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                *(one.ticket, number, one.identifier if one.counts else one.ticket, one.report, int(one.counts)),
            ):
                raise StoreAway(f"An upload of round {number} was prepared by someone else; look again.")
            connection.run("UPDATE uploads SET body = ?, outcome = ? WHERE ticket = ?", b"", one.outcome, one.ticket)
        count_refusals(connection, number, Counter(one.outcome for one in prepared if not one.counts))
        connection.run(
            "UPDATE sums SET total = ? WHERE round = ?", ring_bytes(ring_from(bytes(total)) + shares), number
        )


def known_identifiers(connection: Connection, number: int) -> set[bytes]:
    """The ids of the reports that stand so far."""
    rows = connection.all("SELECT identifier FROM reports WHERE round = ? AND stands = 1", number)
    return {bytes(row[0]) for row in rows}


def standing_reports(connection: Connection, number: int, *, is_checked: bool) -> list[Report]:
    """The reports that stand, in the order of their ids."""
    rows = connection.all("SELECT report FROM reports WHERE round = ? AND stands = 1 ORDER BY identifier", number)
    return [report for row in rows for report in decode_reports(bytes(row[0]), is_checked=is_checked)]


def total_of(connection: Connection, number: int) -> RingVector:
    """The sum of shares, without noise: the leader's alone."""
    return ring_from(bytes(connection.value("SELECT total FROM sums WHERE round = ?", number) or b""))


def put_answer(connection: Connection, number: int, record: bytes, total: RingVector) -> None:
    """Keep the helper's answer."""
    connection.run(
        "UPDATE sums SET helper_record = ?, helper_sum = ? WHERE round = ?", record, ring_bytes(total), number
    )


def put_discarded(connection: Connection, number: int, record: bytes) -> None:
    """Keep the helper's record that a round has ended without a sum; it is not charged to anyone who was invited to
    it.
    """
    with connection.transaction():
        if connection.run(
            "UPDATE sums SET helper_record = ? WHERE round = ? AND LENGTH(helper_record) = 0", record, number
        ):
            uncharge(connection, number)


def unconfirmed_before(connection: Connection, number: int) -> int | None:
    """The round before this one, if it was discarded and the helper's record of that is still missing."""
    row = connection.one(
        "SELECT s.round, LENGTH(s.helper_record), r.state FROM sums s JOIN rounds r ON r.number = s.round"
        " WHERE s.round < ? ORDER BY s.round DESC LIMIT 1",
        number,
    )
    return int(row[0]) if row is not None and row[1] == 0 and row[2] == "abandoned" else None


def put_record(connection: Connection, number: int, record: bytes, noisy: bytes, members: bytes) -> None:
    """Publish a round, within the transaction that ends it; what is not needed any more goes.

    Without a noisy sum to publish, the helper's goes too.
    """
    connection.run(
        "UPDATE sums SET record = ?, noisy = ?, members = ?, total = ? WHERE round = ?",
        *(record, noisy, members, b"", number),
    )
    if not noisy:
        connection.run("UPDATE sums SET helper_sum = ? WHERE round = ?", b"", number)
    connection.run("DELETE FROM reports WHERE round = ?", number)


def published_sums(connection: Connection, number: int) -> tuple[bytes, bytes]:
    """The leader's noisy sum of shares and the helper's noisy sum of masks, of a round that was aggregated."""
    row = connection.one("SELECT noisy, helper_sum FROM sums WHERE round = ?", number)
    return (b"", b"") if row is None else (bytes(row[0]), bytes(row[1]))


class ListedRound(NamedTuple):
    """A round that was offered, or a jump after a restore."""

    round: int
    state: str
    version: int
    config: str | None  # digest of its season's config; None of a jump


def listed_rounds(connection: Connection, first: int, most: int) -> list[ListedRound]:
    """Every round that was offered, and jumps after a restore, from a number on."""
    rows = connection.all(
        "SELECT s.round, COALESCE(r.state, 'open'), COALESCE(r.version, 0), s.offer FROM sums s"
        " LEFT JOIN rounds r ON r.number = s.round WHERE s.round >= ?"
        " UNION ALL SELECT number, state, version, NULL FROM rounds WHERE state = 'skipped' AND number >= ?"
        " ORDER BY 1 LIMIT ?",
        first,
        first,
        most,
    )
    return [
        ListedRound(int(number), str(state), int(version), None if offer is None else config_of_offer(bytes(offer)))
        for number, state, version, offer in rows
    ]


def abandon_closed(connection: Connection, number: int, record: bytes) -> None:
    """End a closed round without an aggregate: its uploads' bytes and its sum go."""
    with connection.transaction():
        discard_round(connection, number)
        put_record(connection, number, record, b"", b"")
