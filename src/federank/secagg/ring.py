"""Masks: from 32 bytes, as many words of the ring as a message has, by AES-128 in counter mode.

The ring is the integers mod 2^32: every word of a key stream is one of its elements, without bias or rejection,
and sums wrap where integers do. The AES key comes from seed and context by HKDF-SHA256, so that a seed which was used
in one report gives another mask in every other. The counter starts at zero, because a key is used once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank.checks import check_range
from federank.errors import BadMessage

RingVector = NDArray[np.uint32]
"""Elements of the ring; as bytes they are little-endian."""

SEED_BYTES = 32
_KEY_BYTES, _WORD_BYTES = 16, 4
_PURPOSE = "federank sums 1 "


class KeyStream:
    """The bytes that follow from a secret in one context for one purpose, as they are asked for."""

    def __init__(self, secret: bytes, context: bytes, purpose: str) -> None:
        # Simulations use the ring without the service's dependencies.
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        info = (_PURPOSE + purpose).encode()
        key = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=context, info=info).derive(secret)
        self._encryptor = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def next(self, length: int) -> bytes:
        """The next bytes of the stream."""
        return self._encryptor.update(bytes(length))


def mask(seed: bytes, context: bytes, length: int) -> RingVector:
    """The mask of this seed in this context: this many elements of the ring."""
    return np.frombuffer(KeyStream(seed, context, "mask").next(_WORD_BYTES * length), dtype="<u4")


def ring_bytes(elements: RingVector) -> bytes:
    """Elements of the ring as they travel and are stored."""
    return elements.astype("<u4", copy=False).tobytes()


def ring_from(content: bytes | memoryview) -> RingVector:
    """Elements of the ring from their bytes."""
    return np.frombuffer(content, dtype="<u4")


# Rounding: a message becomes integers of bounded length, which add up in the ring of 32-bit words.


PRIVATE, SPECTRAL, GRADIENTS = RECIPES = ("private", "spectral", "gradients")
"""The recipes of uploads (config.py), here because methods name them without the packages of the service."""
C_INT = 4096
"""The largest L2 norm of a message in integers."""
FARTHEST = 9.1
"""No noise is farther from zero than this many deviations."""
_SHRINKING = 1 - 2.0**-12
_CHANCES = 2.0**-16


def round_message(values: RealVector, clip: float, chances: NDArray[np.uint16]) -> IntVector:
    """The message as integers of norm at most `C_INT`; `chances` are uniform, one for each number."""
    norm = math.sqrt(float(np.cumsum(values * values)[-1])) if len(values) else 0.0
    if not math.isfinite(norm):
        raise BadMessage("A message holds values that are not finite numbers, and nothing of it may be sent.")
    return rounded(values, C_INT / max(clip, norm), chances)


def rounded(values: RealVector, factor: float, chances: NDArray[np.uint16]) -> IntVector:
    """The values times `factor`, up or down by their chances, and shorter until their norm is at most `C_INT`."""
    thresholds = chances * _CHANCES
    while True:
        integers = np.floor(values * factor + thresholds)
        length = float(integers @ integers)  # integers below 2^53: exact in any order
        if length <= C_INT * C_INT:
            return integers.astype(np.int32)
        factor *= C_INT / math.sqrt(length) * _SHRINKING


def in_ring(integers: NDArray[np.signedinteger]) -> NDArray[np.uint32]:
    """Integers modulo 2^32."""
    return integers.astype(np.int64).astype(np.uint32)


def centred(summed: NDArray[np.uint32]) -> IntVector:
    """A sum in the ring as the signed numbers nearest to zero."""
    return summed.astype(np.uint32, copy=False).view(np.int32)


def in_units(integers: NDArray[np.signedinteger], clip: float) -> RealVector:
    """Integers, or sums of them, in the message's own unit again."""
    values: RealVector = integers.astype(np.float64) * (clip / C_INT)
    return values


# Noise: a normal number rounded to an integer, drawn from a table of its distribution function in 128 bits.


LEAST_DEVIATION, MOST_DEVIATION = 64.0, 2.0**22
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_WITHOUT_SIGN = np.uint64(2**63 - 1)


class NoiseTable(NamedTuple):
    """The distribution function of the size |k|: below(k) = high 2^64 + low of 2^127."""

    high: NDArray[np.uint64]  # of sizes 1, 2, ...: how likely a smaller size is
    low: NDArray[np.uint64]


@lru_cache(maxsize=16)
def noise_table(deviation: float) -> NoiseTable:
    """The table of a normal number of this deviation, rounded."""
    check_range("The deviation of noise", deviation, LEAST_DEVIATION, MOST_DEVIATION)
    sizes = np.arange(int(FARTHEST * deviation) + 1, dtype=np.float64)
    t = (sizes / deviation) ** 2
    density = np.exp(-t / 2) / (np.sqrt(2 * np.pi) * deviation)
    cells = density * (1 + (t - 1) / (24 * deviation**2) + (t * t - 6 * t + 3) / (1920 * deviation**4))
    cells[1:] *= 2  # either sign
    # Largest sizes first: small numbers are added up before large ones, and zero gets what is left over of 2^127.
    upper, lower = _added_up(cells[:0:-1])
    borrow = (lower > 0).astype(np.uint64)
    high, low = np.uint64(2**63) - upper - borrow, np.uint64(0) - lower
    return NoiseTable(high[::-1].copy(), low[::-1].copy())


def rounded_noise(table: NoiseTable, bits: NDArray[np.uint64]) -> LongVector:
    """Integers, one for each row of two random 64-bit words."""
    first, second = bits[:, 0], bits[:, 1]
    size_bits = first & _WITHOUT_SIGN
    sizes = np.searchsorted(table.high, size_bits, side="right")
    # The last size whose upper word is the same may still be above: its lower word decides. It happens next to never.
    for number in np.flatnonzero(table.high[np.maximum(sizes, 1) - 1] == size_bits):
        while sizes[number] and table.high[sizes[number] - 1] == size_bits[number]:
            if table.low[sizes[number] - 1] <= second[number]:
                break
            sizes[number] -= 1
    negative = first > _WITHOUT_SIGN
    return np.where(negative, -sizes, sizes).astype(np.int64)


def _added_up(cells: NDArray[np.float64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Running sums of probabilities as 127-bit numbers, in two words: sums of 32-bit limbs, then the carries."""
    limbs, rest = [], np.ldexp(cells, 31)
    for _ in range(4):
        limb = np.floor(rest)
        limbs.append(np.cumsum(limb.astype(np.uint64)))
        rest = np.ldexp(rest - limb, 32)  # exact: a double has no more than 53 bits
    for place in (3, 2, 1):
        limbs[place - 1] += limbs[place] >> _HALF
        limbs[place] &= _LOW
    return (limbs[0] << _HALF) | limbs[1], (limbs[2] << _HALF) | limbs[3]


# Sums that no cohort of honest clients can have made.
#
# Every honest message has a norm of at most C_INT in integers, so the sum of K of them has at most K C_INT, and so has
# every row of it. Noise adds to that: the length of n normal numbers of deviation s exceeds s (sqrt(n) + t) with a
# probability below e^(-t^2 / 2). A sum or a row beyond both together, which chance would bring with less than 2^-40,
# was made by someone who did not keep to the protocol, and is not aggregated. What a malicious client can do below it
# is in docs/sums.md.


RARE_BITS = 40


def longest(messages: int, deviation: float, numbers: int, looks: int = 1) -> float:
    """The longest that this many numbers of a sum can be, but for a chance of 2^-40 over all looks."""
    tail = math.sqrt(2 * math.log(2) * (RARE_BITS + math.log2(max(1, looks))))
    return messages * C_INT + deviation * (math.sqrt(numbers) + tail)


def implausible(total: IntVector, columns: int, messages: int, noise: int) -> str | None:
    """Why a sum cannot be of this many honest messages with noise of two servers; None where it can."""
    # Rounding noise to integers adds at most half a unit to each.
    deviation = math.sqrt(2.0) * noise
    slack = 0.5 * 2
    values = total.astype(np.float64)
    squared = values * values
    rows = np.sqrt(squared.reshape(-1, columns).sum(axis=1))
    bound = longest(messages, deviation, columns, 2 * len(rows))
    if len(rows) and rows.max() > bound + slack * math.sqrt(columns):
        return f"a row's norm is {rows.max():,.0f}, and {messages:,} messages with noise give at most {bound:,.0f}"
    length, bound = math.sqrt(float(squared.sum())), longest(messages, deviation, len(values), 2)
    if length > bound + slack * math.sqrt(len(values)):
        return f"the sum's norm is {length:,.0f}, and {messages:,} messages with noise give at most {bound:,.0f}"
    return None
