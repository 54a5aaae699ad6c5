"""Probabilistic matrix factorisation: the maths of predicting a rating from two vectors.

A user's rating of an item is predicted as U_u . V_i (Mnih and Salakhutdinov, 2007; FedRec, 2020, Eq. 1): no mean, no
biases. With the error e = U_u . V_i - r_ui, the gradients of (e^2 + lambda |U_u|^2 + lambda |V_i|^2) / 2 are

    user    e V_i + lambda U_u
    item    e U_u + lambda V_i

They are subtracted, multiplied by the learning rate. SVD++ uses the same three formulas
with more than U_u in the place of U_u.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank._numerics.rows import dot, inlined, load_row, store_row


@inlined
def rating_error(user: Any, item: Any, rating: Any) -> Any:
    """How much too high the predicted rating is."""
    return dot(user, item) - rating


@inlined
def user_gradient(error: Any, user: Any, item: Any, regulariser: Any) -> Any:
    """Away from which the user's own vector should go."""
    return error * item + regulariser * user


@inlined
def item_gradient(error: Any, user: Any, item: Any, regulariser: Any) -> Any:
    """Away from which an item's vector should go."""
    return error * user + regulariser * item


# SVD++: which items a user has rated counts too, whatever the ratings are; and how to learn it cheaply.


_ONE = np.float32(1.0)
_SMALLEST_SCALE = np.float32(1e-3)


class Shift(NamedTuple):
    """What a client's W have in common: W_i' = scale * row_i' + offset, and their sum."""

    scale: Any
    offset: Any
    total: Any


@inlined
def normaliser(count: Any) -> Any:
    """1 / sqrt(count); an empty sum needs none."""
    return np.float32(1.0 / np.sqrt(np.float64(max(count, 1))))


@inlined
def implicit_row(rows: Any, position: Any, shift: Any, width: Any) -> Any:
    """W of the item in this position, as it is now."""
    return shift.scale * load_row(rows, position, width) + shift.offset


@inlined
def moved_without(rows: Any, position: Any, own: Any, shift: Any, keep: Any, move: Any, count: Any) -> Any:
    """All W but that of one position (now `own`) become keep * W - move; `count` is the number of all."""
    scale, offset = keep * shift.scale, keep * shift.offset - move
    # The row of this position is changed against the change: scale * row + offset is `own`, as it was.
    store_row(rows, position, (_ONE / scale) * (own - offset))
    total = keep * (shift.total - own) - np.float32(count - 1) * move + own
    return Shift(scale, offset, total)


@inlined
def moved_together(shift: Any, keep: Any, move: Any, count: Any) -> Any:
    """All W become keep * W - move."""
    return Shift(keep * shift.scale, keep * shift.offset - move, keep * shift.total - np.float32(count) * move)


@inlined
def settled(rows: Any, count: Any, shift: Any, width: Any) -> Any:
    """Write every W out into its row, so that the scale is one again."""
    zero = shift.offset - shift.offset
    for position in range(count):
        store_row(rows, position, implicit_row(rows, position, shift, width))
    return Shift(_ONE, zero, shift.total)


@inlined
def needs_settling(shift: Any) -> Any:
    """Whether the scale has become so small that the rows would lose accuracy."""
    return shift.scale < _SMALLEST_SCALE
