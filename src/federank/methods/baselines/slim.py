"""SLIM: a few item-item weights for each item, none below zero (Ning and Karypis, 2011).

    model = SLIM(l1=1, l2=20).fit(split.train)

EASE has a weight for every pair of items; here `l1` makes most of them vanish, so that a catalogue may be large. Each
item is solved for by itself (models/slim.py), so threads never change a bit. It needs everyone's histories in one
place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from federank._numerics.arrays import FloatVector, IntVector, LongVector, RealVector
from federank._numerics.compiling import at_once, compiled
from federank.checks import Settings, setting
from federank.data.interactions import Interactions
from federank.methods.recommender import Arrays, ItemWeights, made_from, restored_weights, stored_weights
from federank.simulation.options import TrainingOptions

# SLIM (Ning and Karypis, 2011): the few item-item weights that explain everyone's history, by coordinate descent.


_LOOKS = 1_000
"""The most looks at one item's weights; a handful is what it takes."""


def items_together(histories: csr_array) -> csr_array:
    """G: how many users have both of two items."""
    ones = csr_array(histories, dtype=np.float32)
    together = csr_array(ones.T @ ones)
    together.sort_indices()
    return together


@compiled(allocates=False)
def explain_item(
    item: int,
    starts: LongVector,
    others: IntVector,
    counts: FloatVector,
    diagonal: FloatVector,
    l1: float,
    l2: float,
    tolerance: float,
    left: RealVector,
    weights: RealVector,
    marks: IntVector,
) -> None:
    """The weights of the items that go with this one, in `weights`; `left` and `marks` are workspace, one per item.

    `starts`, `others` and `counts` are G row by row. Of `weights` only the entries of this item's row count.
    """
    begin, end = starts[item], starts[item + 1]
    for place in range(begin, end):
        other = others[place]
        left[other], weights[other], marks[other] = counts[place], 0.0, item
    marks[item] = -1
    everything = True
    for _ in range(_LOOKS):
        moved = 0.0
        for place in range(begin, end):
            other = others[place]
            held = weights[other]
            if other == item or (held == 0.0 and not everything):
                continue
            best = max(0.0, (left[other] + diagonal[other] * held - l1) / (diagonal[other] + l2))
            change = best - held
            if change != 0.0:
                weights[other] = best
                moved = max(moved, abs(change))
                for position in range(starts[other], starts[other + 1]):
                    third = others[position]
                    if marks[third] == item:
                        left[third] -= change * counts[position]
        if moved <= tolerance:
            if everything:
                return
            everything = True
        else:
            everything = False


def weights_of(
    together: csr_array, span: range, l1: float, l2: float, tolerance: float
) -> list[tuple[IntVector, FloatVector]]:
    """For each of these items, the items that speak for it and how much."""
    starts, others = together.indptr.astype(np.int64), together.indices.astype(np.int32)
    counts, diagonal = together.data.astype(np.float32), together.diagonal().astype(np.float32)
    workspace = np.zeros(len(diagonal)), np.zeros(len(diagonal)), np.full(len(diagonal), -1, dtype=np.int32)
    results = []
    for item in span:
        explain_item(item, starts, others, counts, diagonal, l1, l2, tolerance, *workspace)
        row = others[starts[item] : starts[item + 1]]
        values = np.where(row == item, 0.0, workspace[1][row])
        positive = values > 0
        results.append((row[positive], values[positive].astype(np.float32)))
    return results


@dataclass(frozen=True, kw_only=True)
class SLIMSettings(Settings):
    """What can be chosen about SLIM."""

    l1: float = setting(1.0, 0)
    """L1 regularisation, as a number of users that have both items: the larger, the fewer weights are left."""
    l2: float = setting(20.0, 0)
    """L2 regularisation of all weights: the larger, the more evenly items share in explaining another."""
    tolerance: float = setting(0.001, positive=True)
    """The largest change of a weight that counts as none."""


class SLIM(ItemWeights):
    """Sparse linear method (Ning and Karypis, 2011): the few items that speak for each item."""

    name = "slim"
    can_use = ("threads",)
    settings_type = SLIMSettings
    settings: SLIMSettings
    weights: csr_array
    """Items x items, sparse: how much having the first speaks for the second."""

    @made_from(SLIMSettings)
    def __init__(self) -> None: ...

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        settings = self.settings
        together = items_together(train.matrix())
        solved: list[tuple[IntVector, FloatVector]] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * train.n_items

        def solve(worker: int) -> None:
            mine = range(worker, train.n_items, training_options.threads)
            for item, row in zip(
                mine, weights_of(together, mine, settings.l1, settings.l2, settings.tolerance), strict=True
            ):
                solved[item] = row

        at_once(solve, training_options.threads)
        starts = np.concatenate(([0], np.cumsum([len(items) for items, _ in solved])))
        items, values = (np.concatenate(parts) for parts in zip(*solved, strict=True))
        # A solved column has the items that predict an item; the model keeps, per item, those that it predicts.
        speaking = csr_array((values, items, starts), shape=(train.n_items, train.n_items))
        self._keep(csr_array(speaking.T))
        self.report["weights"] = int(self.weights.nnz)

    def _shared_arrays(self) -> Arrays:
        return stored_weights(self.weights)

    def _restore(self, shared: Arrays, _private: Arrays) -> None:
        self._keep(restored_weights(shared, self.training.n_items))
