"""Items to add to a running federation's catalogue, from a file, and waiting until devices are told of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from federank.data.catalogue_file import items_in
from federank.data.sources.formats.item_files import read_items
from federank.data.sources.text.contents import read_text
from federank.errors import BadFile
from federank.service.operator.client import OperatorClient

SECONDS_BETWEEN_LOOKS = 0.25


def items_of(path: Path) -> list[dict[str, Any]]:
    """The items of a file, as the server takes them, in the file's order."""
    try:
        items = items_in(read_items(read_text(path.expanduser())))
    except BadFile as reason:
        raise BadFile(f"{path} is no table of items, with the columns item_id and title: {reason}") from reason
    if not items:
        raise BadFile(f"{path} names no item; a table with the columns item_id and title is needed.")
    return items


def added_version(client: OperatorClient, note: Callable[[str], None]) -> dict[str, Any]:
    """Wait until no item waits to be added any more; the version that has them, and how many items there are."""
    said = False
    while True:
        found: dict[str, Any] = client.get("/items")
        if not found["waiting"]:
            return found
        if not said:
            note("They are kept, and wait for the round that is under way to end; stopping here takes nothing back.")
        said = True
        time.sleep(SECONDS_BETWEEN_LOOKS)
