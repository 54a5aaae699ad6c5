"""Distribution: the server chooses who takes part and sends them the shared model.

Devices are chosen uniformly among those that are there, without replacement inside a round; over rounds anyone may
be chosen again. The choice depends on the seed and the round alone, never on what a device holds. A device that is
not there when its number comes up is passed over for the next; if too few are there, the round has fewer clients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.models.rows import inlined, outlined
from federank.protocol.draws import ONLINE, SELECT, SERVER, below, happens, words
from federank.protocol.messages import Broadcast

PATIENCE = 16
"""After this many times the population in draws, whoever has not been found there is taken to be away."""


@inlined
def is_online(seed: Any, user: Any, round_number: Any, online: Any, trace: Any) -> Any:
    """Whether a device is there when a round begins."""
    if len(trace) > 0:
        return trace[np.int64(round_number) % len(trace), user]
    if online >= 1.0:
        return True
    return happens(_word_of_device(seed, user, round_number), online)


@outlined
def _word_of_device(seed: Any, user: Any, round_number: Any) -> Any:
    word, _, _, _ = words(seed, user, ONLINE, round_number, 0)
    return word


@inlined
def choose_clients(recipe: Any, round_number: Any, wanted: Any, marks: Any, chosen: Any) -> Any:
    """Fill `chosen` with the round's clients, `wanted` of them if so many are there, and answer how many there are.

    `marks` (one whole number per user, kept between rounds) remembers who was drawn in this round already.
    """
    seed, participants, online, trace = recipe.seed, recipe.participants, recipe.online, recipe.trace
    population = len(participants)
    stamp = np.int64(round_number) + 1
    if 2 * wanted > population:
        # Many are wanted: it is shorter to draw those who are left out.
        _draw_marked(seed, round_number, participants, population - wanted, marks, stamp)
        count = 0
        for position in range(population):
            user = participants[position]
            if marks[user] != stamp and is_online(seed, user, round_number, online, trace):
                chosen[count] = user
                count += 1
        return count
    count = 0
    for draw in range(PATIENCE * population):
        word, _, _, _ = words(seed, SERVER, SELECT, round_number, draw)
        user = participants[below(word, population)]
        if marks[user] != stamp and is_online(seed, user, round_number, online, trace):
            marks[user] = stamp
            chosen[count] = user
            count += 1
            if count == wanted:
                break
    return count


@inlined
def _draw_marked(seed: Any, round_number: Any, participants: Any, wanted: Any, marks: Any, stamp: Any) -> None:
    """Mark this many different users, drawn uniformly."""
    count = 0
    draw = 0
    while count < wanted:
        word, _, _, _ = words(seed, SERVER, SELECT, round_number, draw)
        user = participants[below(word, len(participants))]
        if marks[user] != stamp:
            marks[user] = stamp
            count += 1
        draw += 1


def make_broadcast(round_number: int, vectors: FloatMatrix, biases: FloatVector) -> Broadcast:
    """The whole shared model, as a copy that no later round can change; every round has made a version of it."""
    everything = np.arange(len(biases), dtype=np.int32)
    return Broadcast(round_number, round_number, everything, vectors.copy(), biases.copy())
