"""When a round ended, and how many devices the federation had then: what the operator's page draws over time.

No device's own times are kept: what is noted is two totals at each round's end, so that nobody's coming and going can
be looked up by name.
"""

from __future__ import annotations

import time

from federank.service.server.store.database import Connection

_NOTE = (
    "UPDATE rounds SET ended = ?, devices = (SELECT devices FROM tallies),"
    " departures = (SELECT departures FROM tallies) WHERE state IN ('open', 'closed')"
)


def note_end(connection: Connection, number: int | None = None) -> None:
    """Note that a round ends now, or every one that is under way; within the transaction that then ends it."""
    if number is None:
        connection.run(_NOTE, time.time())
    else:
        connection.run(f"{_NOTE} AND number = ?", time.time(), number)
