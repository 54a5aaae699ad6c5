"""Item updates: in how many of a run's Updates each item had a row (FedeRank, 2021, Figure 2).

What is sent depends on draws alone, so the run's draws are made again without its maths
(engines/pairs/replay.py). An item that a device draws twice in a round is one row of its Update. With
pi = 0 only negatives are sent, which are drawn evenly: the curve is flat. With every positive that may leave, the
popularity of items shows.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import LongVector
from federank.compiling import compiled
from federank.engines.pairs.replay import replay
from federank.engines.pairs.triples import Pairs, histories_of
from federank.recommenders.federated_pairs import FederatedPairs


def count_item_updates(model: FederatedPairs) -> LongVector:
    """How many Updates of a fitted model's run had a row of each item."""
    data = model.training
    recipe = model.recipe(data)
    counts = np.zeros(data.n_items, dtype=np.int64)
    in_update, update = np.full(data.n_items, -1, dtype=np.int64), 0  # the last Update that had each row
    histories = histories_of(data.profiles, data.n_items, recipe)
    for pairs in replay(recipe, histories, data.n_items, range(model.report["rounds"])):
        update = _note(pairs, in_update, update, counts)
    return counts


@compiled(allocates=False)
def _note(pairs: Pairs, in_update: LongVector, update: int, counts: LongVector) -> int:
    """Count a block of pairs; the number of the last Update met."""
    for k in range(len(pairs.users)):
        if pairs.counters[k] == 0:
            update += 1
        for which in range(pairs.arrives[k]):  # none, the negative, or both
            item = pairs.negatives[k] if which == 0 else pairs.positives[k]
            if in_update[item] != update:
                in_update[item] = update
                counts[item] += 1
    return update
