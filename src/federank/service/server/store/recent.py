"""The latest rounds that have ended: which were discarded, and how many had an aggregate that was not applied."""

from __future__ import annotations

from typing import NamedTuple

from federank.service.server.store.database import Connection
from federank.service.server.store.statements.facts import get_fact, put_fact

RECENT = 10
_REFUSED = "refused aggregates"


class RecentRounds(NamedTuple):
    """What became of the latest rounds, newest first."""

    discarded: tuple[bool, ...] = ()
    refused: int = 0


def recent_rounds(connection: Connection) -> RecentRounds:
    """The latest rounds that have ended, at most RECENT."""
    rows = connection.all(
        "SELECT number, state FROM rounds WHERE state IN ('folded', 'abandoned') ORDER BY number DESC LIMIT ?", RECENT
    )
    numbers = {int(number) for number, _ in rows}
    refused = numbers.intersection(get_fact(connection, _REFUSED) or [])
    return RecentRounds(tuple(state == "abandoned" for _, state in rows), len(refused))


def note_refused_aggregate(connection: Connection, number: int) -> None:
    """Note that a round's aggregate was not applied, within the transaction that ends the round."""
    before = get_fact(connection, _REFUSED) or []
    put_fact(connection, _REFUSED, [*before, number][-RECENT:])
