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
from typing import Any, NamedTuple

from federank.errors import BadMessage

MAX_INT = 2**53 - 1
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


# The header of an upload: all that stands before the share.


ID_BYTES, BLIND_BYTES, PART_BYTES = 16, 16, 32


class Header(NamedTuple):
    """What a header says."""

    id: bytes
    blind: bytes
    part_helper: bytes
    sealed: bytes


class Form(NamedTuple):
    """What distinguishes one form of uploads from another."""

    magic: bytes
    sealed_bytes: int

    @property
    def fields(self) -> tuple[int, ...]:
        """The bytes of each field, the magic's first."""
        return len(self.magic), ID_BYTES, BLIND_BYTES, PART_BYTES, self.sealed_bytes

    @property
    def header_bytes(self) -> int:
        """Where the share begins, so that its words are aligned; what is over is zeros."""
        return -(-sum(self.fields) // 4) * 4


def write_header(form: Form, header: Header) -> bytes:
    """The bytes of a header."""
    return (form.magic + b"".join(header)).ljust(form.header_bytes, b"\0")


def read_header(form: Form, content: bytes, needed: int) -> Header | None:
    """The header of an upload that has the `needed` bytes; None where it begins in another way than its form does."""
    if len(content) != needed:
        raise BadMessage(f"An upload of this round has {needed:,} bytes; this one has {len(content):,}.")
    parts, at = [], 0
    for size in form.fields:
        parts.append(content[at : at + size])
        at += size
    magic, *result = parts
    return None if magic != form.magic or any(content[at : form.header_bytes]) else Header(*result)
