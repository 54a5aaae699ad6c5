"""Vector recovery: one row of a negative item hands over the person's own vector.

A negative's row in an Update is -g p - lambda q_j, and its bias gradient is -g, where q_j and lambda are public. So

    p = -(row + lambda q_j) / g

and with p the server ranks the whole catalogue as the device itself would: b + Q p. The formula is exact where j was
drawn once in the round. Drawn k times, lambda q_j is missing k - 1 times and p is a mean of the device's vector over
the round; both errors are small. Of several negatives the one with the largest gradient is taken, where rounding
matters least.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix
from federank.audit.guess import Guess, claim_typical
from federank.audit.pairs.view import PairsView
from federank.protocol.messages import Broadcast, Update

_LEAST = 1e-9
"""Below this g, a row is all regulariser in 32-bit floats."""


def recovered_vectors(updates: list[Update], broadcast: Broadcast, negative_regulariser: np.float32) -> FloatMatrix:
    """Each person's own vector, from one negative row; zeros where there is none, or only rounding errors are left."""
    found = np.zeros((len(updates), broadcast.vectors.shape[1]), dtype=np.float32)
    for row, update in enumerate(updates):
        position = int(np.argmin(update.biases)) if len(update.biases) else 0
        g = -float(update.biases[position]) if len(update.biases) else 0.0
        if g > _LEAST:
            q_j = broadcast.vectors[update.items[position]]
            found[row] = -(update.vectors[position] + negative_regulariser * q_j) / g
    return found


def vector_recovery(view: PairsView) -> Guess:
    """Rank the catalogue with the recovered vector."""
    return claim_typical(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases, view.typical_size)
