"""Masks: from 32 bytes, as many words of the ring as a message has, by AES-128 in counter mode.

The ring is the whole numbers mod 2^32: every word of a key stream is one of its elements, without bias or rejection,
and sums wrap where integers do. The AES key comes from seed and context by HKDF-SHA256, so that a seed which was used
in one report gives another mask in every other. The counter starts at zero, because a key is used once.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

RingVector = NDArray[np.uint32]
"""Elements of the ring; as bytes they are little-endian."""

SEED_BYTES = 32
_KEY_BYTES, _WORD_BYTES = 16, 4
_PURPOSE = "federank sums 1 "


class KeyStream:
    """The bytes that follow from a secret in one context for one purpose, as they are asked for."""

    def __init__(self, secret: bytes, context: bytes, purpose: str) -> None:
        info = (_PURPOSE + purpose).encode()
        key = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=context, info=info).derive(secret)
        self._encryptor = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def next(self, length: int) -> bytes:
        """The next bytes of the stream."""
        return self._encryptor.update(bytes(length))


def mask(seed: bytes, context: bytes, length: int) -> RingVector:
    """The mask of this seed in this context: so many elements of the ring."""
    return np.frombuffer(KeyStream(seed, context, "mask").next(_WORD_BYTES * length), dtype="<u4")


def ring_bytes(elements: RingVector) -> bytes:
    """Elements of the ring as they travel and are stored."""
    return elements.astype("<u4", copy=False).tobytes()


def ring_from(content: bytes | memoryview) -> RingVector:
    """Elements of the ring from their bytes."""
    return np.frombuffer(content, dtype="<u4")
