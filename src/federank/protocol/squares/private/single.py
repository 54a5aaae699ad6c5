"""One device's message, outside of a simulation: the steps of message.py, in the order in which a browser does them.

Sums are taken in the order of their numbers and nothing is fused, so the page's message
(service/page/protocol/squares/private/message.js) is the same to the last bit, given the same chances. The chances of
rounding are the operating system's, and nobody else has them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector, IntVector, RealVector
from federank.errors import BadMessage
from federank.protocol.squares.private.message import Directions
from federank.protocol.sums.rounding import C_INT, rounded

_NOTHING = 1e-20


def directions_at_home(vectors: FloatMatrix, weights: FloatVector) -> Directions:
    """What a device of a later round works out from the model: vectors are D^-1 [V, q], weights D^2."""
    scales = np.sqrt(weights.astype(np.float64))
    placed = vectors.astype(np.float64) * scales[:, None]
    popular = placed[:, -1]
    length = math.sqrt(_summed(popular * popular))
    return Directions(scales, np.ascontiguousarray(placed[:, :-1]), popular / length if length > 0 else popular)


def one_message(
    stage: int, n_items: int, profile: IntVector, known: Directions | None, chances: NDArray[np.uint16]
) -> IntVector:
    """The message of a plan's stage, in whole numbers; `known` is needed by all stages but the first.

    A history that gives no direction sends zeros. What is not finite is refused before anything is rounded.
    """
    made = _popularity(n_items, profile) if stage == 0 or known is None else _history(profile, known)
    if made is None:
        return np.zeros(len(chances), dtype=np.int32)
    row, pointed = made
    values: RealVector = np.multiply.outer(row, pointed).ravel()
    if not np.isfinite(values).all():
        raise BadMessage("A message holds values that are not finite numbers, and nothing of it may be sent.")
    return rounded(values, float(C_INT), chances)


def _popularity(n_items: int, profile: IntVector) -> tuple[RealVector, RealVector]:
    row = np.zeros(n_items)
    row[profile] = 1.0 / math.sqrt(len(profile))
    return row, np.ones(1)


def _history(profile: IntVector, known: Directions) -> tuple[RealVector, RealVector] | None:
    own = known.scales[profile]
    row = -_summed(known.popular[profile] * own) * known.popular
    row[profile] += own
    length = _summed(row * row)
    pointed: RealVector = np.cumsum(row[:, None] * known.wanted, axis=0)[-1]
    aim = _summed(pointed * pointed)
    if length <= _NOTHING or aim <= _NOTHING:
        return None
    return row / math.sqrt(length), pointed / math.sqrt(aim)


def _summed(values: RealVector) -> float:
    """A sum in the order of its numbers, as a loop takes it."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0
