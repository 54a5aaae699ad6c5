"""Rounds whose sums carry noise: everybody's messages of whole numbers, added up in the ring on several threads.

Sums in the ring are the same in any order, so people are dealt out to threads as it comes, and no bit changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector
from federank.engines.squares.federation import SquaresFederation
from federank.engines.workers import at_once
from federank.protocol.squares.aggregation import private_columns, published_sum
from federank.protocol.squares.distribution import published
from federank.protocol.squares.private.message import directions_of, new_scratch, sum_private
from federank.protocol.squares.server_steps import SummedMessages


def sum_with_noise(federation: SquaresFederation, people: IntVector, threads: int = 1) -> SummedMessages:
    """What two servers publish of these people's messages in the federation's next round."""
    total = sum_in_ring(federation, people, threads)
    return published_sum(federation.recipe, federation.round_number, total, len(people))


def sum_in_ring(federation: SquaresFederation, people: IntVector, threads: int = 1) -> NDArray[np.uint32]:
    """The sum of these people's messages in the federation's next round, before any noise."""
    recipe, number, outward = federation.recipe, federation.round_number, federation.outward
    known = directions_of(published(recipe, federation.item_vectors), federation.weights)
    columns = private_columns(recipe, number)
    totals = np.zeros((threads, recipe.n_items * columns), dtype=np.uint32)

    def work(worker: int) -> None:
        room = new_scratch(recipe.n_items, columns)
        some = people[worker::threads]
        sum_private(known, outward.starts, outward.items, some, recipe.seed, number, totals[worker], room)

    at_once(work, threads)
    summed: NDArray[np.uint32] = totals.sum(axis=0, dtype=np.uint32)
    return summed
