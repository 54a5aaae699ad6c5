"""The device's proof: wires and a polynomial, split in two as the message is.

    1. project    both shares of the message, with a key that follows from their digests
    2. wires      the bits of each projection, its wrap bit, and the bits of what is left below T
    3. split      the helper's share of wires and proof follows from the seed; the leader's is the rest
    4. draw       the circuit's coefficients, from the digests of all shares so far
    5. prove      a polynomial for each input of the gadget: a random value at 1, the calls' values at the other roots
                  of unity; and the polynomial that the gadget makes of them

Honest messages are outside of what can be proved with a probability below 2^-40. Then there is no proof, and the device
draws its secrets anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.protocol.sums.masks import KeyStream, RingVector
from federank.protocol.sums.norm_check.circuit import (
    Parts,
    drawn_coefficients,
    gates,
    leader_numbers,
    projection_key,
    random_elements,
    wires_part,
)
from federank.protocol.sums.norm_check.field import (
    Elements,
    differences,
    interpolated,
    root_of_unity,
    rows_of_products,
    transformed,
)
from federank.protocol.sums.norm_check.parameters import RANGE_BITS, Parameters
from federank.protocol.sums.norm_check.projections import project


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
    # Told at twice as many roots, the wire polynomials have enough values for their products.
    coefficients = np.zeros((2 * parameters.points, 2 * parameters.columns), dtype=np.uint64)
    coefficients[: parameters.points] = interpolated(np.vstack([first[None, :], calls]))
    values = transformed(coefficients, np.uint64(root_of_unity(len(coefficients))))
    polynomial = interpolated(rows_of_products(values))[: parameters.coefficients, 0]
    proof = differences(np.concatenate([first, polynomial]), helper_share[parameters.wires :])
    return Proof(np.concatenate([leader_wires, proof]), part_wires)


def wires_of(parameters: Parameters, leader: RingVector, helper: RingVector) -> Elements | None:
    """The bits that a device proves things about, from both servers' projections."""
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
