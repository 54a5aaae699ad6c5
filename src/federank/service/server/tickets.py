"""Secrets: tokens that say who, tickets that say for which round. All are random or keyed, made at run time.

A token is 256 random bits, shown once; the store keeps its SHA-256, from which it cannot be worked out. A ticket is a
round, a version and a keyed digest (BLAKE2) of both and of the client it was given to: any worker can check it without
asking the store, no one can make one, and a client that asks twice in a round is given the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import struct
from typing import NamedTuple

_SIGNED = struct.Struct(">QQ")
_MAC_BYTES = 16
TICKET_BYTES = _SIGNED.size + _MAC_BYTES


class Ticket(NamedTuple):
    """Leave to send one Update: for this round, computed from this version."""

    round_number: int
    version: int
    content: bytes
    use: bytes  # names the use of it in the store: one for each client and round

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.content).rstrip(b"=").decode()


def new_token() -> str:
    """A secret for a client or the operator."""
    return secrets.token_urlsafe(32)


def new_client() -> str:
    """A name that says nothing about anyone."""
    return secrets.token_hex(16)


def hash_of_token(token: str) -> bytes:
    """What the store keeps of a token."""
    return hashlib.sha256(token.encode()).digest()


def make_ticket(key: bytes, client: str, round_number: int, version: int) -> Ticket:
    """The one ticket of this client for this round and version."""
    signed = _SIGNED.pack(round_number, version)
    return Ticket(round_number, version, signed + _mac(key, client, signed), use_of(key, client, round_number))


def read_ticket(key: bytes, client: str, text: str) -> Ticket | None:
    """The ticket that a client shows, if it was given to it."""
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(content) != TICKET_BYTES:
        return None
    signed, mac = content[: _SIGNED.size], content[_SIGNED.size :]
    if not hmac.compare_digest(mac, _mac(key, client, signed)):
        return None
    round_number, version = _SIGNED.unpack(signed)
    return Ticket(round_number, version, content, use_of(key, client, round_number))


def use_of(key: bytes, client: str, round_number: int) -> bytes:
    """A client's one voice in a round, as the store knows it: a keyed digest that says nothing about other rounds."""
    return _mac(key, f"use of {client}", round_number.to_bytes(8, "big"))


def _mac(key: bytes, client: str, signed: bytes) -> bytes:
    return hashlib.blake2b(client.encode() + signed, digest_size=_MAC_BYTES, key=key).digest()
