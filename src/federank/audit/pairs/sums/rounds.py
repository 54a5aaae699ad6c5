"""Each round's sum, handed from the engine to the tally of those who took part.

Plain rounds are played by the compiled engine's own function, one at a time, and leave their sum in its working space.
Where Updates are clipped and noisy the engine keeps no sum; but the model moves by the learning rate times the sum, so
the difference of two Broadcasts is the sum, and that is what is taken. Where the server takes another step than adding,
the sum is asked for before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank.compiling import compiled
from federank.engines.pairs import compiled as engine
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import (
    Crew,
    Run,
    ShardSum,
    Sums,
    new_crew,
    play_rounds,
    room_for_sums,
    sum_of_shard,
)
from federank.engines.pairs.replay import clients_of_round
from federank.engines.pairs.stepped import next_sum, take_step


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
    sums = room_for_sums(1, *federation.item_vectors.shape)
    crew = new_crew(len(federation.user_vectors), workers=1)
    _watch(federation.run, sums, crew, federation.round_number, rounds, row_of_user, tally)
    federation.round_number += rounds


def watch_disguised(federation: Federation, rounds: int, row_of_user: IntVector, tally: Tally) -> None:
    """The same where Updates are clipped and noisy."""
    recipe, everything = federation.recipe, np.arange(len(federation.item_biases), dtype=np.int32)
    no_stamps = np.zeros(0, dtype=np.int64)
    dense = np.zeros(len(everything), dtype=np.float32)
    for _ in range(rounds):
        clients = clients_of_round(recipe, federation.round_number, len(row_of_user))
        vectors, biases = federation.item_vectors.copy(), federation.item_biases.copy()
        engine.play(federation, 1)
        vectors = (federation.item_vectors - vectors) / recipe.learning_rate
        biases = (federation.item_biases - biases) / recipe.learning_rate
        total = ShardSum(vectors, biases, no_stamps, everything)
        _tally_sum(total, len(everything), clients, row_of_user, tally, dense)


def watch_stepped(federation: Federation, rounds: int, row_of_user: IntVector, tally: Tally) -> None:
    """The same where the server's step is another than adding: the sum is taken before it."""
    everything, factors = np.arange(len(federation.item_biases), dtype=np.int32), federation.recipe.factors
    dense, padded = np.zeros(len(everything), dtype=np.float32), np.zeros_like(federation.item_vectors)
    sums, no_stamps = room_for_sums(1, *federation.item_vectors.shape), np.zeros(0, dtype=np.int64)
    for _ in range(rounds):
        clients = clients_of_round(federation.recipe, federation.round_number, len(row_of_user))
        summed = next_sum(federation, sums)
        take_step(federation, summed)
        if summed is not None:
            padded[:, :factors] = summed[0]
            total = ShardSum(padded, summed[1].copy(), no_stamps, everything)
            _tally_sum(total, len(everything), clients, row_of_user, tally, dense)


@compiled
def _watch(
    run: Run, sums: Sums, crew: Crew, first_round: int, rounds: int, row_of_user: IntVector, tally: Tally
) -> None:
    dense = np.zeros(len(run.item_biases), np.float32)
    for r in range(first_round, first_round + rounds):
        play_rounds(run, sums, crew, 0, r, 1)
        clients = crew.chosen[: crew.chosen[-1]]
        _tally_sum(sum_of_shard(sums, 0), sums.counts[0], clients, row_of_user, tally, dense)


@compiled
def _tally_sum(
    total: ShardSum, rows: int, clients: IntVector, row_of_user: IntVector, tally: Tally, dense: FloatVector
) -> None:
    """Add one sum to what is kept about all rounds and about each of those who took part and are followed."""
    vectors, biases, touched = total.vectors, total.biases, total.touched
    n_items, width = len(dense), len(tally.vectors)
    vector = np.zeros(width)
    for position in range(rows):
        item = touched[position]
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
    tally.devices[0] += len(clients)
    many = 4 * rows > n_items  # then whole rows are added at once, which is faster than item by item
    if many:
        for position in range(rows):
            dense[touched[position]] = biases[touched[position]]
    for client in clients:
        row = row_of_user[client]
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
            for position in range(rows):
                own[touched[position]] += biases[touched[position]]
    if many:
        for position in range(rows):
            dense[touched[position]] = 0
