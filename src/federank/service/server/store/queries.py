"""Metadata: what is stored under a name, as JSON or as bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from federank.service.server.store.database import Connection, StoreAway
from federank.service.server.tickets import Ticket, use_of


def get_content(connection: Connection, name: str) -> bytes | None:
    """The bytes that are kept under a name; None where nothing is."""
    content = connection.value("SELECT value FROM metadata WHERE name = ?", name)
    return None if content is None else bytes(content)


def put_content(connection: Connection, name: str, content: bytes) -> None:
    """Keep bytes under a name."""
    connection.run(
        "INSERT INTO metadata (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        content,
    )


def get_value(connection: Connection, name: str) -> Any:
    """The same of what is kept as JSON."""
    content = get_content(connection, name)
    return None if content is None else json.loads(content)


def put_value(connection: Connection, name: str, value: Any) -> None:
    """Keep something under a name, as JSON."""
    put_content(connection, name, json.dumps(value).encode())


def lock_metadata(connection: Connection) -> None:
    """Keep others from writing metadata until the transaction ends; with SQLite a transaction does that by itself."""
    if connection.dialect == "postgresql":
        connection.run("LOCK TABLE metadata IN EXCLUSIVE MODE")


# Clients: how they are invited, enrol, are known by their tokens, leave and are banned.


def enrol(
    connection: Connection, client: str, token_hash: bytes, code: bytes | None = None, *, invited_only: bool = False
) -> bool:
    """A new client, which uses up the invitation with this hash; False where one is needed and there is none."""
    invited = code is not None and bool(connection.run("DELETE FROM invites WHERE code = ?", code))
    if invited_only and not invited:
        return False
    connection.run("INSERT INTO clients (client, token, invited) VALUES (?, ?, ?)", client, token_hash, int(invited))
    connection.run("UPDATE tallies SET clients = clients + 1")
    return True


def invite(connection: Connection, codes: Iterable[bytes]) -> None:
    """Keep the hashes of new invitations."""
    for code in codes:
        connection.run("INSERT INTO invites (code) VALUES (?)", code)


class Owner(NamedTuple):
    """Whose token it is."""

    client: str
    banned: bool
    invited: bool = False


def owner_of(connection: Connection, token_hash: bytes) -> Owner | None:
    """Whose token this is."""
    row = connection.one("SELECT client, banned, invited FROM clients WHERE token = ?", token_hash)
    return None if row is None else Owner(str(row[0]), bool(row[1]), bool(row[2]))


def leave(connection: Connection, client: str) -> None:
    """Forget a client; its token dies. One that is banned stays known."""
    if connection.run("DELETE FROM clients WHERE client = ? AND banned = 0", client):
        connection.run("UPDATE tallies SET clients = clients - 1, departures = departures + 1")


def ban(connection: Connection, client: str) -> bool | None:
    """Take no Update of a client any more; whether it was not banned before, None if there is no such client."""
    if connection.run("UPDATE clients SET banned = 1 WHERE client = ? AND banned = 0", client):
        connection.run("UPDATE tallies SET clients = clients - 1, departures = departures + 1")
        return True
    return None if connection.value("SELECT 1 FROM clients WHERE client = ?", client) is None else False


class Tallies(NamedTuple):
    """What is counted as it happens, because to count it again would take longer the more there is."""

    clients: int
    departures: int
    abandoned: int


def tallies(connection: Connection) -> Tallies:
    """How many clients there are, how many have left, how many rounds were abandoned."""
    row = connection.one("SELECT clients, departures, abandoned FROM tallies")
    assert row is not None, "the migration that makes the table makes its row"
    return Tallies(*map(int, row))


# Rounds: how they begin, and how they end with enough reports or are abandoned.


class Newest(NamedTuple):
    """The round that was begun last."""

    number: int
    version: int
    state: str
    reports: int
    granted: int


def newest_round(connection: Connection) -> Newest | None:
    """The round that was begun last, open or not."""
    row = connection.one(
        "SELECT r.number, r.version, r.state, (SELECT COUNT(*) FROM uploads WHERE round = r.number), g.granted"
        " FROM rounds r LEFT JOIN grants g ON g.round = r.number ORDER BY r.number DESC LIMIT 1"
    )
    return None if row is None else Newest(int(row[0]), int(row[1]), str(row[2]), int(row[3]), int(row[4] or 0))


def count_reports(connection: Connection, number: int, *, invited_only: bool = False) -> int:
    """How many uploads a round has, or how many of invited clients."""
    query = "SELECT COUNT(*) FROM uploads WHERE round = ? AND invited >= ?"
    return int(connection.value(query, number, int(invited_only)))


def open_round(
    connection: Connection, number: int, version: int, check: Callable[[Connection], None] = lambda _: None
) -> None:
    """Begin a round; nothing happens if it was begun already, or where `check` of the metadata raises."""
    with connection.transaction():
        lock_metadata(connection)
        check(connection)
        connection.run(
            "INSERT INTO rounds (number, version, state) VALUES (?, ?, 'open') ON CONFLICT (number) DO NOTHING",
            number,
            version,
        )
        connection.run("INSERT INTO grants (round, granted) VALUES (?, 0) ON CONFLICT (round) DO NOTHING", number)


def state_of_round(connection: Connection, number: int) -> str | None:
    """Whether a round is open, closed, aggregated or abandoned; None if it has not begun."""
    state: str | None = connection.value("SELECT state FROM rounds WHERE number = ?", number)
    return state


def next_round(connection: Connection) -> int:
    """The round to go on with: the first that has not ended, or else the one after the last."""
    number = connection.value("SELECT MIN(number) FROM rounds WHERE state IN ('open', 'closed')")
    if number is None:
        number = connection.value("SELECT COALESCE(MAX(number) + 1, 0) FROM rounds")
    return int(number)


def close_round(connection: Connection, number: int, minimum: int, *, invited_only: bool = False) -> int | None:
    """End a round: how many uploads it has, or None if too few (of invited clients) count and it is discarded."""
    with connection.transaction():
        closed = connection.run("UPDATE rounds SET state = 'closed' WHERE number = ? AND state = 'open'", number)
        if not closed and state_of_round(connection, number) == "abandoned":
            return None  # the operator has gone back to an earlier version
        if count_reports(connection, number, invited_only=invited_only) >= minimum:
            return count_reports(connection, number)
        discard_round(connection, number)
        return None


def note_end(connection: Connection, number: int) -> None:
    """Note when a round ends and how many clients there are then, within the transaction that then ends it."""
    connection.run(
        "UPDATE rounds SET ended = ?, clients = (SELECT clients FROM tallies),"
        " departures = (SELECT departures FROM tallies) WHERE state IN ('open', 'closed') AND number = ?",
        time.time(),
        number,
    )


def discard_round(connection: Connection, number: int) -> None:
    """End a round without a new version, within the caller's transaction: the bytes of its uploads go."""
    note_end(connection, number)
    discarded = connection.run(
        "UPDATE rounds SET state = 'abandoned',"
        " reports = (SELECT COUNT(*) FROM uploads WHERE round = rounds.number)"
        " WHERE number = ? AND state IN ('open', 'closed')",
        number,
    )
    connection.run("UPDATE uploads SET body = ? WHERE round = ?", b"", number)
    if discarded:
        connection.run("UPDATE tallies SET abandoned = abandoned + 1")


def discard_rounds(connection: Connection) -> None:
    """The same of all rounds that are under way."""
    for (number,) in connection.all("SELECT number FROM rounds WHERE state IN ('open', 'closed')"):
        discard_round(connection, int(number))


def note_rejected(connection: Connection, number: int, reason: str) -> None:
    """Count an aggregate that was not applied, within the caller's transaction; the operator sees the last reason."""
    count = int((get_value(connection, "rejected") or {}).get("count", 0))
    put_value(connection, "rejected", {"count": count + 1, "round": number, "reason": reason})
    put_value(connection, _REFUSED, [*(get_value(connection, _REFUSED) or []), number][-RECENT:])


# Uploads: how one is kept, once, and how a round's are read to be added up.


Outcome = Literal["stored", "again", "repeated", "late", "gone", "banned"]


class Upload(NamedTuple):
    """An accepted upload on its way into the store."""

    client: str
    ticket: Ticket
    digest: bytes
    body: bytes
    clipped: int


def keep_upload(connection: Connection, upload: Upload) -> tuple[Outcome, int]:
    """Store an upload in the open round, within the caller's transaction; what became of it, and its round. Idempotent.

    The ticket must be of the open round and its version.
    """
    known = _known_upload(connection, upload)
    if known is not None:
        return known
    # The lock keeps the round from being closed before this upload is in.
    now = connection.one(f"SELECT number, version FROM rounds WHERE state = 'open'{connection.share_lock()}")
    number = upload.ticket.round_number
    if now is None or (int(now[0]), int(now[1])) != (number, upload.ticket.version):
        return "late", number
    inserted = connection.run(
        "INSERT INTO uploads (ticket, round, digest, size, clipped, body, invited)"
        " SELECT ?, ?, ?, ?, ?, ?, invited FROM clients WHERE client = ? AND banned = 0"
        " ON CONFLICT DO NOTHING",
        upload.ticket.use,
        number,
        upload.digest,
        len(upload.body),
        upload.clipped,
        upload.body,
        upload.client,
    )
    if inserted:
        return "stored", number
    banned = connection.value("SELECT banned FROM clients WHERE client = ?", upload.client)
    return _known_upload(connection, upload) or ("gone" if banned is None else "banned", number)


def _known_upload(connection: Connection, upload: Upload) -> tuple[Outcome, int] | None:
    """Whether an upload that came with this ticket before was the same, and its round."""
    known = connection.one("SELECT digest, round FROM uploads WHERE ticket = ?", upload.ticket.use)
    return None if known is None else ("again" if bytes(known[0]) == upload.digest else "repeated", int(known[1]))


def withdraw(connection: Connection, client: str, ticket_key: bytes) -> None:
    """Take a client's Update out of the round that is open, where it has one; one that is closed is being aggregated.

    In a federation of sums a share that was prepared is in its round's sum already, and stays there.
    """
    number = connection.value(f"SELECT number FROM rounds WHERE state = 'open'{connection.share_lock()}")
    if number is not None:
        connection.run(
            "DELETE FROM uploads WHERE ticket = ? AND ticket NOT IN (SELECT ticket FROM reports)",
            use_of(ticket_key, client, int(number)),
        )


class Fate(NamedTuple):
    """What is known of an upload: why it was left out (if it was), its round's state, and the helper's record of it."""

    outcome: str
    state: str
    is_confirmed: bool  # under secure aggregation: the helper has ended the round too
    helper_record: bytes  # under secure aggregation, and once the helper has sent it
    uploads: int  # of the round, without those that were left out


def outcome_of(connection: Connection, use: bytes) -> Fate | None:
    """What became of the upload of a ticket, and of its round.

    The helper ends a round before it offers the next one: where there is a later offer, no record of it will come.
    """
    row = connection.one(
        "SELECT u.outcome, r.state, s.round IS NULL OR LENGTH(s.helper_record) > 0"
        " OR EXISTS (SELECT 1 FROM sums WHERE sums.round > s.round), s.helper_record,"
        " (SELECT COUNT(*) FROM uploads o WHERE o.round = u.round AND o.outcome IN ('', 'counted'))"
        " FROM uploads u JOIN rounds r ON r.number = u.round LEFT JOIN sums s ON s.round = u.round WHERE u.ticket = ?",
        use,
    )
    return None if row is None else Fate(str(row[0]), str(row[1]), bool(row[2]), bytes(row[3] or b""), int(row[4]))


def bodies_in_order(connection: Connection, number: int) -> Iterator[bytes]:
    """A round's uploads in the order in which they are added up: by their digests."""
    for (ticket,) in connection.all("SELECT ticket FROM uploads WHERE round = ? ORDER BY digest, ticket", number):
        body = connection.value("SELECT body FROM uploads WHERE ticket = ?", ticket)
        if body is None:
            raise StoreAway("An upload has left the store while its round was aggregated.")
        yield bytes(body)


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


# The latest rounds that have ended: which were discarded, and how many had an aggregate that was not applied.


RECENT = 10
_REFUSED = "refused aggregates"


class RecentRounds(NamedTuple):
    """What became of the latest rounds, newest first."""

    discarded: tuple[bool, ...] = ()
    refused: int = 0  # aggregates that were not applied
    uploads: int = 0
    refused_uploads: int = 0  # those that came too late or twice are not counted: they are no fault
    last_aggregated: float | None = None  # when the last round of all was, in seconds since 1970


def recent_rounds(connection: Connection) -> RecentRounds:
    """The latest rounds that have ended, at most RECENT."""
    rows = connection.all(
        "SELECT number, state, reports FROM rounds WHERE state IN ('aggregated', 'abandoned')"
        " ORDER BY number DESC LIMIT ?",
        RECENT,
    )
    numbers = {int(number) for number, _, _ in rows}
    refused = numbers.intersection(get_value(connection, _REFUSED) or [])
    since = min(numbers, default=0)
    bad = connection.value(
        "SELECT COALESCE(SUM(count), 0) FROM refusals WHERE round >= ? AND reason NOT IN ('late', 'repeated')", since
    )
    return RecentRounds(
        discarded=tuple(state == "abandoned" for _, state, _ in rows),
        refused=len(refused),
        uploads=sum(int(reports) for _, _, reports in rows),
        refused_uploads=int(bad),
        last_aggregated=connection.value("SELECT MAX(ended) FROM rounds WHERE state = 'aggregated'"),
    )
