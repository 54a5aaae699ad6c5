"""The client's proof: wires and a polynomial, split in two as the message is.

    1. project    both shares of the message, with a key that follows from their digests
    2. wires      the bits of each projection, its wrap bit, and the bits of what is left below T
    3. split      the helper's share of wires and proof follows from the seed; the leader's is the rest
    4. draw       the circuit's coefficients, from the digests of all shares so far
    5. prove      a polynomial for each input of the gadget: a random value at 1, the calls' values at the other roots
                  of unity; and the polynomial that the gadget makes of them

Honest messages are outside of what can be proved with a probability below 2^-40. Then there is no proof, and the client
draws its secrets again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.secagg.proof.circuit import (
    Drawn,
    Parts,
    drawn_coefficients,
    gates,
    helper_numbers,
    leader_numbers,
    linear,
    project,
    projection_key,
    random_elements,
    wires_part,
)
from federank.secagg.proof.field import (
    MODULUS,
    Elements,
    combined,
    differences,
    inner,
    interpolated,
    ntt,
    powers,
    root_of_unity,
    rows_of_products,
    sums,
    total,
    weights_at,
)
from federank.secagg.proof.parameters import RANGE_BITS, Parameters
from federank.secagg.ring import KeyStream, RingVector


class Proof(NamedTuple):
    """What the leader gets, and what is sealed for the helper."""

    share: Elements  # the leader's: wires first
    part_wires: bytes


def prove(
    parameters: Parameters,
    parts: Parts,
    blind: bytes,
    seed: bytes,
    proof_seed: bytes,
    shares: tuple[RingVector, RingVector],
) -> Proof | None:
    """A proof that the two shares of a message add up to a short one, or None where they do not seem to."""
    leader, helper = project(projection_key(parts), parts.context, parameters.projections, *shares)
    wires = wires_of(parameters, leader, helper)
    return None if wires is None else prove_wires(parameters, parts, blind, seed, proof_seed, wires)


def prove_wires(
    parameters: Parameters, parts: Parts, blind: bytes, seed: bytes, proof_seed: bytes, wires: Elements
) -> Proof:
    """A proof about these wires; it holds if they are right."""
    helper_share = random_elements(KeyStream(seed, parts.context, "check"), parameters.elements)
    leader_wires = differences(wires, helper_share[: parameters.wires])
    part_wires = wires_part(parts.context, blind, leader_wires)
    calls = gates(parameters, wires, drawn_coefficients(parameters, parts, part_wires), 1)
    first = random_elements(KeyStream(proof_seed, parts.context, "proof"), 2 * parameters.columns)
    # Evaluated at twice as many roots, the wire polynomials have enough values for their products.
    coefficients = np.zeros((2 * parameters.points, 2 * parameters.columns), dtype=np.uint64)
    coefficients[: parameters.points] = interpolated(np.vstack([first[None, :], calls]))
    values = ntt(coefficients, np.uint64(root_of_unity(len(coefficients))))
    polynomial = interpolated(rows_of_products(values))[: parameters.coefficients, 0]
    proof = differences(np.concatenate([first, polynomial]), helper_share[parameters.wires :])
    return Proof(np.concatenate([leader_wires, proof]), part_wires)


def wires_of(parameters: Parameters, leader: RingVector, helper: RingVector) -> Elements | None:
    """The bits that a client proves things about, from both servers' projections."""
    total = leader_numbers(leader) + helper.astype(np.uint64)
    values = (total & np.uint64(2**32 - 1)).astype(np.int64) - 2**31
    left = parameters.limit - sum(value * value for value in values.tolist())
    if left < 0 or int(np.abs(values).max()) >= 2 ** (RANGE_BITS - 1):
        return None
    moved = (values + 2 ** (RANGE_BITS - 1)).astype(np.uint64)
    places = np.arange(RANGE_BITS, dtype=np.uint64)
    bits = np.column_stack([(moved[:, None] >> places) & np.uint64(1), total >> np.uint64(32)])
    slack = [(left >> place) & 1 for place in range(parameters.slack_bits)]
    return np.concatenate([bits.ravel(), np.array(slack, dtype=np.uint64)])


# The servers' side: each looks at its own share at one point, and the two looks together say yes or no.


class Look(NamedTuple):
    """What one server sees of its share: the gadget's inputs and output at the point, and the circuit's sum."""

    inputs: Elements
    output: int
    circuit: int


def point_of(parameters: Parameters, private: bytes, context: bytes) -> int:
    """Where a report of this round is looked at: never at a root of unity, where a wire would show."""
    stream = KeyStream(private, context, "point")
    while True:
        point = int(random_elements(stream, 1)[0])
        if pow(point, parameters.points, MODULUS) != 1:
            return point


def leader_look(
    parameters: Parameters, parts: Parts, part_wires: bytes, point: int, share: RingVector, proof: Elements
) -> Look:
    """The leader's look at its share of the message and of the proof."""
    projected = project(projection_key(parts), parts.context, parameters.projections, share)[0]
    drawn = drawn_coefficients(parameters, parts, part_wires)
    return _look(parameters, point, leader_numbers(projected), proof, drawn, 1)


def helper_look(
    parameters: Parameters, parts: Parts, part_wires: bytes, point: int, seed: bytes, mask: RingVector
) -> Look:
    """The helper's look at its share, all of which follows from the seed."""
    projected = project(projection_key(parts), parts.context, parameters.projections, mask)[0]
    proof = random_elements(KeyStream(seed, parts.context, "check"), parameters.elements)
    drawn = drawn_coefficients(parameters, parts, part_wires)
    return _look(parameters, point, helper_numbers(projected), proof, drawn, 0)


def holds(leader: Look, helper: Look) -> bool:
    """Whether two looks at one report say that its message is short enough."""
    inputs = sums(leader.inputs, helper.inputs)
    half = len(inputs) // 2
    right_output = inner(inputs[:half], inputs[half:]) == (leader.output + helper.output) % MODULUS
    return right_output and (leader.circuit + helper.circuit) % MODULUS == 0


def _look(parameters: Parameters, point: int, numbers: Elements, share: Elements, drawn: Drawn, one: int) -> Look:
    wires, first, polynomial = np.split(share, [parameters.wires, parameters.wires + 2 * parameters.columns])
    calls = np.vstack([first[None, :], gates(parameters, wires, drawn, one)])
    inputs = combined(weights_at(point, parameters.points), calls)
    output = inner(polynomial, powers(point, len(polynomial)))
    # Over all roots of unity only the coefficients of 1 and of X^points stay; the value at 1 is no call.
    summed = parameters.points * (int(polynomial[0]) + int(polynomial[parameters.points])) - total(polynomial)
    return Look(inputs, output, (summed + linear(parameters, wires, numbers, drawn, one)) % MODULUS)
