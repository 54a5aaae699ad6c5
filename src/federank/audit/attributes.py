"""Attribute inference: what kinds of items does somebody like, if the guess about their items is taken for true?

A guess that names wrong items may still name the right kinds. From the items that an attack puts first, as many as it
claims (or as a device has on average, if it claims nothing), the share of each category is computed and compared with
the true history's: the mean absolute error over categories, and the correlation of the two, both as means over people.
The popularity attacker's are nearly the same for everybody: what others add is about a person.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector
from federank.audit.guess import Guess
from federank.data.categories import Categories

Shares = NDArray[np.float64]
_TINY = 1e-12


def table_of(categories: Categories) -> Shares:
    """Items x categories: 1 where an item belongs to a category."""
    table = np.zeros((len(categories), len(categories.names)))
    table[np.repeat(np.arange(len(categories)), np.diff(categories.starts)), categories.codes] = 1
    return table


def shares_of(items: NDArray[np.bool_], table: Shares) -> Shares:
    """People x categories: how much of each one's items falls to each category; an item in several counts in each."""
    counts: Shares = items.astype(np.float32) @ table
    shares: Shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return shares


def judge_shares(
    guess: Guess, histories: list[IntVector], table: Shares, typical_size: int
) -> list[tuple[float, float]]:
    """Error and correlation of the guessed shares, person by person; people without any category are left out."""
    n_items = guess.scores.shape[1]
    owned, claimed = (np.zeros(guess.scores.shape, dtype=np.bool_) for _ in range(2))
    for row, history in enumerate(histories):
        owned[row, history] = True
        size = int(min(guess.sizes[row] or typical_size, n_items))
        claimed[row, np.argpartition(guess.scores[row], n_items - size)[n_items - size :]] = True
    truth, guessed = shares_of(owned, table), shares_of(claimed, table)
    errors = np.abs(truth - guessed).mean(axis=1)
    one, other = (shares - shares.mean(axis=1, keepdims=True) for shares in (truth, guessed))
    lengths = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    correlations = np.where(lengths > 0, (one * other).sum(axis=1) / np.maximum(lengths, _TINY), 0.0)
    judged = truth.any(axis=1)
    return list(zip(errors[judged].tolist(), correlations[judged].tolist(), strict=True))
