"""A run's draws, made again without its maths: who took part in which round, and with which pairs.

What is sent, by whom and when depends on draws alone, never on the values of factors. So traffic can be counted, and
what a server saw can be told, from a recipe and the devices' histories, at the speed of the draws and for any run of
any engine. Whoever wants to know goes through the pairs block by block:

    for pairs in replay(recipe, histories, n_items, range(rounds)):
        note(pairs)     # a compiled function: columns of users, rounds, counters, items, and what arrived

Pairs come in the order of the run: by round, then by client as chosen, then by counter, which begins at 0 for each
client. A block holds many rounds, or a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector, LongVector
from federank.compiling import compiled
from federank.engines.pairs.triples import Histories, Pairs, draw_pairs, room_for_pairs
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.recipes import Recipe

_PAIRS_AT_ONCE = 1 << 15
_ROUND, _CLIENTS, _CLIENT, _COUNTER = range(4)
"""Where a replay stands: the round, how many clients it has (-1: not drawn yet), the next of them, its next pair."""


def replay(
    recipe: Recipe, histories: Histories, n_items: int, rounds: range, followed: NDArray[np.bool_] | None = None
) -> Iterator[Pairs]:
    """The pairs of these rounds, block by block; of some devices only, where it is said which are `followed`.

    A block is valid until the next one is asked for.
    """
    n_users = len(histories.starts) - 1
    marks, chosen = np.zeros(n_users, dtype=np.int64), np.empty(n_users, dtype=np.int32)
    everybody = np.ones(n_users, dtype=np.bool_)
    room = room_for_pairs(_PAIRS_AT_ONCE)
    position = np.array([rounds.start, -1, 0, 0], dtype=np.int64)
    while position[_ROUND] < rounds.stop:
        count = _name(recipe, rounds.stop, everybody if followed is None else followed, marks, chosen, position, room)
        draw_pairs(recipe, histories, n_items, room, count)
        yield Pairs(*(column[:count] for column in room))


@compiled(allocates=False)
def _name(
    recipe: Recipe,
    end: int,
    followed: NDArray[np.bool_],
    marks: LongVector,
    chosen: IntVector,
    position: LongVector,
    pairs: Pairs,
) -> int:
    """Fill a block with the names of the next pairs, and remember where to go on; how many there are."""
    count = 0
    while position[_ROUND] < end:
        r = position[_ROUND]
        if position[_CLIENTS] < 0:
            position[_CLIENTS] = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        while position[_CLIENT] < position[_CLIENTS]:
            user = chosen[position[_CLIENT]]
            while followed[user] and position[_COUNTER] < recipe.triples[user]:
                if count == len(pairs.users):
                    return count
                pairs.users[count] = user
                pairs.rounds[count] = r
                pairs.counters[count] = position[_COUNTER]
                count += 1
                position[_COUNTER] += 1
            position[_CLIENT] += 1
            position[_COUNTER] = 0
        position[_ROUND] += 1
        position[_CLIENTS] = -1
        position[_CLIENT] = 0
    return count


@compiled
def clients_of_round(recipe: Recipe, round_number: int, n_users: int) -> IntVector:
    """Who takes part in a round, in the order of the draws."""
    marks, chosen = np.zeros(n_users, np.int64), np.empty(n_users, np.int32)
    count = choose_clients(recipe, round_number, recipe.clients_per_round, marks, chosen)
    return chosen[:count]


def participations(recipe: Recipe, n_users: int, rounds: int) -> LongVector:
    """In how many of the first rounds each user was chosen."""
    counts = np.zeros(n_users, dtype=np.int64)
    _count(recipe, rounds, np.zeros(n_users, dtype=np.int64), np.empty(n_users, dtype=np.int32), counts)
    return counts


@compiled
def _count(recipe: Recipe, rounds: int, marks: LongVector, chosen: IntVector, counts: LongVector) -> None:
    for r in range(rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        for position in range(m):
            counts[chosen[position]] += 1
