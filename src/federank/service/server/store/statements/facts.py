"""Facts: what is kept under a name, as JSON or as bytes."""

from __future__ import annotations

import json
from typing import Any

from federank.service.server.store.database import Connection


def get_fact(connection: Connection, name: str) -> Any:
    """What is kept under a name; None where nothing is."""
    content = get_content(connection, name)
    return None if content is None else json.loads(content)


def put_fact(connection: Connection, name: str, value: Any) -> None:
    """Keep something under a name."""
    connection.run(
        "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        json.dumps(value).encode(),
    )


def get_content(connection: Connection, name: str) -> bytes | None:
    """The bytes that are kept under a name."""
    row = connection.one("SELECT value FROM facts WHERE name = ?", name)
    return None if row is None else bytes(row[0])


def put_content(connection: Connection, name: str, content: bytes) -> None:
    """Keep bytes under a name that is not used yet."""
    connection.run("INSERT INTO facts (name, value) VALUES (?, ?)", name, content)


def replace_content(connection: Connection, name: str, content: bytes) -> None:
    """Keep other bytes under a name that is used."""
    connection.run("UPDATE facts SET value = ? WHERE name = ?", content, name)


def helper_is_away(connection: Connection) -> bool:
    """Whether the helper did not answer when the leader asked it last."""
    return bool(get_fact(connection, "helper away"))


def note_helper_away(connection: Connection, is_away: bool) -> None:
    """Note whether the helper answers, for every worker."""
    with connection.transaction():
        put_fact(connection, "helper away", is_away)


def lock_facts(connection: Connection) -> None:
    """Keep others from writing facts until the transaction ends; with SQLite a transaction does that by itself."""
    if connection.dialect == "postgresql":
        connection.run("LOCK TABLE facts IN EXCLUSIVE MODE")
