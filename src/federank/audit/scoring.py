"""Scoring: how right an attack was, person by person.

The truth is the person's training history. An attack gives every item a score and claims the first so many:

    precision, recall, f1   of the items it claims
    auc                     how often an item of the history is scored above one that is not in it (ties: a half);
                            0.5 is chance, 1 a perfect order, whatever the attack claims
    auc_held_back           the same for those items of the history that were never sent as positives

All of a person's figures come from one pass over the catalogue: sort the scores of the history's items, then find
each other item's place among them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatVector, IntVector, RealVector
from federank.audit.view import Guess
from federank.compiling import compiled


class Marks(NamedTuple):
    """An attack's marks, one value per person; not a number where there is nothing to judge."""

    precision: RealVector
    recall: RealVector
    f1: RealVector
    auc: RealVector
    auc_held_back: RealVector


def judge(guess: Guess, profiles: list[IntVector], sent: NDArray[np.bool_]) -> Marks:
    """The marks of a guess about people with these histories; `sent` tells what of all items left as a positive."""
    marks = np.empty((5, len(profiles)))
    for person, profile in enumerate(profiles):
        size = int(guess.sizes[person])
        row = np.ascontiguousarray(guess.scores[person])
        auc, auc_held_back, hits = _judge_person(row, profile, sent[person, profile], size)
        precision = hits / size if size else np.nan
        recall = hits / len(profile)
        marks[:, person] = precision, recall, 2 * hits / (size + len(profile)), auc, auc_held_back
    return Marks(*marks)


@compiled
def _judge_person(
    scores: FloatVector, profile: IntVector, sent: NDArray[np.bool_], size: int
) -> tuple[float, float, float]:
    """The area under the curve, the same for what was held back, and how many of the claimed items are right."""
    values, own, held_back = _distinct_values(scores, profile, sent)
    below, equal = _places_of_others(scores, profile, values)
    n_others = len(scores) - len(profile)
    wins, wins_held_back, n_held_back, lower = 0.0, 0.0, 0.0, 0.0
    for t in range(len(values)):
        lower += below[t]
        beaten = lower + equal[t] / 2
        lower += equal[t]
        wins += own[t] * beaten
        wins_held_back += held_back[t] * beaten
        n_held_back += held_back[t]
    left, hits = float(size), 0.0
    left -= below[len(values)]
    for t in range(len(values) - 1, -1, -1):
        if left <= 0:
            break
        tied = own[t] + equal[t]
        hits += own[t] * min(1.0, left / tied)  # which of tied items are claimed is left to chance
        left -= tied + below[t]
    return wins / (len(profile) * n_others), wins_held_back / (n_held_back * n_others), hits


@compiled
def _distinct_values(scores: FloatVector, profile: IntVector, sent: NDArray[np.bool_]) -> Any:
    """The different scores that the history's items have, ascending; how many have each, and how many held back."""
    order = np.argsort(scores[profile])
    values = np.empty(len(profile), np.float32)
    own, held_back = np.zeros(len(profile)), np.zeros(len(profile))
    count = 0
    for place in order:
        value = scores[profile[place]]
        if count == 0 or value != values[count - 1]:
            values[count] = value
            count += 1
        own[count - 1] += 1
        if not sent[place]:
            held_back[count - 1] += 1
    return values[:count], own[:count], held_back[:count]


@compiled
def _places_of_others(scores: FloatVector, profile: IntVector, values: FloatVector) -> Any:
    """For each value, how many items outside the history lie between it and the next lower one, or on it."""
    below, equal = np.zeros(len(values) + 1), np.zeros(len(values))
    passed = 0
    for item in range(len(scores)):
        if passed < len(profile) and profile[passed] == item:
            passed += 1
            continue
        score = scores[item]
        low, span = 0, len(values)
        while span > 0:  # the number of values below the score
            half = span >> 1
            if values[low + half] < score:
                low += half + 1
                span -= half + 1
            else:
                span = half
        if low < len(values) and values[low] == score:
            equal[low] += 1
        else:
            below[low] += 1
    return below, equal
