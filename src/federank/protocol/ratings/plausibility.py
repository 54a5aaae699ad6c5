"""What the equations of PMF in batch style can give: an Update that they cannot is a lie, and is refused.

A row is e_i U + lambda V_i with one U for all items of an Update (models/pmf.py). So whoever has the model that it was
computed from can take lambda V_i away, and what is left must lie on one line. What is left to a liar is to make
ratings and a vector up. (SVD++ has another bracket in the place of U for every rated item, so nothing is checked.)
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix
from federank.protocol.ratings.messages import RatingUpdate

SLACK = 1e-3
"""32-bit floats, and a device that adds in its own order; relative to the longest row."""


def why_implausible_ratings(update: RatingUpdate, vectors: FloatMatrix, regulariser: float) -> str | None:
    """Why no device can have sent this Update, in a sentence; `vectors` are all of V as devices were told them."""
    if not len(update.items):
        return "An Update must be that of some ratings; this one has no item."
    rows = update.vectors.astype(np.float64) - regulariser * vectors[update.items]
    lengths = np.linalg.norm(rows, axis=1)
    longest = int(np.argmax(lengths))
    if not lengths[longest]:
        return None
    direction = rows[longest] / lengths[longest]
    beside = np.linalg.norm(rows - np.outer(rows @ direction, direction), axis=1)
    if beside.max() > SLACK * (lengths[longest] + np.abs(update.vectors).max()):
        return "The rows of an Update must come from one person's vector; these do not."
    return None
