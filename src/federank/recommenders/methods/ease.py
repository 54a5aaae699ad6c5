"""EASE: item-item weights in closed form (Steck, 2019), the strongest of the simple baselines on dense data.

    model = EASE(regulariser=500).fit(split.train)

It needs everybody's histories in one place, and a table of items x items in memory: twice 8 bytes for each pair while
it learns, 4 in its folder.
"""

# ruff: noqa: ARG002 (the parameters are those of every Recommender)
from __future__ import annotations

import os
import time
from dataclasses import dataclass

from federank import checks
from federank.arrays import FloatMatrix
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.errors import SettingError
from federank.models.ease import item_weights
from federank.recommenders.constructor import made_from
from federank.recommenders.from_histories import ItemWeights
from federank.recommenders.recommender import Arrays, restored_table

_BYTES_A_PAIR = 3 * 8


@dataclass(frozen=True, kw_only=True)
class EASESettings:
    """The one thing to choose about EASE."""

    regulariser: float = 250.0
    """Pull of all weights towards zero (lambda): the larger, the more often items must go together to count."""

    def __post_init__(self) -> None:
        checks.positive("regulariser", self.regulariser)


class EASE(ItemWeights):
    """Embarrassingly shallow autoencoder (Steck, 2019): how much each item speaks for each other one."""

    name = "ease"
    settings_type = EASESettings
    settings: EASESettings
    weights: FloatMatrix
    """Items x items: how much having the first speaks for the second."""

    @made_from(EASESettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        _refuse_large_catalogue(train.n_items)
        begin = time.perf_counter()
        self._keep(item_weights(train.matrix(), self.settings.regulariser))
        self.report["seconds"] = time.perf_counter() - begin

    def _shared_arrays(self) -> Arrays:
        return {"weights": self.weights}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        self._keep(restored_table(shared, "weights", (self.training.n_items, self.training.n_items)))


def _refuse_large_catalogue(n_items: int) -> None:
    """Say so before the machine runs out of memory, where it tells how much it has."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return
    needed = _BYTES_A_PAIR * n_items**2
    if needed > memory:
        raise SettingError(
            f"ease needs a table of {n_items:,} x {n_items:,} items, {needed / 1e9:,.0f} GB while it learns, and this "
            f"machine has {memory / 1e9:,.0f}; keep fewer items (--k-core), or use itemknn, which makes no such table."
        )
