"""Some devices' part of a round, apart from the rounds of a run: what they send, as one summed Update.

A cluster's shard plays its own people this way, a rehearsal plays the device whose turn it is, an audit asks what a
device would send next. The kernel is the one that rounds are played with. The devices' vectors move; the shared model
does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import IntVector
from federank.engines.pairs.kernels import Bench, Run, ShardSum, new_bench, play_clients
from federank.protocol.messages import Update


class ClientRoom(NamedTuple):
    """Working memory, kept from call to call."""

    bench: Bench
    total: ShardSum


def room_for_sum(n_items: int, width: int) -> ShardSum:
    """A sum of Updates that has no rows yet."""
    return ShardSum(
        vectors=np.zeros((n_items, width), dtype=np.float32),
        biases=np.zeros(n_items, dtype=np.float32),
        stamps=np.zeros(n_items, dtype=np.int64),
        touched=np.zeros(n_items, dtype=np.int32),
    )


def room_for_clients(n_items: int, width: int) -> ClientRoom:
    """Room for a catalogue of this size, with rows of this width."""
    return ClientRoom(new_bench(width), room_for_sum(n_items, width))


def sum_of_updates(run: Run, round_number: int, clients: IntVector, room: ClientRoom) -> Update:
    """Computation and transmission on these devices, one after the other: the sum of what they send."""
    total = room.total
    rows = play_clients(run, round_number, clients, room.bench, total)
    items = np.sort(total.touched[:rows])
    total.stamps[items] = 0  # the next sum begins with nothing, though it be of the same round
    vectors = np.ascontiguousarray(total.vectors[items, : run.recipe.factors])
    return Update(items, vectors, total.biases[items])
