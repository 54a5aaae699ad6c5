"""A catalogue that grows: items that the operator adds get the numbers after the last one, and rows that start low.

    1. the operator's wish is checked against the catalogue and kept, with a line of the log: one transaction
    2. the leader carries it out between two rounds, because a round's messages belong to one version and its rows:
       catalogue, number of items and a version with the new rows are one transaction too
    3. every worker sees a version with more rows, and reads the catalogue again (service.py)

Items are never taken out and never change their numbers, so whatever a device knows stays true. Where uploads are sums
nothing can be added: the federation config that devices and the helper have pinned names the catalogue.
"""

from __future__ import annotations

import json
from typing import Any

from federank.errors import SettingError
from federank.federation.server import Published
from federank.service.server.config import FederationConfig, catalogue_from, read_catalogue
from federank.service.server.store.database import Connection
from federank.service.server.store.grants import tickets_under_way
from federank.service.server.store.queries import (
    get_content,
    get_fact,
    lock_facts,
    put_fact,
    replace_content,
)
from federank.service.server.store.versions import model_to_fold, newest_version, put_all
from federank.service.server.store.writer import note_action

MOST_AT_ONCE = 100_000
MOST_ITEMS = 10_000_000
"""Devices take no larger catalogue (service/device/rules.py)."""
LONGEST_TEXT = 500
_SPEC = "new items"


def ask_for_items(connection: Connection, given: Any) -> int:
    """Keep items to be added, within the caller's transaction; how many wait now. Refused whole where one is wrong."""
    lock_facts(connection)
    content = get_content(connection, "catalogue")
    assert content is not None, "a federation is established with a catalogue"
    waiting = waiting_items(connection)
    known = json.loads(content)["items"]
    added = checked_items(given, [item["id"] for item in (*known, *waiting)])
    if len(known) + len(waiting) + len(added) > MOST_ITEMS:
        raise SettingError(f"A catalogue has {MOST_ITEMS:,} items at most; this one would have more.")
    put_fact(connection, _SPEC, waiting + added)
    note_action(connection, "add-items", count=len(added), first=str(added[0]["id"]), last=str(added[-1]["id"]))
    return len(waiting) + len(added)


def waiting_items(connection: Connection) -> list[dict[str, Any]]:
    """The items that are to be added when the round that is under way has ended."""
    return get_fact(connection, _SPEC) or []


def catalogue_now(connection: Connection) -> dict[str, int]:
    """How many items wait to be added, how many there are, and which version is the newest."""
    waiting = len(waiting_items(connection))  # looked at first: what waits no more is in the version below
    return {
        "waiting": waiting,
        "items": int(get_fact(connection, "config")["items"]),
        "version": newest_version(connection),
    }


def checked_items(given: Any, known: list[Any]) -> list[dict[str, Any]]:
    """Items as the catalogue keeps them, or a sentence on the first that cannot be added."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_AT_ONCE:
        raise SettingError(f"A list of 1 to {MOST_AT_ONCE:,} items is needed, each with an id and perhaps a title.")
    taken, numbered = set(map(str, known)), all(isinstance(identity, int) for identity in known)
    added: list[dict[str, Any]] = []
    for item in given:
        identity = _identity(item, numbered)
        if str(identity) in taken:
            raise SettingError(f"The item {identity!r} is in the catalogue already, or twice in the list.")
        taken.add(str(identity))
        title = _text(item.get("title") or str(identity), f"The title of {identity!r}")
        categories = item.get("categories") or []
        if not isinstance(categories, list):
            raise SettingError(f"The categories of {identity!r} are {categories!r}; a list of words is needed.")
        named = [_text(name, f"A category of {identity!r}") for name in categories]
        added.append({"id": identity, "title": title, "categories": named})
    return added


def _identity(item: Any, numbered: bool) -> int | str:
    """An item's id, of the kind that the catalogue's ids are."""
    identity = item.get("id") if isinstance(item, dict) else None
    text = _text(str(identity) if isinstance(identity, int) and not isinstance(identity, bool) else identity, "An id")
    if not numbered:
        return text
    if not (text.isascii() and text.removeprefix("-").isdecimal() and str(int(text)) == text):
        raise SettingError(f"The id {text!r} is no integer, as the ids of this catalogue are.")
    return int(text)


def _text(given: Any, what: str) -> str:
    if not isinstance(given, str) or not 0 < len(given.strip()) <= LONGEST_TEXT or not given.isprintable():
        raise SettingError(f"{what} is {given!r}; a line of 1 to {LONGEST_TEXT} characters is needed.")
    return given.strip()


def grow(connection: Connection, config: FederationConfig) -> Published | None:
    """Publish a version with rows for the items that wait, if any do; one transaction.

    A round that is open goes on with the new version, unless someone has a ticket of it: messages belong to one
    version, and then the items go on waiting.
    """
    with connection.transaction():
        tickets = tickets_under_way(connection)  # before facts, as everyone who writes both
        lock_facts(connection)
        waiting = waiting_items(connection)
        if not waiting or tickets:
            return None
        return _publish(connection, config, waiting)


def _publish(connection: Connection, config: FederationConfig, waiting: list[dict[str, Any]]) -> Published:
    content = get_content(connection, "catalogue")
    assert content is not None, "a federation is established with a catalogue"
    catalogue = catalogue_from(json.loads(content)["items"] + waiting)
    items = len(json.loads(catalogue.content)["items"])
    newest = model_to_fold(connection)
    model = newest.extended(config.extend(newest.content, items))
    replace_content(connection, "catalogue", catalogue.content)
    put_fact(connection, "config", get_fact(connection, "config") | {"items": items})
    put_fact(connection, _SPEC, [])
    row = connection.one("SELECT COALESCE(MAX(number), 0) FROM rounds")
    put_all(connection, int(row[0]) if row else 0, model)
    connection.run("UPDATE rounds SET version = ? WHERE state = 'open'", model.version)
    put_fact(connection, "skipped", int(get_fact(connection, "skipped") or 0) + 1)  # no round has made this version
    note_action(connection, "items added", items=items, as_version=model.version)
    return model


def begins_with(content: bytes, first: bytes) -> bool:
    """Whether a catalogue is another one, or that one with items added."""
    items, fewer = (json.loads(read_catalogue(each).content)["items"] for each in (content, first))
    return bool(items[: len(fewer)] == fewer)
