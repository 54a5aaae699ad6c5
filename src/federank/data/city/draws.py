"""Choices for the synthetic city that come out the same on every machine.

A choice takes raw words of a bit generator, which NumPy promises never to change, and weights that are whole
numbers, so that no rounding differs from one processor to another. Each stream of words has a key of its own
(the seed, what the words are for, and where it matters which part of the city), so no choice moves another.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from federank.arrays import LongVector, RealVector

Words = NDArray[np.uint64]


class Stream(IntEnum):
    """What the words of a stream are for: the part of its key after the seed."""

    SIZES = 0
    POINTS = 1
    PLACES = 2
    RANKS = 3
    NAMES = 4
    NUMBERS = 5
    ACTIVITY = 6
    PEOPLE = 7
    VISITS = 8
    REMAINDERS = 9
    DISCOVERIES = 10
    TIMES = 11


WHOLE = 1 << 20
"""What a weight of 1.0 is as a whole number: weights down to a millionth are told apart."""


def draw_words(key: tuple[int, ...], *shape: int) -> Words:
    """Raw 64-bit words from the stream of this key."""
    stream = np.random.PCG64(np.random.SeedSequence(key))
    words: Words = np.asarray(stream.random_raw(int(np.prod(shape)))).reshape(shape)
    return words


def uniform(words: Words) -> RealVector:
    """Numbers in [0, 1): the upper 53 bits of each word, all that a float holds."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def shuffle(key: tuple[int, ...], count: int) -> LongVector:
    """0, 1, ..., count - 1 in random order."""
    return np.argsort(draw_words(key, count), kind="stable")


def whole_weights(weights: RealVector) -> LongVector:
    """Weights as whole numbers, none of them 0."""
    return np.maximum(np.rint(weights * WHOLE), 1).astype(np.int64)


def running_total(weights: LongVector) -> LongVector:
    """0, the first weight, the sum of the first two, ..., the sum of all."""
    return np.concatenate(([0], np.cumsum(weights, dtype=np.int64)))


def pick(totals: LongVector, first: LongVector | int, last: LongVector | int, words: Words) -> LongVector:
    """For each word one position from first (included) to last (excluded), by weight, given the running totals."""
    below = totals[first]
    tickets = below + (uniform(words) * (totals[last] - below)).astype(np.int64)
    return np.searchsorted(totals, tickets, side="right") - 1


def apportion(total: int, weights: LongVector, limit: int) -> LongVector:
    """Share out whole things by weight: at least 1 and at most `limit` to each, `total` in all."""
    shares = np.minimum(1 + (total - len(weights)) * weights // int(weights.sum()), limit)
    while (left := total - int(shares.sum())) > 0:
        # What rounding and the limit left over goes round evenly among those below the limit.
        open_to_more = np.flatnonzero(shares < limit)[:left]
        shares[open_to_more] = np.minimum(shares[open_to_more] + left // len(open_to_more), limit)
    return shares
