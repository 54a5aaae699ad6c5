"""Scoring: how right an attack was, person by person.

The truth is the person's training history. An attack gives every item a score and claims the first so many:

    precision, recall, f1   of the items it claims
    auc                     how often an item of the history is scored above one that is not in it (ties: a half);
                            0.5 is chance, 1 a perfect order, whatever the attack claims
    ..._held_back           the same for those items of the history that were never sent as positives; claims of items
                            that were sent and are in the history count neither for nor against

Where the last claimed item is tied with others, which of them are claimed is left to chance, and its mean is counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, IntVector, LongVector, RealVector
from federank.audit.guess import Guess
from federank.compiling import compiled

_ROUNDING = 1e-9


class Marks(NamedTuple):
    """An attack's marks, one value per person; not a number where there is nothing to judge."""

    precision: RealVector
    recall: RealVector
    f1: RealVector
    auc: RealVector
    precision_held_back: RealVector
    recall_held_back: RealVector
    f1_held_back: RealVector
    auc_held_back: RealVector


def judge(guess: Guess, profiles: list[IntVector], sent: NDArray[np.bool_]) -> Marks:
    """The marks of a guess about people with these histories; `sent` tells which items left as positives."""
    owned = np.array([len(profile) for profile in profiles])
    sums = np.zeros((5, len(profiles)))
    _judge_people(guess, np.sort(guess.scores, axis=1), np.cumsum(owned) - owned, np.concatenate(profiles), sent, sums)
    hits, beaten, beaten_held_back, held_back, hits_held_back = sums
    other_claims = guess.sizes - (hits - hits_held_back)
    other_claims[other_claims < _ROUNDING] = 0
    with np.errstate(invalid="ignore"):  # nothing claimed, or nothing held back: not a number
        return Marks(
            precision=hits / guess.sizes,
            recall=hits / owned,
            f1=2 * hits / (guess.sizes + owned),
            auc=beaten / owned,
            precision_held_back=hits_held_back / other_claims,
            recall_held_back=hits_held_back / held_back,
            f1_held_back=2 * hits_held_back / (other_claims + held_back),
            auc_held_back=beaten_held_back / held_back,
        )


@compiled
def _judge_people(
    guess: Guess, ordered: FloatMatrix, starts: LongVector, items: IntVector, sent: Any, sums: Any
) -> None:
    """Of each person's items: how many are claimed, the shares of other items they beat, the same held back."""
    n_items = ordered.shape[1]
    for person in range(len(ordered)):
        end = starts[person + 1] if person + 1 < len(starts) else len(items)
        profile = items[starts[person] : end]
        own = np.sort(guess.scores[person][profile])
        for item in profile:
            score = guess.scores[person, item]
            lower = np.searchsorted(ordered[person], score)
            upper = np.searchsorted(ordered[person], score, "right")
            own_lower, own_upper = np.searchsorted(own, score), np.searchsorted(own, score, "right")
            below, tied = lower - own_lower, (upper - lower) - (own_upper - own_lower)
            beaten = (below + tied / 2) / (n_items - len(profile))
            left = guess.sizes[person] - (n_items - upper)
            claimed = min(max(left / (upper - lower), 0.0), 1.0)
            sums[0, person] += claimed
            sums[1, person] += beaten
            if not sent[person, item]:
                sums[2, person] += beaten
                sums[3, person] += 1
                sums[4, person] += claimed
