"""What a device takes from a server: each answer is read into a record, or refused with a sentence.

A device trusts nothing it is told. Numbers must be numbers in their range, arrays must have the shapes that the
catalogue and the number of factors ask for, every value must be finite, item numbers must ascend, and the model must be
of the version and the round that were promised. What would be refused is never half used: readers answer with a whole
record or not at all.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from federank.arrays import FloatMatrix, FloatVector
from federank.errors import BadMessage, FedeRankError
from federank.protocol.messages import Broadcast, broadcast_bytes, decode_broadcast
from federank.protocol.pairs.recipes import FPLSettings
from federank.service.device.transfer import BadAnswer

API = 1
MOST_ITEMS = 10_000_000
MOST_TRIPLES = 1_000_000
MOST_CATALOGUE_BYTES = 256 << 20


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a federation says it is."""

    name: str
    settings: FPLSettings  # as its recipe says; seed and pi are the device's own business
    triples: int
    n_items: int
    catalogue: str  # digest of the catalogue
    founding: str  # which federation it is: another word for every founding; none from a server that does not say
    version: int
    suggested_policy: dict[str, Any] | None

    @property
    def most_model_bytes(self) -> int:
        """No model of this catalogue is longer on the wire."""
        return broadcast_bytes(self.n_items, self.settings.factors) + 4096


class Catalogue(NamedTuple):
    """The items that a federation knows, in the order of their numbers."""

    ids: list[str]
    titles: list[str]
    categories: list[list[str]]


class Ticket(NamedTuple):
    """Leave to take part in one round."""

    ticket: str
    round_number: int
    version: int
    deadline_seconds: float
    most_rows: int


def read_facts(content: bytes) -> Facts:
    """The answer to GET /federation."""
    told = _json_object(content, "about the federation")
    if told.get("api") != API or told.get("method") != "fpl":
        raise BadAnswer(
            f"The server speaks version {told.get('api')!r} of the interface and method {told.get('method')!r}; this "
            f"device speaks version {API} and method 'fpl'. Another version of federank may be needed."
        )
    recipe = told.get("recipe")
    if not isinstance(recipe, dict):
        raise BadAnswer("The server says nothing about its recipe; a federation's address is needed.")
    try:
        settings = FPLSettings(
            factors=_whole(recipe.get("factors"), 1, 1024),
            order=recipe.get("order", "as-published"),
            triples=_whole(recipe.get("triples"), 1, MOST_TRIPLES),
            learning_rate=_number(recipe.get("learning_rate")),
            user_regulariser=_number(recipe.get("user_regulariser")),
            positive_regulariser=_number(recipe.get("positive_regulariser")),
            negative_regulariser=_number(recipe.get("negative_regulariser")),
            initial_scale=_number(recipe.get("initial_scale")),
        )
    except FedeRankError as reason:
        raise BadAnswer(f"The server's recipe cannot be followed: {reason}") from reason
    suggested = told.get("suggested_policy")
    return Facts(
        name=shown(told.get("name", "")),
        settings=settings,
        triples=int(settings.triples),
        n_items=_whole(told.get("items"), 2, MOST_ITEMS),
        catalogue=_text(told.get("catalogue")),
        founding=_text(told["founding"]) if "founding" in told else "",
        version=_whole(told.get("version"), 0),
        suggested_policy=suggested if isinstance(suggested, dict) else None,
    )


def read_catalogue(content: bytes, facts: Facts) -> Catalogue:
    """The answer to GET /catalogue: as many items as the federation said, of the digest it said."""
    told = _json_object(content, "about its catalogue")
    items = told.get("items")
    if told.get("digest") != facts.catalogue or not isinstance(items, list) or len(items) != facts.n_items:
        raise BadAnswer("The server's catalogue is not the one that it announced; try again, or tell its operator.")
    try:
        ids = [shown(item["id"]) for item in items]
        titles = [shown(item.get("title") or "") for item in items]
        categories = [[shown(name) for name in item.get("categories") or ()] for item in items]
    except (KeyError, TypeError, AttributeError) as reason:
        raise BadAnswer("The server's catalogue has items without an id.") from reason
    if len(set(ids)) != len(ids):
        raise BadAnswer("The server's catalogue has two items of the same id.")
    return Catalogue(ids, titles, categories)


def read_enrolment(content: bytes) -> tuple[str, str]:
    """The answer to POST /devices: the device's id there and its token."""
    told = _json_object(content, "to an enrolment")
    return _text(told.get("device")), _text(told.get("token"))


def read_ticket(content: bytes) -> Ticket:
    """The answer to GET /work."""
    told = _json_object(content, "about work")
    return Ticket(
        ticket=_text(told.get("ticket")),
        round_number=_whole(told.get("round"), 0, 2**32 - 1),
        version=_whole(told.get("version"), 0),
        deadline_seconds=_number(told.get("deadline_seconds")),
        most_rows=_whole(told.get("most_rows"), 0),
    )


def read_receipt(content: bytes) -> str:
    """The answer to an upload: the digest of what the server stored."""
    return _text(_json_object(content, "to an upload").get("receipt"))


def read_rows(content: bytes, factors: int, n_items: int) -> Broadcast:
    """A model or a part of one, with its round and version."""
    try:
        return decode_broadcast(content, factors, n_items)
    except BadMessage as reason:
        raise BadAnswer(f"The server's model cannot be used, and was not: {reason}") from reason


def merged(
    rows: Broadcast, have: tuple[int, FloatMatrix, FloatVector] | None, n_items: int
) -> tuple[FloatMatrix, FloatVector]:
    """The whole model: the rows received over those that the device has already."""
    if have is None:
        if len(rows.items) != n_items:
            raise BadAnswer(
                f"The server sent {len(rows.items):,} of {n_items:,} rows of its model to a device that has none."
            )
        return rows.vectors, rows.biases
    version, vectors, biases = have
    if rows.version < version:
        raise BadAnswer(
            f"The server offers version {rows.version} of its model, and this device has version {version} already: "
            "versions never go back. Nothing was sent; ask the operator whether the federation was reset, and if so "
            "enrol anew with another --state."
        )
    vectors, biases = vectors.copy(), biases.copy()
    vectors[rows.items], biases[rows.items] = rows.vectors, rows.biases
    return vectors, biases


def _json_object(content: bytes, what: str) -> dict[str, Any]:
    try:
        told = json.loads(content.decode())  # of bytes, json would also take UTF-16 and UTF-32
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadAnswer(f"The server's answer {what} is not the JSON that was asked for.")
    return told


def _whole(value: Any, least: int, most: float = 2**53) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a whole number from {least} is needed.")
    return value


def _number(value: Any) -> float:
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number) or number < 0:
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a finite number from 0 is needed.")
    return number


def shown(value: Any) -> str:
    """A name that people will see: of a bounded length, and with no power over a terminal."""
    text = str(value)[:500]
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not (value.isascii() and value.isprintable() and 0 < len(value) <= 512):
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a short text is needed.")
    return value
