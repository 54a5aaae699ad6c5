"""The circuit: what must be true of a client's wires, as one sum of products that must be zero.

With bits b (all wires), y_j the value that 16 bits of projection j write, w_j its wrap bit, s the number that the last
bits write, L_j and H_j the two servers' projections as numbers below 2^32 (the leader's moved up by 2^31), and random
rho, sigma, kappa:

    every wire is a bit                    sum rho_i  b_i (b_i - 1)
    the squares and s add up to T          kappa (sum y_j y_j + s - T)
    each value is the one projected        sum sigma_j (L_j + H_j - 2^31 - 2^32 w_j - y_j)

Products are the gates; the rest is linear, and each server takes it of its own share. What is constant is the leader's:
`one` is 1 for the leader and for the client, which knows all of it, and 0 for the helper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.compiling import compiled
from federank.secagg.canonical import digest
from federank.secagg.proof.field import (
    MODULUS,
    Elements,
    combined,
    differences,
    element,
    inner,
    powers,
    products,
    total,
)
from federank.secagg.proof.parameters import ELEMENT_BYTES, RANGE_BITS, Parameters
from federank.secagg.ring import KeyStream, RingVector

_MOVED = 2**31
_BITS = RANGE_BITS + 1


class Parts(NamedTuple):
    """Digests of what a report's shares are: they were fixed before anything that is drawn from them."""

    context: bytes
    leader: bytes
    helper: bytes


class Drawn(NamedTuple):
    """The random coefficients that the circuit's demands are added up with."""

    rho: Elements
    sigma: Elements
    kappa: Elements


def projection_key(parts: Parts) -> bytes:
    """What the projections of a report are drawn from: both shares of the message, so neither can follow them."""
    return digest("projections", *parts)


def wires_part(context: bytes, blind: bytes, wires: Elements) -> bytes:
    """The digest of the leader's share of the wires; the helper's follows from the seed."""
    return digest("wires", context, blind, element_bytes(wires))


def drawn_coefficients(parameters: Parameters, parts: Parts, part_wires: bytes) -> Drawn:
    """Coefficients that follow from all shares of the message and of the wires."""
    stream = KeyStream(digest("joint", *parts, part_wires), parts.context, "joint")
    wires, projections = parameters.wires, parameters.projections
    result = random_elements(stream, wires + projections + 1)
    return Drawn(result[:wires], result[wires:-1], result[-1:])


def random_elements(stream: KeyStream, count: int) -> Elements:
    """This many elements of the field: the words of a key stream, but those that are no element."""
    result: Elements = np.empty(0, dtype=np.uint64)
    while len(result) < count:
        words = np.frombuffer(stream.next(ELEMENT_BYTES * (count - len(result))), dtype="<u8").astype(np.uint64)
        result = np.concatenate([result, words[words < MODULUS]])
    return result


def element_bytes(elements: Elements) -> bytes:
    """Elements as they travel."""
    return elements.astype("<u8", copy=False).tobytes()


def leader_numbers(projected: RingVector) -> Elements:
    """The leader's projections as elements, moved up so that a sum with the helper's wraps at most once."""
    moved: RingVector = projected + np.uint32(_MOVED)
    return moved.astype(np.uint64)


def helper_numbers(projected: RingVector) -> Elements:
    """The helper's projections as elements."""
    return projected.astype(np.uint64)


def gates(parameters: Parameters, wires: Elements, drawn: Drawn, one: int) -> NDArray[np.uint64]:
    """The inputs of the gadget's calls: a row for each call, its left inputs and then its right ones."""
    values = _values(parameters, wires, one)
    kappas = np.repeat(drawn.kappa, len(values))
    ones = np.full(len(wires), one, dtype=np.uint64)
    calls, columns = parameters.points - 1, parameters.columns
    result = np.zeros((2, calls * columns), dtype=np.uint64)
    result[0, : len(wires) + len(values)] = np.concatenate([products(drawn.rho, wires), products(kappas, values)])
    result[1, : len(wires) + len(values)] = np.concatenate([differences(wires, ones), values])
    return np.hstack([result[0].reshape(calls, columns), result[1].reshape(calls, columns)])


def linear(parameters: Parameters, wires: Elements, numbers: Elements, drawn: Drawn, one: int) -> int:
    """The part of the sum that has no products in it; `numbers` are a server's projections as elements."""
    values = _values(parameters, wires, one)
    wraps = wires[: _BITS * parameters.projections].reshape(-1, _BITS)[:, RANGE_BITS]
    slack = wires[_BITS * parameters.projections :]
    projected = inner(drawn.sigma, differences(numbers, values)) - 2**32 * inner(drawn.sigma, wraps)
    projected -= one * _MOVED * total(drawn.sigma)
    left = inner(powers(2, len(slack)), slack) - one * parameters.limit
    return (projected + int(drawn.kappa[0]) * left) % MODULUS


def _values(parameters: Parameters, wires: Elements, one: int) -> Elements:
    """y: the values that the bits of the projections write."""
    bits = wires[: _BITS * parameters.projections].reshape(-1, _BITS)[:, :RANGE_BITS]
    written = combined(powers(2, RANGE_BITS), np.ascontiguousarray(bits.T))
    return differences(written, np.repeat(element(one * 2 ** (RANGE_BITS - 1)), len(written)))


# Projections: random sums and differences of a message's numbers, which both servers can take of their shares.


_TOGETHER = 512
"""Groups of eight numbers whose bits are made at a time: they stay in the processor's nearest memories."""


def project(key: bytes, context: bytes, projections: int, *vectors: RingVector) -> NDArray[np.uint32]:
    """The projections of vectors in the ring, one row for each vector."""
    stream = KeyStream(key, context, "projections")
    length = len(vectors[0])
    result = np.zeros((len(vectors), projections), dtype=np.uint32)
    for begin in range(0, length, 8 * _TOGETHER):
        part = min(length - begin, 8 * _TOGETHER)
        groups = -(-part // 8)
        bits = np.frombuffer(stream.next(groups * 2 * projections), dtype=np.uint8)
        padded = np.zeros(8 * groups, dtype=np.uint32)
        for row, vector in enumerate(vectors):
            padded[:part] = vector[begin : begin + part]
            _add_groups(padded, bits.reshape(groups, 2 * projections), result[row])
    return result


@compiled
def _add_groups(values: RingVector, bits: NDArray[np.uint8], result: RingVector) -> None:
    subsets = np.zeros(256, dtype=np.uint32)
    projections = len(result)
    for group in range(len(bits)):
        size = 1
        for place in range(8):
            value = values[8 * group + place]
            for subset in range(size):
                subsets[size + subset] = subsets[subset] + value
            size *= 2
        for number in range(projections):
            result[number] += subsets[bits[group, number]] - subsets[bits[group, projections + number]]
