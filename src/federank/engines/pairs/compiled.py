"""The compiled engine: prepares what the kernels need, and calls the one that fits the recipe."""

from __future__ import annotations

import numpy as np

from federank.engines.pairs.disguised import play_disguised
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import new_crew, play_rounds, play_single_pairs, room_for_sums
from federank.engines.pairs.stepped import get_ready, next_sum, take_step
from federank.protocol.pairs.recipes import Recipe
from federank.workers import at_once

_PAIRS_PER_SHARD = 1024
_MOST_SHARDS = 32
_MOST_SUM_BYTES = 2**30


def play(federation: Federation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation on this many threads; the result does not depend on how many."""
    recipe = federation.recipe
    n_items, width = federation.item_vectors.shape
    if not recipe.only_adds:
        sums = room_for_sums(shard_count(recipe, n_items, width), n_items, width)
        if not rounds:
            get_ready(federation, sums)
        for _ in range(rounds):
            take_step(federation, next_sum(federation, sums, threads))
        return
    if recipe.one_by_one:
        play_disguised(federation, rounds)
        return
    run, begin = federation.run, federation.round_number
    if recipe.clients_per_round == 1 and np.all(recipe.triples[recipe.participants] == 1):
        play_single_pairs(run, begin, rounds)
    else:
        sums = room_for_sums(shard_count(recipe, n_items, width), n_items, width)
        crew = new_crew(len(federation.user_vectors), min(threads, len(sums.counts)))
        at_once(lambda worker: play_rounds(run, sums, crew, worker, begin, rounds), crew.workers)
    federation.round_number += rounds


def shard_count(recipe: Recipe, n_items: int, width: int) -> int:
    """Into how many shards a round's clients are divided: by the work there is, never by the threads at hand."""
    pairs = recipe.clients_per_round * float(np.mean(recipe.triples[recipe.participants]))
    fitting = _MOST_SUM_BYTES // (n_items * (4 * width + 16))
    most = int(max(1, min(_MOST_SHARDS, recipe.clients_per_round, pairs // _PAIRS_PER_SHARD, fitting)))
    return 1 << (most.bit_length() - 1)  # a power of two: dealt out evenly to two, four, eight workers
