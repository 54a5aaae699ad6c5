"""Rounding: a message becomes whole numbers of bounded length, which add up in the ring of 32-bit words.

    1. clip      scale the message down to the L2 norm C, where it is longer
    2. scale     C becomes `C_INT`
    3. round     each number down or up at random, so that it is right on average: floor(v + u), u uniform in [0, 1)
    4. shrink    rounding makes a message a little longer; it is scaled down and rounded again, with the same u, until
                 the norm of the *whole numbers* is at most `C_INT`

So what one person can change in a sum is at most `C_INT` long in whole numbers, whatever the message was; that is the
sensitivity that noise.py's figure rests on, and no floating-point sum has a say in it. Sums are taken modulo 2^32 and
read as signed numbers: nothing is biased or refused, and charter.py keeps every sum from wrapping.

Lengths are summed in the order of the numbers, so that a browser's loop gives the same bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector, RealVector
from federank.errors import BadMessage

C_INT = 4096
"""The largest L2 norm of a message in whole numbers."""
FARTHEST = 9.1
"""No noise is farther from zero than so many deviations."""
_SHRINKING = 1 - 2.0**-12
_CHANCES = 2.0**-16


def round_message(values: RealVector, clip: float, chances: NDArray[np.uint16]) -> IntVector:
    """The message as whole numbers of norm at most `C_INT`; `chances` are uniform, one for each number."""
    norm = math.sqrt(float(np.cumsum(values * values)[-1])) if len(values) else 0.0
    if not math.isfinite(norm):
        raise BadMessage("A message holds values that are not finite numbers, and nothing of it may be sent.")
    return rounded(values, C_INT / max(clip, norm), chances)


def rounded(values: RealVector, factor: float, chances: NDArray[np.uint16]) -> IntVector:
    """The values times `factor`, up or down by their chances, and shorter until their norm is at most `C_INT`."""
    thresholds = chances * _CHANCES
    while True:
        whole = np.floor(values * factor + thresholds)
        length = float(whole @ whole)  # whole numbers below 2^53: exact in any order
        if length <= C_INT * C_INT:
            return whole.astype(np.int32)
        factor *= C_INT / math.sqrt(length) * _SHRINKING


def in_ring(whole: NDArray[np.signedinteger]) -> NDArray[np.uint32]:
    """Whole numbers modulo 2^32."""
    return whole.astype(np.int64).astype(np.uint32)


def centred(summed: NDArray[np.uint32]) -> IntVector:
    """A sum in the ring as the signed numbers nearest to zero."""
    return summed.astype(np.uint32, copy=False).view(np.int32)


def in_units(whole: NDArray[np.signedinteger], clip: float) -> RealVector:
    """Whole numbers, or sums of them, in the message's own unit again."""
    values: RealVector = whole.astype(np.float64) * (clip / C_INT)
    return values
