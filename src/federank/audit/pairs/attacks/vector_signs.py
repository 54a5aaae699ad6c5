"""Signs of the vectors: what an Update says where its biases are kept from the server (FPL, 2022, Eq. 2-3).

The row of a positive is g p and that of a negative -g p, but for the regulariser. So in one round all rows of what a
person has carry the signs of p, all others the opposite ones: the rows fall into two camps, and it is the same camp
for every factor. Which camp is which the signs alone do not tell. But a device always sends its negatives, drawn from
the whole catalogue, and of its positives only some, drawn again and again from one history: so the smaller camp is
what the person has. Of two alike the one that people like better, by the public biases, is taken; a single camp is
that of the negatives, and nothing is claimed.

Late in training the regulariser decides: a negative that is ranked far down already has no gradient left, and the pull
of its vector towards zero points as the positives do (docs/audits.md).
"""

from __future__ import annotations

import numpy as np

from federank.arrays import IntVector
from federank.audit.guess import Guess, claim
from federank.audit.pairs.view import PairsView
from federank.protocol.messages import Broadcast, Update


def vector_signs(view: PairsView) -> Guess:
    """Claim the items of one Update whose vectors are in the smaller camp."""
    liked = np.zeros(view.seen_negative.shape, dtype=np.bool_)
    for row, update in enumerate(view.updates):
        liked[row, smaller_camp(update, view.broadcast)] = True
    return claim(liked)


def smaller_camp(update: Update, broadcast: Broadcast) -> IntVector:
    """The items that a server takes for liked from the signs of an Update's vectors; none where all are in one camp."""
    if not len(update.items):
        return update.items
    # The longest row speaks for its camp: in it the regulariser matters least.
    signs = np.sign(update.vectors)
    leader = signs[int(np.argmax((update.vectors**2).sum(axis=1)))]
    camp = signs @ leader > 0
    one: IntVector = update.items[camp]
    other: IntVector = update.items[~camp]
    if not len(one) or not len(other):
        return update.items[:0]
    if len(one) == len(other):
        biases = broadcast.biases
        return one if biases[one].mean() > biases[other].mean() else other
    return one if len(one) < len(other) else other
