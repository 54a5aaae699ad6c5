"""Ratings as sums that no single server can open: a message that names every item, and a step that reads only sums.

    message   a row for every item: the gradient of V_i, that of W_i for SVD++, and a count, 1 where the person has
              rated the item; zeros elsewhere. As a whole it is scaled down to the charter's clip, which bounds what
              one person's ratings can change, and becomes whole numbers (sums/rounding.py)
    step      that of a plain round (aggregation.py), for every item whose count stands out

Which items were rated shows in no message, so none needs virtual ratings. Whoever is scaled down is so in gradients and
counts alike: the quotient stays a mean, in which that person weighs less.

A count carries the noise of both servers, of deviation s. It *stands out* where it is above `STANDS_OUT` s; without
noise, above 0. An item whose count does not is left as it is: it would step by noise. So the noise in a step that is
made has at most a deviation of 1 / `STANDS_OUT` a number, before the rate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector, RealVector
from federank.protocol.ratings.aggregation import GradientSums
from federank.protocol.ratings.messages import RatingUpdate
from federank.protocol.sums.rounding import C_INT, in_units

STANDS_OUT = 8.0
"""Deviations of noise above which a count is taken to be one."""


def columns_of_gradients(factors: int, *, implicit: bool) -> int:
    """Numbers a row of a message: gradients, and a count."""
    return factors * (2 if implicit else 1) + 1


def dense_gradients(update: RatingUpdate, n_items: int, *, implicit: bool) -> RealVector:
    """An Update without virtual ratings as a message that names every item, row by row."""
    factors = update.vectors.shape[1]
    rows = np.zeros((n_items, columns_of_gradients(factors, implicit=implicit)))
    rows[update.items, :factors] = update.vectors
    if implicit:
        rows[update.implicit_items, factors:-1] = update.implicit_vectors
    rows[update.items, -1] = 1.0
    return rows.ravel()


def summed_gradients(total: IntVector, clip: float, noise: int, n_items: int, *, implicit: bool) -> GradientSums:
    """The sum of all messages as gradients and counts; those of items whose count does not stand out are zero.

    `total` is in integers, `noise` is the deviation of one server's noise on it.
    """
    sums = in_units(total, clip).reshape(n_items, -1)
    counts = sums[:, -1]
    deviation = math.sqrt(2) * noise * clip / C_INT
    stands_out: NDArray[np.bool_] = counts > STANDS_OUT * deviation
    kept = np.where(stands_out[:, None], sums, 0.0)
    gradients, counts = kept[:, :-1], kept[:, -1]
    if not implicit:
        return GradientSums(gradients, counts, gradients[:0], counts[:0])
    vectors, implicit_vectors = np.split(gradients, 2, axis=1)
    return GradientSums(vectors, counts, implicit_vectors, counts)
