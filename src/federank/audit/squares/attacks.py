"""Attacks on few messages: which items somebody has, and which of those that they held back.

popularity   the same guess for everyone, from what the sums of all messages say; what others gain is counted from it
reading      a message is w_i = c_i (p_i - x . y_i) for every item, and tells x; y is public. So p comes back exactly:
             everything that the message was made from, after one message
vector       the message's own vector scores the whole catalogue as the device would; what was held back is of the
             same taste
neighbours   what was read of everybody is a data set like any other: those with alike items have alike
fused        all of these, with what is known of the person's policy
membership   sums: items are counted more often in the rounds of people who have them (sums.py)
sum_vector   sums: the same with the scores that the vectors of a sum give together
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector
from federank.audit.guess import BASELINE, Attack, Guess, claim, claim_typical, standardised
from federank.audit.squares.view import UNSEEN, WITH, AnySquaresView, MessagesView, SumsView
from federank.models.squares import Objective

_TELLS = 0.01
"""Below this difference of what is sent of own items and of others, what is read says little of how many there are."""
_NEVER_SURE = 1e-6
"""Policies are known, but not whether a person keeps to the one they name."""


def read_message(objective: Objective, strengths: FloatMatrix, scores: FloatMatrix) -> NDArray[np.bool_]:
    """Which items messages were made from: `strengths` as they were sent, `scores` as x . y gives them."""
    # An own item's strength is liked (1 - score), any other's is -unobserved score: whichever is nearer.
    own, other = objective.liked * (1 - scores), -objective.unobserved * scores
    read: NDArray[np.bool_] = np.abs(strengths - own) < np.abs(strengths - other)
    return read


def popularity(view: AnySquaresView) -> Guess:
    """Rank everything by how often it is counted in all sums."""
    return claim_typical(np.tile(view.popularity, (len(view.tastes), 1)), view.typical_size)


def reading(view: MessagesView) -> Guess:
    """Claim everything that a message was made from."""
    return claim(view.seen == WITH)


def vector(view: MessagesView) -> Guess:
    """Rank the catalogue with the vector that was sent."""
    return claim_typical(view.tastes, view.typical_size)


def neighbours(view: MessagesView) -> Guess:
    """Rank by what those have who have alike."""
    return claim_typical(view.neighbours, view.typical_size)


def fused(view: MessagesView) -> Guess:
    """Taste and neighbours as the prior, reading as the evidence; claims as many as what was read stands for."""
    pi = np.clip(view.policies.liked, _NEVER_SURE, 1 - _NEVER_SURE)[:, None]
    q = np.clip(view.policies.unliked, _NEVER_SURE, 1 - _NEVER_SURE)[:, None]
    evidence = np.where(view.seen == WITH, np.log(pi / q), np.log((1 - pi) / (1 - q)))
    prior = standardised(view.tastes) + standardised(view.neighbours)
    scores = (prior + np.where(view.seen == UNSEEN, 0, evidence)).astype(np.float32)
    return Guess(scores, _sizes_behind(view))


def _sizes_behind(view: MessagesView) -> LongVector:
    """How long histories are that would be read so: of n items pi n are read, and of all others a share q."""
    read, covered = (view.seen == WITH).sum(axis=1), (view.seen != UNSEEN).sum(axis=1)
    pi, q = view.policies.liked, view.policies.unliked
    tells = (covered > 0) & (pi - q > _TELLS)
    share = (read / np.maximum(covered, 1) - q) / np.where(tells, pi - q, 1)
    sizes = np.rint(np.clip(share, 0, 1) * view.seen.shape[1]).astype(np.int64)
    found: LongVector = np.where(tells, np.maximum(sizes, read * (q == 0)), view.typical_size)
    return found


def membership(view: SumsView) -> Guess:
    """Rank by how much of each item's counts goes back to the person."""
    return claim_typical(view.counts, view.typical_size)


def sum_vector(view: SumsView) -> Guess:
    """Rank by how much of the sums' tastes goes back to the person."""
    return claim_typical(view.tastes, view.typical_size)


_READING: dict[str, Attack] = {
    BASELINE: popularity,
    "reading": reading,
    "vector": vector,
    "neighbours": neighbours,
    "fused": fused,
}
_ADDING_UP: dict[str, Attack] = {BASELINE: popularity, "membership": membership, "sum_vector": sum_vector}
SQUARES_ATTACKS: dict[str, dict[str, Attack]] = {
    **dict.fromkeys(("updates", "plain", "both", "anonymous"), _READING),
    **dict.fromkeys(("sums", "leader", "helper", "outsider"), _ADDING_UP),
}
"""What each kind of observer tries."""
