"""The header of an upload: all that stands before the share.

    8 bytes of magic, id (16), blind (16), part_H (32), sealed, and zeros up to a whole word

An upload (upload.py) and one that carries a proof of its norm (norm_check/upload.py) differ in their magic and in the
length of what is sealed.
"""

from __future__ import annotations

from typing import NamedTuple

from federank.errors import BadMessage

ID_BYTES, BLIND_BYTES, PART_BYTES = 16, 16, 32


class Header(NamedTuple):
    """What a header says."""

    id: bytes
    blind: bytes
    part_helper: bytes
    sealed: bytes


class Form(NamedTuple):
    """What tells one form of uploads from another."""

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
    magic, *found = parts
    return None if magic != form.magic or any(content[at : form.header_bytes]) else Header(*found)
