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
from federank.audit.view import Guess
from federank.data.categories import Categories

Shares = NDArray[np.float64]


def table_of(categories: Categories) -> Shares:
    """Items x categories: 1 where an item belongs to a category."""
    table = np.zeros((len(categories), len(categories.names)))
    table[np.repeat(np.arange(len(categories)), np.diff(categories.starts)), categories.codes] = 1
    return table


def shares_of(items: IntVector, table: Shares) -> Shares:
    """How much of these items falls to each category; an item in several counts in each."""
    counts: Shares = table[items].sum(axis=0)
    shares: Shares = counts / max(counts.sum(), 1)
    return shares


def judge_shares(
    guess: Guess, histories: list[IntVector], table: Shares, typical_size: int
) -> list[tuple[float, float]]:
    """Error and correlation of the guessed shares, person by person; people without any category are left out."""
    found = []
    for row, history in enumerate(histories):
        size = int(min(guess.sizes[row] or typical_size, guess.scores.shape[1]))
        first = np.argpartition(-guess.scores[row], size - 1)[:size].astype(np.int32)
        truth, guessed = shares_of(history, table), shares_of(first, table)
        if not truth.any():
            continue
        varied = truth.std() > 0 and guessed.std() > 0
        correlation = float(np.corrcoef(truth, guessed)[0, 1]) if varied else 0.0
        found.append((float(np.abs(truth - guessed).mean()), correlation))
    return found
