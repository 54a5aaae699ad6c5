"""Alternating least squares (Hu et al., 2008): the squares of models/squares.py, solved exactly, one side at a time.

With the items' vectors Y fixed, each person's best vector is the answer of a small system of equations

    (w Y'Y + (1 + alpha - w) Y_u'Y_u + lambda_u I) x  =  (1 + alpha) sum of Y_u

and with everybody's vectors fixed, each item's is the same with the sides exchanged. `solve_person` in
models/squares.py says it in three lines; here it is said to the compiler. Outer products are added four at a time, so
that the table they are added to is fetched once for four, and the system is taken apart as R'R from its last row
upwards, so that the innermost loops run along memory, from its beginning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank.compiling import compiled
from federank.models.rows import inlined


class Room(NamedTuple):
    """Scratch for one worker."""

    own: FloatMatrix
    sides: RealMatrix
    aim: RealVector


def new_room(factors: int) -> Room:
    """Scratch for one worker."""
    square = factors, factors
    return Room(np.empty(square, dtype=np.float32), np.empty(square), np.empty(factors))


@compiled(allocates=False)
def solve_rows(
    starts: LongVector,
    others: IntVector,
    vectors: FloatMatrix,
    gram: RealMatrix,
    liked: float,
    unobserved: float,
    pulls: FloatVector,
    first: int,
    last: int,
    solved: FloatMatrix,
    room: Room,
) -> None:
    """The best vectors of rows `first` to just before `last`, from those of the others that each row has.

    `gram` is Y'Y of all others, `pulls` each row's lambda.
    """
    own, sides, aim = room.own, room.sides, room.aim
    size = vectors.shape[1]
    more = np.float32(liked - unobserved)
    for row in range(first, last):
        begin, end = starts[row], starts[row + 1]
        _add_up_own(others, begin, end, vectors, own, aim)
        for f in range(size):
            aim[f] *= liked
            for g in range(f + 1):
                sides[f, g] = unobserved * gram[f, g] + more * own[f, g]
            sides[f, f] += pulls[row]
        _solve_lower(sides, aim)
        for f in range(size):
            solved[row, f] = np.float32(aim[f])


@inlined
def _add_up_own(others: Any, begin: Any, end: Any, vectors: Any, own: Any, aim: Any) -> None:
    """The lower half of the sum of y y' into `own`, and the sum of y into `aim`."""
    size = vectors.shape[1]
    for f in range(size):
        aim[f] = 0.0
        for g in range(f + 1):
            own[f, g] = np.float32(0)
    k = begin
    while k + 4 <= end:
        a, b, c, d = vectors[others[k]], vectors[others[k + 1]], vectors[others[k + 2]], vectors[others[k + 3]]
        for f in range(size):
            one, two, three, four = a[f], b[f], c[f], d[f]
            aim[f] += np.float64(one) + np.float64(two) + np.float64(three) + np.float64(four)
            for g in range(f + 1):
                own[f, g] += one * a[g] + two * b[g] + three * c[g] + four * d[g]
        k += 4
    while k < end:
        a = vectors[others[k]]
        for f in range(size):
            one = a[f]
            aim[f] += np.float64(one)
            for g in range(f + 1):
                own[f, g] += one * a[g]
        k += 1


@inlined
def _solve_lower(sides: Any, aim: Any) -> None:
    """Solve in place by the decomposition R'R of the lower triangle of `sides`, R lower; `aim` becomes the answer."""
    size = len(aim)
    for k in range(size - 1, -1, -1):
        root = np.sqrt(sides[k, k])
        for g in range(k + 1):
            sides[k, g] /= root
        for f in range(k):
            factor = sides[k, f]
            for g in range(f + 1):
                sides[f, g] -= factor * sides[k, g]
    for k in range(size - 1, -1, -1):  # R'z = aim
        aim[k] /= sides[k, k]
        for g in range(k):
            aim[g] -= sides[k, g] * aim[k]
    for f in range(size):  # R x = z
        for g in range(f):
            aim[f] -= sides[f, g] * aim[g]
        aim[f] /= sides[f, f]
