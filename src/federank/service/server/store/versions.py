"""The versions in the store: what each changed, and now and then the whole model.

A fold and the end of its round are one transaction. A worker follows by reading the rows that each newer version has
changed; one that begins anew reads the last whole model and what came after it. What the next fold has to remember
besides is kept with the newest version alone, and read by the leader alone.
"""

from __future__ import annotations

from collections.abc import Callable

from safetensors.numpy import load

from federank.protocol.wire import encode_parts
from federank.service.server.federation.published import Published, whole_model
from federank.service.server.store.database import Connection, StoreAway

WHOLE_EVERY = 64
"""Every so many versions the whole model is stored, and what is older than the last but one is dropped."""
REMEMBERED_ROUNDS = 1000
"""For so many rounds a receipt is remembered, so that a late retry is told what became of its upload."""


def publish(
    connection: Connection,
    number: int,
    model: Published,
    measured: dict[str, float],
    keep_updates: bool,
    also: Callable[[Connection], None] | None = None,
) -> None:
    """Write the version that a closed round has led to, and end the round; all at once, with what `also` writes."""
    with connection.transaction():
        folded = connection.run(
            "UPDATE rounds SET state = 'folded', drift = ?, seconds = ?,"
            " reports = (SELECT COUNT(*) FROM uploads WHERE round = rounds.number),"
            " bytes = (SELECT COALESCE(SUM(size), 0) FROM uploads WHERE round = rounds.number),"
            " clipped = (SELECT COALESCE(SUM(clipped), 0) FROM uploads WHERE round = rounds.number)"
            " WHERE number = ? AND state = 'closed'",
            measured["drift"],
            measured["seconds"],
            number,
        )
        if folded != 1:
            raise StoreAway(f"Round {number} is not closed: somebody else has folded it.")
        connection.run("UPDATE rounds SET version = ? WHERE state = 'open'", model.version)  # a buffer's next round
        if also is not None:
            also(connection)
        _insert_version(connection, number, model, whole=False)
        connection.run("UPDATE versions SET state = NULL WHERE version < ? AND state IS NOT NULL", model.version)
        if model.version % WHOLE_EVERY == 0:
            put_whole(connection, number, model)
        if not keep_updates:
            connection.run("UPDATE uploads SET body = ? WHERE round = ?", b"", number)
            connection.run("DELETE FROM uploads WHERE round < ?", number - REMEMBERED_ROUNDS)


def put_whole(connection: Connection, number: int, model: Published) -> None:
    """Store the whole model, within the caller's transaction, and drop what nobody needs to start from."""
    connection.run("DELETE FROM versions WHERE version = ?", model.version)
    _insert_version(connection, number, model, whole=True)
    # Version 0 stays: with kept Updates, the model can be worked out anew from it.
    connection.run("DELETE FROM versions WHERE version > 0 AND version < ?", model.version - WHOLE_EVERY)


def _insert_version(connection: Connection, number: int, model: Published, *, whole: bool) -> None:
    rows = model.rows_since(None if whole else model.version - 1)
    connection.run(
        "INSERT INTO versions (version, round, whole, body, changed, state) VALUES (?, ?, ?, ?, ?, ?)",
        model.version,
        number,
        int(whole),
        model.stored(rows, number),
        model.changed.astype("<i8").tobytes() if whole else b"",
        encode_parts(model.content.state) if model.content.state else None,
    )


def newest_version(connection: Connection) -> int:
    """The number of the newest version; -1 where there is none."""
    row = connection.one("SELECT MAX(version) FROM versions")
    return -1 if row is None or row[0] is None else int(row[0])


def newest_model(connection: Connection, known: Published | None = None) -> Published | None:
    """The newest version: from the one at hand where there is one, else from the last that was stored whole."""
    model = known
    if model is not None:
        rows = connection.all(
            "SELECT version, whole, body, changed FROM versions WHERE version > ? ORDER BY version", model.version
        )
        if rows and int(rows[0][0]) != model.version + 1 and not rows[0][1]:
            model = None  # what lies between has been dropped: begin from a whole one
    if model is None:
        rows = connection.all(
            "SELECT version, whole, body, changed FROM versions WHERE version >="
            " (SELECT MAX(version) FROM versions WHERE whole = 1) ORDER BY version"
        )
    for version, whole, body, changed in rows:
        if whole:
            model = whole_model(int(version), bytes(body), bytes(changed))
        elif model is not None:
            model = model.after(int(version), bytes(body))
    return model


def model_to_fold(connection: Connection) -> Published:
    """The newest version, with what its fold left to remember."""
    model = newest_model(connection)
    assert model is not None, "a federation is established with a model"
    row = connection.one("SELECT state FROM versions WHERE version = ?", model.version)
    if row is None or row[0] is None:
        return model
    return model._replace(content=model.content._replace(state=load(bytes(row[0]))))
