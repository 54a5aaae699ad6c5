"""What a curious server of FedRec knows about some people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector
from federank.protocol.ratings.messages import RatingUpdate


class RatingView(NamedTuple):
    """What the server has counted: one row per person."""

    times_named: NDArray[np.uint16]  # people x items: in how many Updates the item was
    updates: LongVector  # people: how many Updates there were
    named_once: NDArray[np.bool_]  # people x items: what one Update named
    second_rows: NDArray[np.bool_]  # people x items: of which W was sent; nothing for PMF
    vectors: FloatMatrix  # V, public
    typical_size: int


class Answer(NamedTuple):
    """An Update, and the public item vectors it answers to."""

    update: RatingUpdate
    vectors: FloatMatrix
