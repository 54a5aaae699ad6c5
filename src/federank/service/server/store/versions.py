"""The versions in the store: what each changed, and now and then the whole model.

A fold and the end of its round are one transaction. A worker follows by reading the rows that each newer version has
changed; one that begins anew reads the last whole model and what came after it. What the next fold has to remember
besides is kept with the newest versions and with whole ones, so that a rollback goes on as it was; only the leader
reads it.
"""

from __future__ import annotations

from collections.abc import Callable

from safetensors.numpy import load

from federank.errors import Overtaken as Overtaken
from federank.protocol.wire import encode_parts
from federank.service.server.federation.published import Published, whole_model
from federank.service.server.store.database import Connection
from federank.service.server.store.ending import note_end

WHOLE_EVERY = 64
"""Every so many versions the whole model is stored; what lies between whole ones is dropped behind the last but one."""
KEPT_WHOLE, KEPT_EVERY = 16, 1024
"""Whole versions that are kept to go back to: the latest so many, and of older ones the multiples of so many."""
KEPT_STATES = 8
"""With so many of the newest versions it is kept what the next fold has to remember: only from those, and from whole
ones, can a federation go on."""
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
        note_end(connection, number)
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
            raise Overtaken(f"Round {number} is not closed: it was folded, or given up, by somebody else.")
        if also is not None:
            also(connection)
        _insert_version(connection, number, model, whole=False)
        connection.run(
            "UPDATE versions SET state = NULL WHERE version <= ? AND whole = 0 AND state IS NOT NULL",
            model.version - KEPT_STATES,
        )
        if model.version % WHOLE_EVERY == 0:
            put_whole(connection, number, model)
        if not keep_updates:
            connection.run("UPDATE uploads SET body = ? WHERE round = ?", b"", number)
            connection.run("DELETE FROM uploads WHERE round < ?", number - REMEMBERED_ROUNDS)


def put_whole(connection: Connection, number: int, model: Published) -> None:
    """Store the whole model, within the caller's transaction, and drop what nobody needs to start from."""
    connection.run("DELETE FROM versions WHERE version = ?", model.version)
    _insert_version(connection, number, model, whole=True)
    connection.run("DELETE FROM versions WHERE whole = 0 AND version < ?", model.version - WHOLE_EVERY)
    # Version 0 is a multiple too, and stays: with kept Updates, the model can be worked out anew from it.
    connection.run(
        "DELETE FROM versions WHERE whole = 1 AND version / ? * ? <> version AND version NOT IN"
        " (SELECT version FROM versions WHERE whole = 1 ORDER BY version DESC LIMIT ?)",
        KEPT_EVERY,
        KEPT_EVERY,
        KEPT_WHOLE,
    )


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


def model_at(connection: Connection, version: int) -> Published | None:
    """The model as of an earlier version, with what its fold left to remember; None where it was dropped."""
    model: Published | None = None
    state: bytes | None = None
    for number, whole, body, changed, remembered in connection.all(
        "SELECT version, whole, body, changed, state FROM versions WHERE version <= ? AND version >="
        " (SELECT MAX(version) FROM versions WHERE whole = 1 AND version <= ?) ORDER BY version",
        version,
        version,
    ):
        if whole:
            model = whole_model(int(number), bytes(body), bytes(changed))
        elif model is not None and model.version + 1 == int(number):
            model = model.after(int(number), bytes(body))
        state = None if remembered is None else bytes(remembered)
    if model is None or model.version != version:
        return None
    return model if state is None else model._replace(content=model.content._replace(state=load(state)))


def model_to_fold(connection: Connection) -> Published:
    """The newest version, with what its fold left to remember."""
    model = newest_model(connection)
    assert model is not None, "a federation is established with a model"
    row = connection.one("SELECT state FROM versions WHERE version = ?", model.version)
    if row is None or row[0] is None:
        return model
    return model._replace(content=model.content._replace(state=load(bytes(row[0]))))
