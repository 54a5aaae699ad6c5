"""Transmission: what a device lets the server see.

A device has gradients for the items it liked and for the items it compared them with. It sends all of the second
kind, and of the first what its owner allows: nothing of what must never leave (policies/policy.py); of the rest each
with probability pi, decided anew for every pair (as the authors' code did) or once per item and round (`per-row`:
FedeRank, 2021, Eq. 4-5); or, where it was decided for life, all of it. How much that hides is a question to be
measured, not assumed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.models.rows import inlined, outlined
from federank.protocol.draws import MASK, happens, words
from federank.protocol.messages import Private, Update
from federank.protocol.pairs.computation import Gradients
from federank.protocol.pairs.recipes import Recipe


@inlined
def may_send(allowed: Any, per_row: Any, seed: Any, user: Any, round_number: Any, item: Any, coin: Any, pi: Any) -> Any:
    """Whether the owner lets this positive item's gradient go; `allowed` is the decision for life on this item."""
    if not allowed:
        return False
    if per_row:
        return happens(_word_of_row(seed, user, round_number, item), pi)
    return happens(coin, pi)


@outlined
def _word_of_row(seed: Any, user: Any, round_number: Any, item: Any) -> Any:
    word, _, _, _ = words(seed, user, MASK, round_number, item)
    return word


def share(recipe: Recipe, private: Private, round_number: int, gradients: Gradients) -> Update:
    """The Update: gradients summed per item, without the positives that are held back."""
    pi = 1.0 if private.lifelong else private.pi
    sent = np.array(
        [
            may_send(
                private.allowed[position],
                recipe.mask_per_row,
                recipe.seed,
                private.user,
                round_number,
                private.profile[position],
                coin,
                pi,
            )
            for position, coin in zip(gradients.positions, gradients.coins, strict=True)
        ],
        dtype=np.bool_,
    )
    touched = np.concatenate((gradients.positives[sent], gradients.negatives))
    vectors = np.concatenate((gradients.positive_vectors[sent], gradients.negative_vectors))
    biases = np.concatenate((gradients.slopes[sent], -gradients.slopes))
    items, positions = np.unique(touched, return_inverse=True)
    summed_vectors = np.zeros((len(items), vectors.shape[1]), dtype=np.float32)
    summed_biases = np.zeros(len(items), dtype=np.float32)
    np.add.at(summed_vectors, positions, vectors)
    np.add.at(summed_biases, positions, biases)
    return Update(items.astype(np.int32), summed_vectors, summed_biases)
