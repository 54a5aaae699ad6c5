"""The operator's log: what was done to the federation, by whoever had the operator's token, in order.

It only grows. Each line has a digest of itself and of the line before, so a line that was taken out or changed shows:
`is_unbroken` works the digests out anew. Lines name actions and their targets (a version, a device's random name),
never an address or a token.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any, NamedTuple

from federank.service.server.store.database import Connection

NOTHING_BEFORE = b""


class Action(NamedTuple):
    """One line of the log."""

    number: int
    time: str
    action: str
    detail: dict[str, Any]
    digest: bytes


def note_action(connection: Connection, action: str, **detail: Any) -> None:
    """Add a line, within the caller's transaction."""
    if connection.dialect == "postgresql":
        connection.run("LOCK TABLE actions IN EXCLUSIVE MODE")
    row = connection.one("SELECT number, digest FROM actions ORDER BY number DESC LIMIT 1")
    number, before = (0, NOTHING_BEFORE) if row is None else (int(row[0]) + 1, bytes(row[1]))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps(detail, sort_keys=True)
    connection.run(
        "INSERT INTO actions (number, time, action, detail, digest) VALUES (?, ?, ?, ?, ?)",
        number,
        now,
        action,
        text,
        _digest(before, number, now, action, text),
    )


def all_actions(connection: Connection) -> list[Action]:
    """The whole log, oldest first."""
    rows = connection.all("SELECT number, time, action, detail, digest FROM actions ORDER BY number")
    return [Action(int(row[0]), str(row[1]), str(row[2]), json.loads(row[3]), bytes(row[4])) for row in rows]


def is_unbroken(actions: list[Action]) -> bool:
    """Whether every line is as it was written, after the line that it was written after."""
    before = NOTHING_BEFORE
    for expected, (number, when, action, detail, digest) in enumerate(actions):
        if number != expected or digest != _digest(before, number, when, action, json.dumps(detail, sort_keys=True)):
            return False
        before = digest
    return True


def _digest(before: bytes, number: int, when: str, action: str, detail: str) -> bytes:
    return hashlib.sha256(before + json.dumps([number, when, action, detail]).encode()).digest()
