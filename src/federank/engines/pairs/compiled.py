"""The compiled engine: prepares what the kernels need, and calls the one that fits the recipe."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from federank.engines.barrier import new_barrier
from federank.engines.pairs.disguised import play_disguised
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Sums, play_rounds, play_single_pairs
from federank.protocol.pairs.recipes import Recipe

_PAIRS_PER_SHARD = 1024
_MOST_SHARDS = 32
_MOST_SUM_BYTES = 2**30


def play(federation: Federation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation on this many threads; the result does not depend on how many."""
    recipe = federation.recipe
    if recipe.clip > 0:
        play_disguised(federation, rounds)
        return
    width = (0,) * federation.item_vectors.shape[1]
    tables = (federation.item_vectors, federation.item_biases, federation.user_vectors)
    if recipe.clients_per_round == 1 and np.all(recipe.triples[recipe.participants] == 1):
        play_single_pairs(recipe, federation.histories, *tables, federation.round_number, rounds, width)
    else:
        sums = _room_for_sums(recipe, *federation.item_vectors.shape)
        workers = min(threads, len(sums.counts))
        chosen = np.empty(len(federation.user_vectors) + 1, dtype=np.int32)  # the last place tells how many
        barrier, histories = new_barrier(), federation.histories

        def work(worker: int) -> None:
            begin = federation.round_number
            play_rounds(recipe, histories, *tables, sums, chosen, barrier, worker, workers, begin, rounds, width)

        _at_once(work, workers)
    federation.round_number += rounds


def _at_once(work: Callable[[int], None], workers: int) -> None:
    """Run the same work in this thread and in as many others as it takes; each gets its number."""
    others = [threading.Thread(target=work, args=(worker,)) for worker in range(1, workers)]
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()


def shard_count(recipe: Recipe, n_items: int, width: int) -> int:
    """Into how many shards a round's clients are divided: by the work there is, never by the threads at hand."""
    pairs = recipe.clients_per_round * float(np.mean(recipe.triples[recipe.participants]))
    fitting = _MOST_SUM_BYTES // (n_items * (4 * width + 16))
    most = int(max(1, min(_MOST_SHARDS, recipe.clients_per_round, pairs // _PAIRS_PER_SHARD, fitting)))
    return 1 << (most.bit_length() - 1)  # a power of two: dealt out evenly to two, four, eight workers


def _room_for_sums(recipe: Recipe, n_items: int, width: int) -> Sums:
    shards = shard_count(recipe, n_items, width)
    return Sums(
        vectors=np.empty((shards, n_items, width), dtype=np.float32),
        biases=np.empty((shards, n_items), dtype=np.float32),
        stamps=np.zeros((shards, n_items), dtype=np.int64),
        touched=np.empty((shards, n_items), dtype=np.int32),
        counts=np.zeros(shards, dtype=np.int64),
    )
