"""The client's part: a message of length 1 in integers, which says nothing that a longer history would not hide.

    first     p / sqrt(n): which items someone has who has n of them
    later     the history, weighted by D and without what is popular anyway, times where it points among the directions
              V that are looked for:

                  c = D p - (q . D p) q      x = V'c      message = c x' / (|c| |x|)        items x directions

              q is the direction of popularity. The sum of these messages is C V for C = sum of c c' / (|c| |x|): one
              step of subspace iteration on what users' items have in common.

A history that gives no direction (c or x is zero) sends zeros. Rounding is that of secagg/ring.py, written
out for a matrix of rank one: the chances are named draws here, and the operating system's on a real client. Compiled
once and called by both engines: the same text makes one message, or adds up everyone's.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import inlined
from federank.errors import BadMessage
from federank.federation.rng import ROUNDING, words
from federank.secagg.ring import C_INT, rounded

_LARGEST = float(C_INT * C_INT)
_SHRINKING = 1 - 2.0**-12
_CHANCES = 2.0**-16


class Directions(NamedTuple):
    """What a client of a later round knows, worked out from the Broadcast once for all of them."""

    scales: RealVector  # D
    wanted: RealMatrix  # items x directions: V
    popular: RealVector  # q, of length 1


class Scratch(NamedTuple):
    """Scratch for one worker."""

    row: RealVector  # items: c / |c|
    pointed: RealVector  # directions: x / |x|
    chances: NDArray[np.uint16]  # items x directions and a few more
    whole: IntVector  # items x directions


def new_scratch(n_items: int, columns: int) -> Scratch:
    """Scratch for one worker's messages of this many columns."""
    cells = n_items * columns
    return Scratch(
        np.zeros(n_items), np.zeros(columns), np.zeros(cells + 8, dtype=np.uint16), np.zeros(cells, dtype=np.int32)
    )


@inlined
def _popularity_row(items: Any, begin: Any, end: Any, workspace: Any) -> Any:
    """p / sqrt(n), with one column."""
    workspace.row[:] = 0.0
    for k in range(begin, end):
        workspace.row[items[k]] = 1.0 / np.sqrt(np.float64(end - begin))
    workspace.pointed[0] = 1.0
    return True


@inlined
def _history_row(known: Any, items: Any, begin: Any, end: Any, workspace: Any) -> Any:
    """c / |c| and x / |x|; whether there is a direction at all."""
    columns = len(workspace.pointed)
    popular = 0.0
    for k in range(begin, end):
        popular += known.popular[items[k]] * known.scales[items[k]]
    length = 0.0
    for item in range(len(workspace.row)):
        workspace.row[item] = -popular * known.popular[item]
    for k in range(begin, end):
        workspace.row[items[k]] += known.scales[items[k]]
    for item in range(len(workspace.row)):
        length += workspace.row[item] * workspace.row[item]
    for f in range(columns):
        workspace.pointed[f] = 0.0
    for item in range(len(workspace.row)):
        for f in range(columns):
            workspace.pointed[f] += workspace.row[item] * known.wanted[item, f]
    pointed = 0.0
    for f in range(columns):
        pointed += workspace.pointed[f] * workspace.pointed[f]
    if length <= 1e-20 or pointed <= 1e-20:
        return False
    for item in range(len(workspace.row)):
        workspace.row[item] /= np.sqrt(length)
    for f in range(columns):
        workspace.pointed[f] /= np.sqrt(pointed)
    return True


@inlined
def _draw_chances(seed: Any, user: Any, round_number: Any, chances: Any, count: Any) -> None:
    """Sixteen random bits for each number: eight of a block of four words."""
    for block in range((count + 7) // 8):
        drawn = words(seed, user, ROUNDING, round_number, block)
        for place in range(4):
            chances[8 * block + 2 * place] = np.uint16(drawn[place] & np.uint32(0xFFFF))
            chances[8 * block + 2 * place + 1] = np.uint16(drawn[place] >> np.uint32(16))


@inlined
def _round_row_by_row(workspace: Any) -> None:
    """The matrix of rank one in integers of norm at most C_INT: round_message of what is of length 1."""
    columns = len(workspace.pointed)
    factor = np.float64(C_INT)
    while True:
        length = np.int64(0)
        for item in range(len(workspace.row)):
            for f in range(columns):
                cell = item * columns + f
                value = np.floor(
                    workspace.row[item] * workspace.pointed[f] * factor + workspace.chances[cell] * _CHANCES
                )
                whole = np.int32(value)
                workspace.whole[cell] = whole
                length += np.int64(whole) * np.int64(whole)
        if length <= _LARGEST:
            return
        factor *= C_INT / np.sqrt(np.float64(length)) * _SHRINKING


@inlined
def _message(
    known: Any,
    items: Any,
    begin: Any,
    end: Any,
    seed: Any,
    user: Any,
    round_number: Any,
    stage: Any,
    workspace: Any,
) -> Any:
    """One message into `workspace.whole`; whether it is other than zeros."""
    pointing = False
    if stage == 0:
        pointing = _popularity_row(items, begin, end, workspace)
    else:
        pointing = _history_row(known, items, begin, end, workspace)
    if pointing:
        _draw_chances(seed, user, round_number, workspace.chances, len(workspace.whole))
        _round_row_by_row(workspace)
    return pointing


@compiled(allocates=False)
def private_message(
    known: Directions, profile: IntVector, seed: int, user: int, round_number: int, stage: int, workspace: Scratch
) -> bool:
    """One client's message into `workspace.whole`; whether it is other than zeros."""
    return bool(_message(known, profile, 0, len(profile), seed, user, round_number, stage, workspace))


@compiled(allocates=False)
def sum_private(
    known: Directions,
    starts: LongVector,
    items: IntVector,
    clients: IntVector,
    seed: int,
    round_number: int,
    stage: int,
    total: NDArray[np.uint32],
    workspace: Scratch,
) -> None:
    """Add these users' messages to a sum in the ring; in which order makes no difference."""
    for place in range(len(clients)):
        user = clients[place]
        if _message(known, items, starts[user], starts[user + 1], seed, user, round_number, stage, workspace):
            for cell in range(len(total)):
                total[cell] += np.uint32(workspace.whole[cell])


# One client's message, outside of a simulation: the steps above, in the order in which a browser does them.


_NOTHING = 1e-20


def directions_of(vectors: FloatMatrix, weights: FloatVector) -> Directions:
    """What a client of a later round works out from the model: vectors are D^-1 [V, q], weights D^2."""
    scales = np.sqrt(weights.astype(np.float64))
    placed = vectors.astype(np.float64) * scales[:, None]
    popular = placed[:, -1]
    length = math.sqrt(_summed(popular * popular))
    return Directions(scales, np.ascontiguousarray(placed[:, :-1]), popular / length if length > 0 else popular)


def one_message(
    stage: int, n_items: int, profile: IntVector, known: Directions | None, chances: NDArray[np.uint16]
) -> IntVector:
    """The message of a plan's stage, in integers; `known` is needed by all stages but the first.

    A history that gives no direction sends zeros. What is not finite is refused before anything is rounded.
    """
    row, pointed = message_parts(n_items, profile, known if stage else None)
    values: RealVector = np.multiply.outer(row, pointed).ravel()
    if not np.isfinite(values).all():
        raise BadMessage("A message holds values that are not finite numbers, and nothing of it may be sent.")
    return rounded(values, float(C_INT), chances)


def message_parts(n_items: int, profile: IntVector, known: Directions | None) -> tuple[RealVector, RealVector]:
    """What a message is the product of: popularity and 1 where nothing is known, else c / |c| and x / |x|."""
    if known is None:
        row = np.zeros(n_items)
        row[profile] = 1.0 / math.sqrt(len(profile))
        return row, np.ones(1)
    own = known.scales[profile]
    row = -_summed(known.popular[profile] * own) * known.popular
    row[profile] += own
    length = _summed(row * row)
    pointed: RealVector = np.cumsum(row[:, None] * known.wanted, axis=0)[-1]
    aim = _summed(pointed * pointed)
    if length <= _NOTHING or aim <= _NOTHING:
        return np.zeros(n_items), np.zeros(len(pointed))
    return row / math.sqrt(length), pointed / math.sqrt(aim)


def _summed(values: RealVector) -> float:
    """A sum in the order of its numbers, as a loop takes it."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0
