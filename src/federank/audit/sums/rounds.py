"""Each round's sum, handed from the engine to the tally of those who took part.

Plain rounds are played by the compiled engine's own function, one at a time, and leave their sum in its working space.
Where Updates are clipped and noisy the engine keeps no sum; but the model moves by the learning rate times the sum, so
the difference of two Broadcasts is the sum, and that is what is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank.compiling import compiled
from federank.engines.barrier import new_barrier
from federank.engines.pairs import compiled as engine
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Sums, play_rounds
from federank.engines.pairs.triples import Histories
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.recipes import Recipe


class Tally(NamedTuple):
    """What is added up over a block of rounds."""

    own: FloatMatrix  # people x items: bias sums of the rounds they took part in
    own_vectors: np.ndarray[Any, np.dtype[np.float64]]  # people x width
    taken_part: LongVector  # people: in how many rounds
    biases: RealVector  # items: over all rounds
    squares: RealVector  # items
    vectors: RealVector  # width
    vector_squares: RealVector  # width
    slopes: RealVector  # one number: minus the sum of all negative bias sums
    devices: LongVector  # one number: how many took part, over all rounds


def watch_plain(federation: Federation, rounds: int, row_of_user: IntVector, tally: Tally) -> None:
    """Play this many rounds and tally their sums."""
    n_items, width = federation.item_vectors.shape
    sums = Sums(
        vectors=np.empty((1, n_items, width), dtype=np.float32),
        biases=np.empty((1, n_items), dtype=np.float32),
        stamps=np.zeros((1, n_items), dtype=np.int64),
        touched=np.empty((1, n_items), dtype=np.int32),
        counts=np.zeros(1, dtype=np.int64),
    )
    tables = (federation.item_vectors, federation.item_biases, federation.user_vectors)
    chosen, begin = np.empty(len(federation.user_vectors) + 1, dtype=np.int32), federation.round_number
    recipe, histories, barrier = federation.recipe, federation.histories, new_barrier()
    _watch(recipe, histories, *tables, sums, chosen, barrier, begin, rounds, row_of_user, tally, (0,) * width)
    federation.round_number += rounds


def watch_disguised(federation: Federation, rounds: int, row_of_user: IntVector, tally: Tally) -> None:
    """The same where Updates are clipped and noisy."""
    recipe, everything = federation.recipe, np.arange(len(federation.item_biases), dtype=np.int32)
    marks, chosen = np.zeros(len(row_of_user), dtype=np.int64), np.empty(len(row_of_user), dtype=np.int32)
    dense = np.zeros(len(everything), dtype=np.float32)
    for _ in range(rounds):
        present = _choose(recipe, federation.round_number, marks, chosen)
        vectors, biases = federation.item_vectors.copy(), federation.item_biases.copy()
        engine.play(federation, 1)
        vectors = (federation.item_vectors - vectors) / recipe.learning_rate
        biases = (federation.item_biases - biases) / recipe.learning_rate
        _tally_sum(everything, len(everything), biases, vectors, chosen, present, row_of_user, tally, dense)


@compiled
def _choose(recipe: Recipe, round_number: int, marks: LongVector, chosen: IntVector) -> int:
    count: int = choose_clients(recipe, round_number, recipe.clients_per_round, marks, chosen)
    return count


@compiled
def _watch(
    recipe: Recipe,
    histories: Histories,
    Q: FloatMatrix,
    b: FloatVector,
    P: FloatMatrix,
    sums: Sums,
    chosen: IntVector,
    barrier: Any,
    first_round: int,
    rounds: int,
    row_of_user: IntVector,
    tally: Tally,
    width: Any,
) -> None:
    dense = np.zeros(len(b), np.float32)
    for r in range(first_round, first_round + rounds):
        play_rounds(recipe, histories, Q, b, P, sums, chosen, barrier, 0, 1, r, 1, width)
        _tally_sum(
            sums.touched[0],
            sums.counts[0],
            sums.biases[0],
            sums.vectors[0],
            chosen,
            chosen[-1],
            row_of_user,
            tally,
            dense,
        )


@compiled
def _tally_sum(
    touched: IntVector,
    rows: int,
    biases: FloatVector,
    vectors: FloatMatrix,
    chosen: IntVector,
    present: int,
    row_of_user: IntVector,
    tally: Tally,
    dense: FloatVector,
) -> None:
    """Add one sum to what is kept about all rounds and about each of those who took part and are followed."""
    n_items, width = len(dense), len(tally.vectors)
    vector = np.zeros(width)
    for place in range(rows):
        item = touched[place]
        bias = np.float64(biases[item])
        tally.biases[item] += bias
        tally.squares[item] += bias * bias
        if bias < 0:
            tally.slopes[0] -= bias
            for f in range(width):
                vector[f] += vectors[item, f]
    for f in range(width):
        tally.vectors[f] += vector[f]
        tally.vector_squares[f] += vector[f] * vector[f]
    tally.devices[0] += present
    many = 4 * rows > n_items  # then whole rows are added at once, which is faster than item by item
    if many:
        for place in range(rows):
            dense[touched[place]] = biases[touched[place]]
    for k in range(present):
        row = row_of_user[chosen[k]]
        if row < 0:
            continue
        tally.taken_part[row] += 1
        for f in range(width):
            tally.own_vectors[row, f] += vector[f]
        own = tally.own[row]
        if many:
            for item in range(n_items):
                own[item] += dense[item]
        else:
            for place in range(rows):
                own[touched[place]] += biases[touched[place]]
    if many:
        for place in range(rows):
            dense[touched[place]] = 0
