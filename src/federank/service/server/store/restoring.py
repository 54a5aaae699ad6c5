"""After a backup has been restored: numbers that were given out since it was made must not be given out again.

Devices remember which version they have and ask for the rows changed since. If a restored federation counted on from
the backup's version, it would reach numbers that devices have already, with other content, and rows would be missed
without anybody noticing. So versions and rounds jump ahead, by more than can have been played since; every row counts
as changed; tickets from before the jump are worth nothing.
"""

from __future__ import annotations

import numpy as np

from federank.service.server.store.database import Connection
from federank.service.server.store.ending import note_end
from federank.service.server.store.statements.facts import get_fact, put_fact
from federank.service.server.store.versions import model_to_fold, put_whole

LEAP = 1_000_000


def jump_ahead(connection: Connection) -> int:
    """Abandon what was open and go on a million numbers later; the new version."""
    model = model_to_fold(connection)
    version = model.version + LEAP
    with connection.transaction():
        row = connection.one("SELECT COALESCE(MAX(number), 0) FROM rounds")
        number = (int(row[0]) if row else 0) + LEAP
        note_end(connection)
        abandoned = connection.run("UPDATE rounds SET state = 'abandoned' WHERE state IN ('open', 'closed')")
        connection.run("UPDATE tallies SET abandoned = abandoned + ?", abandoned)
        connection.run(
            "INSERT INTO rounds (number, version, state) VALUES (?, ?, 'skipped')",
            number,
            version,
        )
        everything = np.full_like(model.changed, version)
        put_whole(connection, number, model._replace(version=version, changed=everything))
        put_fact(connection, "skipped", int(get_fact(connection, "skipped") or 0) + LEAP)
    return version
