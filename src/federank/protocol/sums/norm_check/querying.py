"""The servers' side: each looks at its own share at one point, and the two looks together say yes or no.

The point follows from the round's private key and the report's context: no device can know it, and the same report is
looked at in the same point whoever asks, however often, from whatever backup. What the helper says depends on nothing
but the round's key and what the device sealed. The two looks added up are random values and zeros if the proof holds:
they tell the leader that it does, and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.protocol.sums.masks import KeyStream, RingVector
from federank.protocol.sums.norm_check.circuit import (
    Drawn,
    Parts,
    drawn_coefficients,
    gates,
    helper_numbers,
    leader_numbers,
    linear,
    projection_key,
    random_elements,
)
from federank.protocol.sums.norm_check.field import (
    MODULUS,
    Elements,
    combined,
    inner,
    powers,
    sums,
    total,
    weights_at,
)
from federank.protocol.sums.norm_check.parameters import Parameters
from federank.protocol.sums.norm_check.projections import project


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
