"""SVD++: what a person has rated says something too, whatever the ratings were; and how to learn it cheaply.

Beside V_i each item has a second vector W_i, which speaks for those who have rated it (Koren, 2008; FedRec, 2020,
Eq. 2). With I_u the items that u has rated, a rating is predicted as

    (U_u + n sum of W_i' over i' in I_u, i' != i) . V_i         n = 1 / sqrt(|I_u without i|)

The gradients of U and V are those of PMF with the bracket in the place of U_u; that of every W_i' in the sum is
e n V_i + lambda W_i'. A step of rate g thus changes all W_i' alike, but for the item i itself:

    W_i' <- k W_i' - g e n V_i         k = 1 - g lambda

Written out this costs |I_u| rows for each of |I_u| ratings. But an affine change that is the same for all can be
kept in one place (`Shift`): every W_i' is scale * row + offset, where only scale, offset and the sum over I_u move
with a step. The one row that must not move, W_i, is corrected so that scale * row + offset still gives its old
value. So a step costs a few rows, however much a person has rated, and the result is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.models.rows import inlined, load_row, store_row

_ONE = np.float32(1.0)
_SMALLEST_SCALE = np.float32(1e-3)


class Shift(NamedTuple):
    """What a device's W has in common: W_i' = scale * row_i' + offset, and their sum."""

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
    """All W but that of one place (now `own`) become keep * W - move; `count` is how many they are together."""
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
