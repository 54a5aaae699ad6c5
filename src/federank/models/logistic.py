"""Logistic regression on items: a person's weights and item vectors, each stepped while the other stands still.

What a person has counts 1, items drawn at random 0, and the loss is the cross-entropy of sigma(q_i . w + b). A batch
is looked at twice, as PFedRec has it (Zhang et al., 2023, Section 4.3): first the weights step by the mean of

    (sigma - y) q_i     and     sigma - y      for the bias,

then, with the new weights, the vector of each item steps by (sigma - y) w.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.compiling import compiled


@compiled
def draw_examples(
    profile: IntVector, n_items: int, negatives: int, rng: np.random.Generator
) -> tuple[IntVector, FloatVector]:
    """What is learnt from in a pass, shuffled: everything of the profile, and for each so many items outside of it.

    Whoever has the whole catalogue learns from it alone.
    """
    count = len(profile)
    outside = negatives if count < n_items else 0
    items = np.empty(count * (1 + outside), dtype=np.int32)
    labels = np.zeros(len(items), dtype=np.float32)
    items[:count], labels[:count] = profile, 1
    for k in range(count, len(items)):
        item = int(rng.random() * n_items)
        while _holds(profile, item):
            item = int(rng.random() * n_items)
        items[k] = item
    for k in range(len(items) - 1, 0, -1):  # Fisher and Yates
        other = int(rng.random() * (k + 1))
        items[k], items[other] = items[other], items[k]
        labels[k], labels[other] = labels[other], labels[k]
    return items, labels


@compiled(allocates=False)
def _holds(profile: IntVector, item: int) -> bool:
    """Whether an ascending profile has an item."""
    low, high = 0, len(profile)
    while low < high:
        middle = (low + high) // 2
        if profile[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low < len(profile) and profile[low] == item


@compiled(allocates=False)
def pass_over(
    vectors: FloatMatrix,
    weights: FloatVector,
    items: IntVector,
    labels: FloatVector,
    errors: FloatVector,
    gradient: FloatVector,
    batch: int,
    rate: float,
    item_rate: float,
) -> None:
    """One pass over the examples, in batches; `vectors` and `weights` (the bias last) are changed in place.

    `errors` and `gradient` are room to work in.
    """
    size = vectors.shape[1]
    for begin in range(0, len(items), batch):
        end = min(begin + batch, len(items))
        share = np.float32(1.0) / np.float32(end - begin)
        gradient[:] = 0
        for k in range(begin, end):
            error = _error(vectors[items[k]], weights, labels[k])
            for f in range(size):
                gradient[f] += error * vectors[items[k], f]
            gradient[size] += error
        for f in range(size + 1):
            weights[f] -= np.float32(rate) * share * gradient[f]
        # Every example is judged before any vector moves: an item may be in a batch twice.
        for k in range(begin, end):
            errors[k] = _error(vectors[items[k]], weights, labels[k])
        step = np.float32(item_rate) * share
        for k in range(begin, end):
            for f in range(size):
                vectors[items[k], f] -= step * errors[k] * weights[f]


@compiled(allocates=False, fastmath={"contract", "nsz", "reassoc"})  # sums in any order: in vector registers
def _error(vector: FloatVector, weights: FloatVector, label: float) -> float:
    """How far the probability is from the truth."""
    size = len(vector)
    score = weights[size]
    for f in range(size):
        score += vector[f] * weights[f]
    error: float = np.float32(1.0) / (np.float32(1.0) + np.exp(-score)) - label
    return error
