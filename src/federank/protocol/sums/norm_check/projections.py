"""Projections: random sums and differences of a message's numbers, which both servers can take of their shares.

A coefficient is A - B for two random bits: 0 with probability 1/2, 1 and -1 with 1/4 each. The bits are a key stream:
for every eight numbers one byte of A bits for each projection, then one byte of B bits for each; bit b of a byte
belongs to the b-th of the eight. So all sums of subsets of eight numbers are made once, 256 of them, and a projection
looks two of them up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.compiling import compiled
from federank.protocol.sums.masks import KeyStream, RingVector

_TOGETHER = 512
"""Groups of eight numbers whose bits are made at a time: they stay in the processor's nearest memories."""


def project(key: bytes, context: bytes, projections: int, *vectors: RingVector) -> NDArray[np.uint32]:
    """The projections of vectors in the ring, one row for each vector."""
    stream = KeyStream(key, context, "projections")
    length = len(vectors[0])
    found = np.zeros((len(vectors), projections), dtype=np.uint32)
    for begin in range(0, length, 8 * _TOGETHER):
        part = min(length - begin, 8 * _TOGETHER)
        groups = -(-part // 8)
        bits = np.frombuffer(stream.next(groups * 2 * projections), dtype=np.uint8)
        padded = np.zeros(8 * groups, dtype=np.uint32)
        for row, vector in enumerate(vectors):
            padded[:part] = vector[begin : begin + part]
            _add_groups(padded, bits.reshape(groups, 2 * projections), found[row])
    return found


@compiled
def _add_groups(values: RingVector, bits: NDArray[np.uint8], found: RingVector) -> None:
    subsets = np.zeros(256, dtype=np.uint32)
    projections = len(found)
    for group in range(len(bits)):
        size = 1
        for place in range(8):
            value = values[8 * group + place]
            for subset in range(size):
                subsets[size + subset] = subsets[subset] + value
            size *= 2
        for number in range(projections):
            found[number] += subsets[bits[group, number]] - subsets[bits[group, projections + number]]
