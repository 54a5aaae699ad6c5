"""Secure aggregation of any method, derived from its records.

The secure vector of an update is `flatten` of an empty aggregate to which the update was added: the sum of the vectors
is the aggregate. Vectors are clipped to `method.norm_bound`, rounded to integers and summed in the ring (ring.py).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank.federation import wire
from federank.federation.method import FederatedMethod
from federank.federation.rng import ROUNDING, SUM_NOISE, words, words_wrap_around
from federank.secagg.canonical import digest
from federank.secagg.ring import C_INT, in_units, noise_table, round_message, rounded_noise

_LOW_HALF = np.uint32(0xFFFF)
_HALF = np.uint32(16)


def length_of(method: FederatedMethod, stage: int = 0) -> int:
    """Length of the secure vector."""
    return len(wire.flatten(method.empty(stage)))


def secure_vector(method: FederatedMethod, stage: int, update: object) -> RealVector:
    """The vector that an update adds to the sum."""
    one = method.empty(stage)
    method.add(one, update)
    return wire.flatten(one)


def secure_message(method: FederatedMethod, stage: int, update: object, chances: NDArray[np.uint16]) -> IntVector:
    """The same, clipped and rounded to integers; `chances` are uniform, one per number."""
    return round_message(secure_vector(method, stage, update), method.norm_bound, chances)


def aggregate_from(method: FederatedMethod, stage: int, total: NDArray[np.signedinteger]) -> object:
    """The aggregate of a sum of messages. The host fills in the numbers of clients."""
    aggregate = wire.unflatten(method.empty(stage), in_units(total, method.norm_bound))
    aggregate.noise = method.noise * math.sqrt(2) * method.norm_bound / C_INT
    return aggregate


# Random numbers of a simulation; real clients and servers use the operating system's.


def simulated_chances(seed: int, user: int, round_number: int, length: int) -> NDArray[np.uint16]:
    """A client's random numbers for rounding: each word gives two."""
    drawn = _words(seed, user, ROUNDING, round_number, -(-length // 8))
    return np.column_stack((drawn & _LOW_HALF, drawn >> _HALF)).astype(np.uint16).ravel()[:length]


def simulated_noise(seed: int, round_number: int, deviation: int, length: int, server: int) -> LongVector:
    """One server's noise on a round's sum."""
    if not deviation:
        return np.zeros(length, dtype=np.int64)
    drawn = _words(seed, server, SUM_NOISE, round_number, length).astype(np.uint64).reshape(length, 4)
    bits = (drawn[:, ::2] << np.uint64(32)) | drawn[:, 1::2]
    return rounded_noise(noise_table(float(deviation)), bits)


def _words(seed: int, user: int, purpose: int, round_number: int, count: int) -> NDArray[np.uint32]:
    counters = np.arange(count, dtype=np.uint32)
    with words_wrap_around():
        drawn = words(np.uint32(seed), np.uint32(user), purpose, np.uint32(round_number), counters)
    return np.column_stack(drawn).astype(np.uint32).ravel()


def model_digest(version: int, parts: Mapping[str, NDArray[Any]]) -> bytes:
    """Digest of a model as clients read it: its version, and every array by name. Empty arrays are not sent."""
    content = [struct.pack("<Q", version)]
    for name in sorted(name for name, part in parts.items() if part.size):
        content += [name.encode(), str(parts[name].dtype).encode(), np.ascontiguousarray(parts[name]).tobytes()]
    return digest("method-model", *content)
