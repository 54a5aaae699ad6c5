"""One more Update of a device, as the server would receive it.

The engine plays one round with this device as its only client, on copies, so nothing of the run changes. The sum of
a round with one client is that client's Update: the very rows that would cross the wire, clipped and noisy if the
recipe asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.engines.barrier import new_barrier
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Sums, play_rounds
from federank.models.rows import padded_width
from federank.protocol.draws import words_wrap_around
from federank.protocol.messages import Update
from federank.protocol.pairs.noise import disguise


def next_updates(federation: Federation, people: IntVector) -> Iterator[Update]:
    """What each of these devices would send in the round that comes next, were it chosen and its answer not lost."""
    recipe, factors = federation.recipe, federation.recipe.factors
    width = padded_width(factors)
    unchanged, own = _padded(federation.item_vectors, width), _padded(federation.user_vectors, width)
    vectors, biases = unchanged.copy(), federation.item_biases.copy()
    n_items = len(biases)
    sums = Sums(
        vectors=np.empty((1, n_items, width), dtype=np.float32),
        biases=np.empty((1, n_items), dtype=np.float32),
        stamps=np.zeros((1, n_items), dtype=np.int64),
        touched=np.empty((1, n_items), dtype=np.int32),
        counts=np.zeros(1, dtype=np.int64),
    )
    chosen = np.empty(len(own) + 1, dtype=np.int32)
    for person in people:
        alone = recipe._replace(
            participants=np.array([person], dtype=np.int32),
            clients_per_round=1,
            online=1.0,
            trace=np.zeros((0, len(recipe.triples)), dtype=np.bool_),
            dropout=0.0,
        )
        tables, alone_at_work = (vectors, biases, own, sums), (chosen, new_barrier(), 0, 1)
        play_rounds(alone, federation.histories, *tables, *alone_at_work, federation.round_number, 1, (0,) * width)
        items = np.sort(sums.touched[0, : sums.counts[0]])
        update = Update(items, sums.vectors[0, items, :factors].copy(), sums.biases[0, items])
        with words_wrap_around():
            yield disguise(recipe, int(person), federation.round_number, update, n_items)
        vectors[items], biases[items] = unchanged[items], federation.item_biases[items]
        sums.stamps[0, items] = 0


def _padded(table: FloatMatrix, width: int) -> FloatMatrix:
    rows = np.zeros((len(table), width), dtype=np.float32)
    rows[:, : table.shape[1]] = table
    return rows
