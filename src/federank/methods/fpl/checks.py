"""What the equations of a pair can give: an Update that they cannot is a lie, and is refused where it is readable.

A device trains on T pairs. Each adds g to the bias of the item it likes and takes g off the other's, with g from 0 to 1
(models/bpr.py); what its owner holds back is missing on the liked side alone. So whatever the history and the policy:

    the biases add up to 0 at most           what is above 0 adds up to T at most, and what is below 0 to -T at least

A malicious client that keeps to this still chooses T pairs; what those can do is bounded by the defences around
aggregation.
"""

from __future__ import annotations

import math

import numpy as np

from federank.federation.defences import Defences
from federank.methods.fpl.wire import Update

SLACK = 1e-3
"""Of T: sums of 32-bit floats are not exact."""


def why_implausible(update: Update, triples: int) -> str | None:
    """Why no device can have sent this Update, in a sentence; None if one can have."""
    biases = update.biases.astype(np.float64)
    slack = SLACK * triples
    raised, lowered = float(biases[biases > 0].sum()), -float(biases[biases < 0].sum())
    if float(biases.sum()) > slack:
        return (
            "The biases of an Update cannot add up to more than 0: each pair takes from one item what it gives another."
        )
    if raised > triples + slack:
        return f"The biases of an Update cannot be raised by more than {triples} together: one for each pair."
    if lowered > triples + slack:
        return f"The biases of an Update cannot be lowered by more than {triples} together: one for each pair."
    return None


# Rows of an Update at most so long: vector and bias together.


def shortened(update: Update, most_norm: float) -> Update:
    """The same Update with every row (vector and bias together) at most this long."""
    if is_short(update, most_norm):
        return update
    squared = squared_norms(update)
    long = squared > np.float64(most_norm) ** 2
    if not long.any():
        return update
    factor = np.ones(len(update.items), dtype=np.float64)
    factor[long] = most_norm / np.sqrt(squared[long])
    scale = factor.astype(np.float32)
    return update._replace(vectors=update.vectors * scale[:, None], biases=update.biases * scale)


def is_short(update: Update, most_norm: float) -> bool:
    """Whether no row can be too long, by the largest of all numbers: one look that settles nearly every Update."""
    if not len(update.items):
        return True
    largest = max(float(np.abs(update.vectors).max()), float(np.abs(update.biases).max()))
    return largest * math.sqrt(update.vectors.shape[1] + 1) < 0.999 * most_norm


def squared_norms(update: Update) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The squared length of each row, vector and bias together."""
    # In double precision: the square of a large float32 would overflow.
    vectors, biases = update.vectors.astype(np.float64), update.biases.astype(np.float64)
    squares: np.ndarray[tuple[int], np.dtype[np.float64]] = np.einsum("ij,ij->i", vectors, vectors) + biases * biases
    return squares


FPL_DEFENCES = Defences()
"""What one server step may do to the model, unless the operator says otherwise."""
