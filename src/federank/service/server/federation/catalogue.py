"""The catalogue: what there is to recommend. All that a server takes from a data set.

Items are listed in the order of their numbers, with their original id, title and categories. Who chose what stays where
it was: a data set's histories are looked at once, to work out the mean number of items per person (the papers' T), and
then dropped.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import Any, NamedTuple

from federank.data.interactions import Interactions


class Catalogue(NamedTuple):
    """A catalogue as it is sent: JSON, ready to go."""

    digest: str
    content: bytes
    compressed: bytes


def catalogue_of(data: Interactions) -> Catalogue:
    """The items of a data set, without anybody's history."""
    items: list[dict[str, Any]] = []
    for number, identity in enumerate(data.item_ids.tolist()):
        title = "" if data.titles is None else str(data.titles[number])
        categories = [] if data.categories is None else list(data.categories.of(number))
        items.append({"id": identity, "title": title or str(identity), "categories": categories})
    return catalogue_from(items)


def catalogue_from(items: list[dict[str, Any]]) -> Catalogue:
    """The catalogue of these items."""
    digest = hashlib.sha256(_json(items)).hexdigest()[:32]
    content = _json({"digest": digest, "items": items})
    return Catalogue(digest, content, gzip.compress(content, mtime=0))


def read_catalogue(content: bytes) -> Catalogue:
    """A catalogue that the store has kept."""
    return Catalogue(str(json.loads(content)["digest"]), content, gzip.compress(content, mtime=0))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
