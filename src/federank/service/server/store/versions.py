"""The versions in the store: what each changed, and now and then the full model.

A server step and the end of its round are one transaction. A worker follows by reading the rows that each newer version
has changed; one that begins again reads the last full model and what came after it. What the next step has to remember
besides is kept with the newest versions and with full ones, so that a rollback goes on as it was; only the leader reads
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load

from federank.errors import Overtaken as Overtaken
from federank.federation.server import Content, Published
from federank.federation.wire import encode_parts
from federank.service.server.model_versions import full_model
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import discard_rounds, get_value, note_end, put_value
from federank.service.server.store.seasons import current_season

FULL_MODEL_EVERY = 64
"""Every this many versions the full model is stored; what is between full ones is dropped behind the last but
one.
"""
KEPT_FULL, KEPT_EVERY = 16, 1024
"""Full versions that are kept to go back to: the latest this many, and of older ones the multiples of this many."""
KEPT_STATES = 8
"""This many of the newest versions have the state of the next server step: only from those, and from full ones, can
a federation go on. Where uploads are sums, rounds are few, and all versions that are kept have it."""
REMEMBERED_ROUNDS = 1000
"""For this many rounds a receipt is remembered, so that a late retry receives the outcome of its upload."""


def publish(
    connection: Connection,
    number: int,
    model: Published,
    measured: dict[str, float],
    keep_updates: bool,
    also: Callable[[Connection], None] | None = None,
    *,
    remembers_all: bool = False,
) -> None:
    """Write the version that a closed round has led to, and end the round; all at once, with what `also` writes.

    `remembers_all`: from every version that is kept a federation can go on, and not from the newest ones alone.
    """
    with connection.transaction():
        note_end(connection, number)
        aggregated = connection.run(
            "UPDATE rounds SET state = 'aggregated', drift = ?, seconds = ?,"
            " reports = (SELECT COUNT(*) FROM uploads WHERE round = rounds.number),"
            " bytes = (SELECT COALESCE(SUM(size), 0) FROM uploads WHERE round = rounds.number),"
            " clipped = (SELECT COALESCE(SUM(clipped), 0) FROM uploads WHERE round = rounds.number)"
            " WHERE number = ? AND state = 'closed'",
            measured["drift"],
            measured["seconds"],
            number,
        )
        if aggregated != 1:
            raise Overtaken(f"Round {number} is not closed: it was aggregated or discarded by another worker.")
        if also is not None:
            also(connection)
        _insert_version(connection, number, model, is_full=False)
        connection.run(
            "UPDATE versions SET state = NULL WHERE version <= ? AND is_full = 0 AND state IS NOT NULL",
            model.version - (FULL_MODEL_EVERY if remembers_all else KEPT_STATES),
        )
        if model.version % FULL_MODEL_EVERY == 0:
            put_all(connection, number, model)
        if not keep_updates:
            connection.run("UPDATE uploads SET body = ? WHERE round = ?", b"", number)
            connection.run("DELETE FROM uploads WHERE round < ?", number - REMEMBERED_ROUNDS)


def put_all(connection: Connection, number: int, model: Published) -> None:
    """Store the full model, within the caller's transaction, and drop what no one needs to start from."""
    connection.run("DELETE FROM versions WHERE version = ?", model.version)
    _insert_version(connection, number, model, is_full=True)
    connection.run("DELETE FROM versions WHERE is_full = 0 AND version < ?", model.version - FULL_MODEL_EVERY)
    # Version 0 is a multiple too, and stays: with kept Updates, the model can be worked out again from it.
    connection.run(
        "DELETE FROM versions WHERE is_full = 1 AND version / ? * ? <> version AND version NOT IN"
        " (SELECT version FROM versions WHERE is_full = 1 ORDER BY version DESC LIMIT ?)",
        KEPT_EVERY,
        KEPT_EVERY,
        KEPT_FULL,
    )


def _insert_version(connection: Connection, number: int, model: Published, *, is_full: bool) -> None:
    rows = model.rows_since(None if is_full else model.version - 1)
    connection.run(
        "INSERT INTO versions (version, round, is_full, body, changed, state) VALUES (?, ?, ?, ?, ?, ?)",
        model.version,
        number,
        int(is_full),
        model.stored(rows, number),
        model.changed.astype("<i8").tobytes() if is_full else b"",
        encode_parts(model.content.state) if model.content.state else None,
    )


def newest_version(connection: Connection) -> int:
    """The number of the newest version; -1 where there is none."""
    version = connection.value("SELECT MAX(version) FROM versions")
    return -1 if version is None else int(version)


def newest_model(connection: Connection, known: Published | None = None) -> Published | None:
    """The newest version: from the known one where there is one, else from the last that was stored in full."""
    model = known
    if model is not None:
        rows = connection.all(
            "SELECT version, is_full, body, changed FROM versions WHERE version > ? ORDER BY version", model.version
        )
        if rows and int(rows[0][0]) != model.version + 1 and not rows[0][1]:
            model = None  # what is between has been dropped: begin from a full one
    if model is None:
        rows = connection.all(
            "SELECT version, is_full, body, changed FROM versions WHERE version >="
            " (SELECT MAX(version) FROM versions WHERE is_full = 1) ORDER BY version"
        )
    for version, is_full, body, changed in rows:
        if is_full:
            model = full_model(int(version), bytes(body), bytes(changed))
        elif model is not None:
            model = model.after(int(version), bytes(body))
    return model


def model_at(connection: Connection, version: int) -> Published | None:
    """The model as of an earlier version, with the state of its server step; None where it was dropped."""
    model, state = None, None
    for number, is_full, body, changed, remembered in connection.all(
        "SELECT version, is_full, body, changed, state FROM versions WHERE version <= ? AND version >="
        " (SELECT MAX(version) FROM versions WHERE is_full = 1 AND version <= ?) ORDER BY version",
        version,
        version,
    ):
        if is_full:
            model = full_model(int(number), bytes(body), bytes(changed))
        elif model is not None and model.version + 1 == int(number):
            model = model.after(int(number), bytes(body))
        state = remembered
    return None if model is None or model.version != version else _with_state(model, state)


def model_with_state(connection: Connection) -> Published:
    """The newest version, with the state of its server step."""
    model = newest_model(connection)
    assert model is not None, "a federation is established with a model"
    return _with_state(model, connection.value("SELECT state FROM versions WHERE version = ?", model.version))


def _with_state(model: Published, state: Any) -> Published:
    return model if state is None else model._replace(content=model.content._replace(state=load(bytes(state))))


# A way back: an earlier version is published again, as a new one.


Extend = Callable[[Content, int], Content]
"""(content, number of items) -> the same with rows for items that were added since."""


def kept_versions(connection: Connection) -> list[dict[str, Any]]:
    """The versions that can be gone back to, newest first: number, round, reports and drift of the round."""
    rows = connection.all(
        "SELECT v.version, v.round, v.is_full, v.state IS NOT NULL, r.reports, r.drift, r.state FROM versions v"
        " LEFT JOIN rounds r ON r.number = v.round ORDER BY v.version"
    )
    remembers = bool(rows) and bool(rows[-1][3])
    kept: list[dict[str, Any]] = []
    reached: int | None = None  # the last version that can be worked out from a full one
    for version, number, is_full, has_state, reports, drift, state in rows:
        if not is_full and reached != int(version) - 1:
            continue
        reached = int(version)
        # Where a server step remembers something, a version without that memory cannot be gone on from.
        if remembers and not has_state:
            continue
        aggregated = state == "aggregated" and int(version) > 0  # version 0 was there before the first round
        kept.append(
            {
                "version": int(version),
                "round": int(number),
                "reports": int(reports) if aggregated else None,
                "drift": float(drift) if aggregated else None,
            }
        )
    return kept[::-1]


def roll_back(connection: Connection, version: int, extend: Extend) -> Published | None:
    """Publish an earlier version of the season as a new one, within the caller's transaction; None where it is gone."""
    is_kept = version in {entry["version"] for entry in kept_versions(connection)}
    if not is_kept or version < current_season(connection).first_version:
        return None
    newest = model_with_state(connection)
    earlier = model_at(connection, version)
    assert earlier is not None, "a version that is kept can be worked out"
    content = extend(earlier.content, len(newest.changed))
    return publish_between(connection, newest, newest.followed_by(content))


def publish_between(connection: Connection, newest: Published, model: Published) -> Published:
    """Publish a version that no round has made, and give up the rounds that are under way."""
    discard_rounds(connection)
    put_all(connection, int(connection.value("SELECT COALESCE(MAX(number), 0) FROM rounds")), model)
    put_value(connection, "skipped", int(get_value(connection, "skipped") or 0) + model.version - newest.version)
    return model


# After a backup has been restored: numbers that were given out since it was made must not be given out again.


LEAP = 1_000_000


def jump_ahead(connection: Connection) -> int:
    """Abandon what was open and go on a million numbers later; the new version."""
    model = model_with_state(connection)
    version = model.version + LEAP
    with connection.transaction():
        number = int(connection.value("SELECT COALESCE(MAX(number), 0) FROM rounds")) + LEAP
        discard_rounds(connection)
        connection.run("INSERT INTO rounds (number, version, state) VALUES (?, ?, 'skipped')", number, version)
        everything = np.full_like(model.changed, version)
        put_all(connection, number, model._replace(version=version, changed=everything))
        put_value(connection, "skipped", int(get_value(connection, "skipped") or 0) + LEAP)
    return version
