"""Canonical JSON and digests: the same statement is the same bytes, anyone who writes it, so that it can be signed.

Statements hold objects, lists, text, integers, true, false and null. Keys ascend, nothing is spaced, text is
printable ASCII, integers are those that a browser counts exactly; other numbers travel as text. So Python and
JavaScript write the same bytes, and `read_canonical` takes no other spelling of them.

A digest is SHA-256 over a label and parts, each with its length before it: no two lists of parts run together, and no
digest of one purpose can stand for another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from federank.errors import BadMessage

MAX_INT = 2**53 - 1
ID_BYTES, BLIND_BYTES, PART_BYTES = 16, 16, 32
"""Of an upload: its random id, the blind of the leader's part, and the digest that each part is."""
_PURPOSE = "federank sums 1 "

Statement = Mapping[str, Any]


def canonical(statement: Statement) -> bytes:
    """The bytes of a statement."""
    _check(statement)
    return json.dumps(statement, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def read_canonical(content: bytes, name: str, most: int = 100_000) -> dict[str, Any]:
    """The statement that these bytes write in the one way there is; `name` is what a refusal calls it."""
    if len(content) > most:
        raise BadMessage(f"{name} has at most {most:,} bytes; this one has {len(content):,}.")
    try:
        statement = json.loads(content)
        same = isinstance(statement, dict) and canonical(statement) == content
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise BadMessage(f"{name} must be a statement in canonical JSON; this is not one.")
    result: dict[str, Any] = statement
    return result


def digest(label: str, *parts: bytes | memoryview) -> bytes:
    """SHA-256 of parts for one purpose."""
    purpose = (_PURPOSE + label).encode()
    summed = hashlib.sha256(len(purpose).to_bytes(8, "big") + purpose)
    for part in parts:
        summed.update(memoryview(part).nbytes.to_bytes(8, "big"))
        summed.update(part)
    return summed.digest()


def has_fields(statement: Statement, name: str, fields: Mapping[str, type]) -> None:
    """Refuse a statement whose fields are not exactly these, of these types."""
    if set(statement) != set(fields):
        raise BadMessage(f"{name} has the fields {', '.join(sorted(fields))}; found {_listed(statement)}.")
    for field, kind in fields.items():
        if type(statement[field]) is not kind:
            raise BadMessage(f"The field {field} of {name} must be {_WORDS[kind]}; this one is not.")


def hexadecimal(text: Any, length: int, name: str) -> bytes:
    """The bytes that this text writes in lower-case hexadecimal digits."""
    if not (isinstance(text, str) and len(text) == 2 * length and set(text) <= set("0123456789abcdef")):
        raise BadMessage(f"{name} must be {length} bytes in lower-case hexadecimal digits; this is something else.")
    return bytes.fromhex(text)


_WORDS = {int: "an integer", str: "text", dict: "an object", list: "a list", bool: "true or false"}


def _check(value: Any) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        if abs(value) > MAX_INT:
            raise ValueError("an integer is larger than a browser counts exactly")
    elif isinstance(value, str):
        if not (value.isascii() and value.isprintable()):
            raise ValueError("text must be printable ASCII")
    elif isinstance(value, Mapping):
        for key, held in value.items():
            if not isinstance(key, str):
                raise ValueError("keys must be text")
            _check(key)
            _check(held)
    elif isinstance(value, list | tuple):
        for held in value:
            _check(held)
    else:
        raise ValueError(f"a {type(value).__name__} has no canonical form")


def _listed(statement: Statement) -> str:
    return ", ".join(map(repr, sorted(statement)))[:200] or "none"
