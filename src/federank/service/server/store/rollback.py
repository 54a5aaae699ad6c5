"""A way back: an earlier version is published again, as a new one.

Numbers never go back: devices ask for what changed since the version they have, and are sent the rows that differ. What
was under way is given up: a round that is open or closed was computed from the model that the operator wants to leave.
The leader notices that its round is gone, reads the store again and goes on from the new version (rounds.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from federank.service.server.federation.published import Content, Published
from federank.service.server.store.database import Connection
from federank.service.server.store.ending import note_end
from federank.service.server.store.statements.facts import get_fact, put_fact
from federank.service.server.store.versions import model_at, model_to_fold, put_whole

Extend = Callable[[Content, int], Content]
"""(content, number of items) -> the same with rows for items that were added since."""


def kept_versions(connection: Connection) -> list[dict[str, Any]]:
    """The versions that can be gone back to, newest first: number, round, reports and drift of the round."""
    rows = connection.all(
        "SELECT v.version, v.round, v.whole, v.state IS NOT NULL, r.reports, r.drift, r.state FROM versions v"
        " LEFT JOIN rounds r ON r.number = v.round ORDER BY v.version"
    )
    remembers = bool(rows) and bool(rows[-1][3])
    kept: list[dict[str, Any]] = []
    reached: int | None = None  # the last version that can be worked out from a whole one
    for version, number, whole, has_state, reports, drift, state in rows:
        if not whole and reached != int(version) - 1:
            continue
        reached = int(version)
        # Where a fold remembers something, a version without that memory cannot be gone on from.
        if remembers and not has_state:
            continue
        folded = state == "folded"
        kept.append(
            {
                "version": int(version),
                "round": int(number),
                "reports": int(reports) if folded else None,
                "drift": float(drift) if folded else None,
            }
        )
    return kept[::-1]


def roll_back(connection: Connection, version: int, extend: Extend) -> Published | None:
    """Publish an earlier version as a new one, within the caller's transaction; None if it is not kept any more."""
    if version not in {entry["version"] for entry in kept_versions(connection)}:
        return None
    newest = model_to_fold(connection)
    earlier = model_at(connection, version)
    assert earlier is not None, "a version that is kept can be worked out"
    content = extend(earlier.content, len(newest.changed))
    return publish_between(connection, newest, newest.followed_by(content))


def publish_between(connection: Connection, newest: Published, model: Published) -> Published:
    """Publish a version that no round has made, and give up the rounds that are under way."""
    row = connection.one("SELECT COALESCE(MAX(number), 0) FROM rounds")
    note_end(connection)
    given_up = connection.run(
        "UPDATE rounds SET state = 'abandoned',"
        " reports = (SELECT COUNT(*) FROM uploads WHERE round = rounds.number) WHERE state IN ('open', 'closed')"
    )
    if given_up:
        connection.run(
            "UPDATE uploads SET body = ? WHERE round IN (SELECT number FROM rounds WHERE state = 'abandoned')"
            " AND LENGTH(body) > 0",
            b"",
        )
        connection.run("UPDATE tallies SET abandoned = abandoned + ?", given_up)
    put_whole(connection, int(row[0]) if row else 0, model)
    put_fact(connection, "skipped", int(get_fact(connection, "skipped") or 0) + model.version - newest.version)
    return model
