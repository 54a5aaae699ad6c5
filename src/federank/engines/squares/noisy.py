"""Rounds whose sums carry noise: everybody's messages of whole numbers, added up in the ring on several threads.

Sums in the ring are the same in any order, so people are dealt out to threads as it comes, and no bit changes.

Rounding each number of each message is nearly all of the work. Where it is taken on average (`rounding = "mean"`), a
round is two products with the sparse matrix of histories, and the sum alone is rounded. What is left out has a
deviation of sqrt(people) / 2 whole numbers at most, next to noise of thousands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank.arrays import IntVector, RealMatrix
from federank.data.interactions import Profiles
from federank.engines.squares.federation import SquaresFederation
from federank.protocol.squares.aggregation import private_columns, published_sum
from federank.protocol.squares.distribution import published
from federank.protocol.squares.private.message import Directions, directions_of, new_scratch, sum_private
from federank.protocol.squares.server_steps import SummedMessages
from federank.protocol.sums.rounding import C_INT, in_ring
from federank.workers import at_once

_PEOPLE_AT_A_TIME = 2**15
_LEAST = 1e-20


def sum_with_noise(federation: SquaresFederation, people: IntVector, threads: int = 1) -> SummedMessages:
    """What two servers publish of these people's messages in the federation's next round."""
    total = sum_in_ring(federation, people, threads)
    return published_sum(federation.recipe, federation.round_number, total, len(people))


def sum_in_ring(federation: SquaresFederation, people: IntVector, threads: int = 1) -> NDArray[np.uint32]:
    """The sum of these people's messages in the federation's next round, before any noise."""
    recipe, number, outward = federation.recipe, federation.round_number, federation.outward
    known = directions_of(published(recipe, federation.item_vectors), federation.weights)
    columns = private_columns(recipe, number)
    if recipe.rounds_on_average:
        mean = np.zeros((recipe.n_items, columns))
        for start in range(0, len(people), _PEOPLE_AT_A_TIME):
            some = _histories(outward, people[start : start + _PEOPLE_AT_A_TIME], recipe.n_items)
            mean += _popularity(some) if number == 0 else _in_common(known, some)
        return in_ring(np.rint(C_INT * mean.ravel()).astype(np.int64))
    totals = np.zeros((threads, recipe.n_items * columns), dtype=np.uint32)

    def work(worker: int) -> None:
        room = new_scratch(recipe.n_items, columns)
        some = people[worker::threads]
        sum_private(known, outward.starts, outward.items, some, recipe.seed, number, totals[worker], room)

    at_once(work, threads)
    summed: NDArray[np.uint32] = totals.sum(axis=0, dtype=np.uint32)
    return summed


def _histories(profiles: Profiles, people: IntVector, n_items: int) -> sparse.csr_matrix:
    """People x items: 1 where somebody has an item."""
    sizes = profiles.sizes[people]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    places = np.repeat(profiles.starts[people] - starts[:-1], sizes) + np.arange(starts[-1])
    return sparse.csr_matrix((np.ones(len(places)), profiles.items[places], starts), shape=(len(people), n_items))


def _popularity(histories: sparse.csr_matrix) -> RealMatrix:
    """The sum of p / sqrt(n)."""
    sizes = np.maximum(np.diff(histories.indptr), 1)
    summed: RealMatrix = np.asarray(histories.T @ (1 / np.sqrt(sizes)))[:, None]
    return summed


def _in_common(known: Directions, histories: sparse.csr_matrix) -> RealMatrix:
    """Sum of c x' / (|c| |x|) with c = D p - (q . D p) q and x = V'c (private/message.py), with no matrix of c."""
    own = histories @ sparse.diags(known.scales)  # D p, a row for each person
    popular = own @ known.popular
    lengths = own.power(2).sum(axis=1).A1 - popular**2 * (2 - known.popular @ known.popular)
    pointed = own @ known.wanted - np.outer(popular, known.wanted.T @ known.popular)
    reach = (pointed**2).sum(axis=1)
    speaks = (lengths > _LEAST) & (reach > _LEAST)
    pointed *= np.where(speaks, 1 / np.sqrt(np.where(speaks, lengths * reach, 1.0)), 0.0)[:, None]
    summed: RealMatrix = own.T @ pointed - np.outer(known.popular, popular @ pointed)
    return summed
