"""Identities: keys that sign for a server, ECDSA on P-256 with SHA-256.

A public key is its 65 bytes of the uncompressed point, and a signature the 64 bytes of r and s, as WebCrypto has them.
What is signed is a digest of the statement for one purpose, so a signature for an offer cannot serve as another's.
A key that takes the place of an older one is signed by the older one, so that clients which pinned the old key can
follow; everyone else compares fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from federank.errors import BadMessage
from federank.secagg.canonical import digest, hexadecimal

PUBLIC_BYTES, PRIVATE_BYTES, SIGNATURE_BYTES = 65, 32, 64
_HALF = SIGNATURE_BYTES // 2
Read = TypeVar("Read")


def new_private_key() -> bytes:
    """A private key of P-256, from the operating system: its 32 bytes."""
    return ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value.to_bytes(PRIVATE_BYTES, "big")


def public_key_of(private: bytes) -> bytes:
    """The public key of a private one."""
    key = private_key(private).public_key()
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def sign(private: bytes, purpose: str, content: bytes) -> bytes:
    """A signature of this content for this purpose."""
    r, s = decode_dss_signature(private_key(private).sign(digest(f"sign {purpose}", content), ec.ECDSA(SHA256())))
    return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")


def verify(public: bytes, purpose: str, content: bytes, signature: bytes) -> None:
    """Refuse a signature that this key has not made of this content for this purpose."""
    key = public_key(public)
    if len(signature) == SIGNATURE_BYTES:
        r, s = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
        try:
            key.verify(encode_dss_signature(r, s), digest(f"sign {purpose}", content), ec.ECDSA(SHA256()))
        except InvalidSignature:
            pass
        else:
            return
    raise BadMessage(f"The signature of this {purpose} is not by the key {fingerprint(public)}; it is not to be used.")


def private_key(private: bytes) -> ec.EllipticCurvePrivateKey:
    """A private key as the library wants it; what is wrong with one is never shown by its bytes."""
    if len(private) == PRIVATE_BYTES:
        try:
            return ec.derive_private_key(int.from_bytes(private, "big"), ec.SECP256R1())
        except ValueError:
            pass
    raise BadMessage(
        "A private key is 32 bytes, a number below the order of P-256 and above 0; this is something else."
    )


def public_key(public: bytes) -> ec.EllipticCurvePublicKey:
    """A public key as the library wants it, if it is a point of the curve."""
    if len(public) == PUBLIC_BYTES and public[0] == 4:
        try:
            return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
        except ValueError:
            pass
    raise BadMessage("A public key is the 65 bytes of an uncompressed point of P-256; this is something else.")


def fingerprint(public: bytes) -> str:
    """What people compare: 128 bits of a digest of the key, in groups of four digits."""
    digits = digest("fingerprint", public).hex()[:32]
    return " ".join(digits[place : place + 4] for place in range(0, 32, 4))


def successor_statement(old: bytes, new: bytes) -> bytes:
    """What the old key signs so that the new one may take its place."""
    return old + new


def sign_successor(old_private: bytes, new: bytes) -> bytes:
    """The old key's word that the new public key is the same server's."""
    return sign(old_private, "successor", successor_statement(public_key_of(old_private), new))


def verify_successor(old: bytes, new: bytes, signature: bytes) -> None:
    """Refuse a new key that the old one has not signed for."""
    public_key(new)
    verify(old, "successor", successor_statement(old, new), signature)


def follow(pinned: bytes, successions: Iterable[tuple[bytes, bytes, bytes]]) -> bytes:
    """The key that stands for a pinned one now: from old to new, by what each old key has signed, in this order."""
    return successors(pinned, successions)[-1]


def successors(pinned: bytes, successions: Iterable[tuple[bytes, bytes, bytes]]) -> list[bytes]:
    """A pinned key and all that have stood for it since, the one of now at the end."""
    known = [pinned]
    for old, new, signature in successions:
        if old == known[-1]:
            verify_successor(old, new, signature)
            known.append(new)
    return known


class HelperIdentity(NamedTuple):
    """Who a helper says it is, at its own address."""

    key: bytes
    origin: str
    successions: list[tuple[bytes, bytes, bytes]]

    def successors_of(self, pinned: bytes) -> list[bytes]:
        """A pinned key and all that have stood for it since, the one of now at the end; the helper must have that."""
        known = successors(pinned, self.successions)
        if known[-1] != self.key:
            raise BadMessage(
                f"The federation config names a helper whose key is {fingerprint(pinned)}, and the helper at "
                f"{self.origin} has {fingerprint(self.key)}, which the first has not signed for."
            )
        return known


def identity_from(content: bytes) -> HelperIdentity:
    """What a helper answers about itself; raises `BadMessage` where it does not say it."""
    try:
        answer = json.loads(content)
        key = hexadecimal(answer["key"], PUBLIC_BYTES, "The helper's key")
        steps = [
            (
                hexadecimal(step["old"], PUBLIC_BYTES, "A helper's old key"),
                hexadecimal(step["new"], PUBLIC_BYTES, "A helper's new key"),
                hexadecimal(step["signature"], SIGNATURE_BYTES, "A helper's signature"),
            )
            for step in answer["successions"]
        ]
        return HelperIdentity(key, str(answer["origin"]), steps)
    except (ValueError, KeyError, TypeError, RecursionError) as reason:
        raise BadMessage(f"The helper does not say who it is ({reason!r}).") from reason


def read_by_any(keys: Sequence[bytes], read: Callable[[bytes, bytes], Read], content: bytes) -> Read:
    """What one of these keys has signed, the newest key first: a statement may be older than a key."""
    for key in keys[:0:-1]:
        with suppress(BadMessage):
            return read(content, key)
    return read(content, keys[0])


# Sealing: a few bytes that only anyone who has a round's key can open, by HPKE (RFC 9180) in base mode.


SUITE = "DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM"
OVERHEAD = 65 + 16

_SUITE = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


def seal(public: bytes, info: bytes, content: bytes) -> bytes:
    """Content that only the holder of this public key's private key can open."""
    return _SUITE.encrypt(content, public_key(public), info)


def open_with(key: EllipticCurvePrivateKey, info: bytes, sealed: bytes) -> bytes | None:
    """What was sealed for this key and this purpose, or None: the reason why it does not open is not disclosed."""
    if len(sealed) < OVERHEAD:
        return None
    try:
        return bytes(_SUITE.decrypt(sealed, key, info))
    except (InvalidTag, ValueError):
        return None
