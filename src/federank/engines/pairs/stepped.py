"""Rounds whose server does more with a sum than add it: Adam, or a pull of all items towards zero.

Such a step moves every row of the catalogue, so it belongs to few and large rounds: a kernel sums each shard's Updates,
shards run on threads, and the step itself is the protocol's own (protocol/pairs/aggregation.py), the very function that
the reference engine calls. Shards are added up in their order, so threads never change a bit.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.engines.pairs.disguised import disguised_sum
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Sums, new_bench, play_clients, sum_of_shard
from federank.engines.pairs.replay import clients_of_round
from federank.protocol.pairs.aggregation import fold
from federank.workers import at_once

Total = tuple[FloatMatrix, FloatVector]
"""Vectors and biases of a whole catalogue: the sum of a round's Updates."""


def get_ready(federation: Federation, sums: Sums) -> None:
    """Play nobody's part, so that whatever needs compiling is compiled before the first round."""
    if federation.recipe.one_by_one:
        disguised_sum(federation, rounds=0)
    else:
        _sum_shards(federation, sums, 1, nobody=True)


def next_sum(federation: Federation, sums: Sums, threads: int = 1) -> Total | None:
    """The devices' part of the next round; the server's is `take_step`. Each shard of `sums` has the room it needs."""
    return disguised_sum(federation) if federation.recipe.one_by_one else _sum_shards(federation, sums, threads)


def _sum_shards(federation: Federation, sums: Sums, threads: int, nobody: bool = False) -> Total | None:
    run, number = federation.run, federation.round_number
    clients = clients_of_round(run.recipe, number, len(run.user_vectors))[: 0 if nobody else None]
    shards = len(sums.counts)
    workers = min(threads, shards)

    def work(worker: int) -> None:
        bench = new_bench(len(run.width))
        for s in range(worker, shards, workers):
            theirs = clients[s * len(clients) // shards : (s + 1) * len(clients) // shards]
            sums.counts[s] = play_clients(run, number, theirs, bench, sum_of_shard(sums, s))

    at_once(work, workers)
    return added_up(sums, run.recipe.factors)


def added_up(sums: Sums, factors: int) -> Total | None:
    """The sum over all shards for the whole catalogue; None where no Update came."""
    if not sums.counts.any():
        return None
    n_items = sums.stamps.shape[1]
    vectors, biases = np.zeros((n_items, factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
    for s, count in enumerate(sums.counts):
        rows = sums.touched[s, :count]
        vectors[rows] += sums.vectors[s, rows, :factors]
        biases[rows] += sums.biases[s, rows]
    return vectors, biases


def take_step(federation: Federation, total: Total | None) -> None:
    """Aggregation of a round's sum; without one there is nothing to learn."""
    if total is not None:
        shared = federation.shared
        fold(federation.recipe, shared, *total)
        federation.take(shared)
    federation.round_number += 1
