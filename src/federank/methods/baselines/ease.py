"""EASE: item-item weights in closed form (Steck, 2019), the strongest of the simple baselines on dense data.

    model = EASE(regulariser=500).fit(split.train)

It needs all histories in one place, and a table of items x items in memory: 12 bytes per pair of items while it learns
(4 from 20,000 items on, in single precision), 4 in its folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatMatrix
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.methods.recommender import Arrays, ItemWeights, made_from, restored_table
from federank.simulation.options import TrainingOptions

# EASE (Steck, 2019): the item-item weights that explain everyone's history best, in closed form.


_SINGLE_PRECISION_FROM = 20_000
"""Catalogues of at least this many items are solved in float32, in one table."""
_ROWS_AT_A_TIME = 512


def item_weights(histories: csr_array, regulariser: float) -> FloatMatrix:
    """B, items x items, with a diagonal of zeros: every step overwrites one table."""
    ones = csr_array(histories, dtype=np.float32 if histories.shape[1] >= _SINGLE_PRECISION_FROM else np.float64)
    table = (ones.T @ ones).toarray(order="F")  # LAPACK's order: it copies a table in any other
    diagonal = np.diag_indices(len(table))
    table[diagonal] += regulariser
    # X'X + lambda I is symmetric and positive: by Cholesky its inverse costs half of a general one.
    decompose, invert = get_lapack_funcs(("potrf", "potri"), (table,))
    factor, _ = decompose(table, lower=1, overwrite_a=1)
    inverse, _ = invert(factor, lower=1, overwrite_c=1)
    weights: FloatMatrix = inverse.T  # row-major again; its upper triangle is filled
    scale = -1.0 / weights[diagonal]
    for start in range(0, len(weights), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        square = np.triu(weights[rows, rows])
        weights[rows, rows] = square + np.triu(square, 1).T
        weights[start + _ROWS_AT_A_TIME :, rows] = weights[rows, start + _ROWS_AT_A_TIME :].T
    weights *= scale
    weights[diagonal] = 0
    return weights.astype(np.float32, copy=False)


# ruff: noqa: ARG002 (the parameters are those of every Recommender)


@dataclass(frozen=True, kw_only=True)
class EASESettings(Settings):
    """The one thing to choose about EASE."""

    regulariser: float = setting(250.0, positive=True)
    """L2 regularisation of all weights (lambda): the larger, the more often items must go together to count."""


class EASE(ItemWeights):
    """Embarrassingly shallow autoencoder (Steck, 2019): how much each item speaks for each other one."""

    name = "ease"
    settings_type = EASESettings
    settings: EASESettings
    weights: FloatMatrix
    """Items x items: how much having the first speaks for the second."""

    @made_from(EASESettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        _refuse_large_catalogue(train.n_items)
        self._keep(item_weights(train.matrix(), self.settings.regulariser))

    def _shared_arrays(self) -> Arrays:
        return {"weights": self.weights}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self._keep(restored_table(shared, "weights", (self.training.n_items, self.training.n_items)))


def _refuse_large_catalogue(n_items: int) -> None:
    """Raise before the machine runs out of memory, where its size is known."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return
    needed = (4 if n_items >= _SINGLE_PRECISION_FROM else 12) * n_items**2
    if needed > memory:
        raise SettingError(
            f"ease needs a table of {n_items:,} x {n_items:,} items, {needed / 1e9:,.0f} GB while it learns, and this "
            f"machine has {memory / 1e9:,.0f}; keep fewer items (--k-core), or use itemknn, which makes no such table."
        )
