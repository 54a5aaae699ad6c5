"""Sealing: a few bytes that only whoever has a round's key can open, by HPKE (RFC 9180) in base mode.

The suite is DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, from the `cryptography` package; every browser has its
parts. What is sealed is the encapsulated key (65 bytes) and then the ciphertext, 16 bytes longer than what went in.
`info` ties it to what it is for: with another one it does not open.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from federank.protocol.sums.identities import public_key

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
