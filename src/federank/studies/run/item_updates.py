"""Item updates: in how many of a run's Updates each item had a row (FedeRank, 2021, Figure 2).

What is sent depends on draws alone, so the run's draws are made again without its maths, as
engines/communication.py does for bytes. An item that a device draws twice in a round is one row of its Update. With
pi = 0 only negatives are sent, which are drawn evenly: the curve is flat. With every positive that may leave, the
popularity of items shows.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import LongVector
from federank.compiling import compiled
from federank.engines.pairs.triples import (
    Histories,
    draw_pairs,
    histories_of,
    next_block,
    pairs_of_shard,
    room_for_pairs,
)
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.recipes import Recipe
from federank.recommenders.methods.fpl import FPL


def count_item_updates(model: FPL) -> LongVector:
    """How many Updates of a fitted model's run had a row of each item."""
    data = model.training
    recipe = model.recipe(data)
    counts = np.zeros(data.n_items, dtype=np.int64)
    _count(recipe, histories_of(data.profiles, data.n_items, recipe), data.n_items, model.report["rounds"], counts)
    return counts


@compiled
def _count(recipe: Recipe, histories: Histories, n_items: int, rounds: int, counts: LongVector) -> None:
    n_users = len(histories.starts) - 1
    marks = np.zeros(n_users, np.int64)
    chosen = np.empty(n_users, np.int32)
    in_update = np.full(n_items, -1, np.int64)  # the last Update that had this row
    pairs = pairs_of_shard(room_for_pairs(1), 0)
    update = 0
    for r in range(rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        client, counter = 0, 0
        while client < m:
            count, client, counter = next_block(recipe, chosen[:m], r, client, counter, pairs)
            draw_pairs(recipe, histories, n_items, pairs, count)
            for k in range(count):
                if pairs.counters[k] == 0:
                    update += 1
                for which in range(pairs.arrives[k]):  # none, the negative, or both
                    item = pairs.negatives[k] if which == 0 else pairs.positives[k]
                    if in_update[item] != update:
                        in_update[item] = update
                        counts[item] += 1
