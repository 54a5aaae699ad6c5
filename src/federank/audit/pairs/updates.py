"""One more Update of a device, as the server would receive it.

The device takes its part of the next round on a copy of its vector, so nothing of the run changes: the very rows that
would cross the wire, clipped and noisy if the recipe asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.engines.pairs.clients import room_for_clients, sum_of_updates
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Run
from federank.models.rows import padded_width
from federank.protocol.draws import words_wrap_around
from federank.protocol.messages import Update
from federank.protocol.pairs.noise import disguise


def next_updates(federation: Federation, people: IntVector) -> Iterator[Update]:
    """What each of these devices would send in the round that comes next, were it chosen and its answer not lost."""
    recipe, width = federation.recipe._replace(dropout=0.0), padded_width(federation.recipe.factors)
    items, own = _padded(federation.item_vectors, width), _padded(federation.user_vectors, width)
    run = Run(recipe, federation.histories, items, np.array(federation.item_biases), own, (0,) * width)
    room = room_for_clients(*items.shape)
    for person in people:
        update = sum_of_updates(run, federation.round_number, np.array([person], dtype=np.int32), room)
        with words_wrap_around():
            yield disguise(recipe, int(person), federation.round_number, update, len(items))


def _padded(table: FloatMatrix, width: int) -> FloatMatrix:
    rows = np.zeros((len(table), width), dtype=np.float32)
    rows[:, : table.shape[1]] = table
    return rows
