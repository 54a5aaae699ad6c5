"""Districts: the fixed neighbourhoods whose Updates are summed first, wherever their people are simulated.

Floating-point sums depend on their order, so the order must not depend on how many machines there are. The people who
take part are divided by their number into *districts*; how many depends on the population alone. A district's Updates
are summed in the order of the round's clients, and the districts' sums are folded into the model in the order of
districts. A *shard* of the cluster holds whole districts, a run of them; so any number of shards gives the same bits.

Where everybody takes part in every round, the compiled engine's shards are runs of people too: districts are made the
same ones, and the result is the compiled engine's, bit for bit. Where clients are drawn, the compiled engine divides
them by their place in the round, which no ownership of people can follow: the results then agree to rounding.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import IntVector, LongVector
from federank.engines.pairs.compiled import shard_count
from federank.engines.pairs.replay import clients_of_round
from federank.protocol.pairs.recipes import Recipe

MOST_DISTRICTS = 32


def districts_of(recipe: Recipe, n_users: int, n_items: int, width: int) -> LongVector:
    """Where each district begins, by user number, and where the last one ends."""
    able = len(recipe.participants)
    as_compiled = shard_count(recipe, n_items, width)
    everybody = recipe.clients_per_round == able and recipe.online >= 1.0 and not len(recipe.trace)
    count = as_compiled if everybody and as_compiled > 1 else min(MOST_DISTRICTS, able)
    starts = np.empty(count + 1, dtype=np.int64)
    starts[:-1] = recipe.participants[np.arange(count) * able // count]
    starts[0], starts[-1] = 0, n_users
    return starts


def clients_by_district(recipe: Recipe, round_number: int, starts: LongVector) -> list[IntVector]:
    """Distribution: the round's clients, district by district, each district's in the order of the round."""
    chosen = clients_of_round(recipe, round_number, int(starts[-1]))
    district = np.searchsorted(starts, chosen, side="right") - 1
    ends = np.cumsum(np.bincount(district, minlength=len(starts) - 1))
    return np.split(chosen[np.argsort(district, kind="stable")], ends[:-1])
