"""Noise: a normal number rounded to a whole one, drawn from a table of its distribution function in 128 bits.

For whole x, x + round(N) = round(x + N): a sum with rounded noise is what anybody could make from the same sum with
exact noise, so the figures of the normal distribution hold for it (accountant.py). The probability of k, for a normal
number of deviation s and with t = k / s, is the integral of the density from k - 1/2 to k + 1/2:

    phi(t) / s  x  (1 + (t^2 - 1) / (24 s^2) + (t^4 - 6 t^2 + 3) / (1920 s^4) + ...)

right to 2e-11 of itself for s of `LEAST_DEVIATION` or more. So a person's epsilon moves by less than 1e-4, even with
millions of numbers. Farther than 9.1 deviations no number lies (probability 1e-19).

A draw is 128 random bits for each number: one says the sign, 127 the size. In a simulation they are four named words
(draws.py), in the service the operating system's; nothing else differs. Here no generator is called at all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import LongVector
from federank.checks import within
from federank.protocol.sums.rounding import FARTHEST

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
    within("The deviation of noise", deviation, LEAST_DEVIATION, MOST_DEVIATION)
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
    """Whole numbers, one for each row of two random 64-bit words."""
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
