"""Pairs, drawn in blocks ahead of the steps that use them.

Draws depend on nothing but their names, so a whole block of them can be made before the first step is taken: the
random words eight at a time in vector registers, then the items, then what of each pair may arrive at the server.
Whatever follows a run without its maths (what was sent, what it gave away) draws the same blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.arrays import IntVector, LongVector
from federank.compiling import compiled
from federank.data.interactions import Profiles
from federank.models.rows import fetch_place, inlined
from federank.protocol.draws import DROPOUT, SELECT, SERVER, TRIPLE, below, happens, words
from federank.protocol.pairs.computation import Draw, Profile, pair_of_words
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.recipes import Recipe
from federank.protocol.pairs.transmission import may_send
from federank.protocol.policies.choices import outward_profiles

BLOCK = 512
LINE = 16  # items in one line of memory
_MOST_BIT_BYTES = 2**27

LOST, NEGATIVE_ONLY, BOTH = 0, 1, 2
"""How many of a pair's two gradients reach the server; one alone is the negative's."""


class Histories(NamedTuple):
    """What the devices take part with: everyone's items, ascending, and the same as bits where they are few enough."""

    starts: LongVector
    items: IntVector
    bits: np.ndarray[Any, np.dtype[np.uint64]]  # users x words of 64 items; no rows where it would be too large
    allowed: np.ndarray[Any, np.dtype[np.bool_]]  # which items may ever be sent; empty where all of them may


class Pairs(NamedTuple):
    """A block of pairs, column by column: who, when, which items, and what of it arrives."""

    users: IntVector
    rounds: np.ndarray[Any, np.dtype[np.uint32]]
    counters: np.ndarray[Any, np.dtype[np.uint32]]
    first: np.ndarray[Any, np.dtype[np.uint32]]
    second: np.ndarray[Any, np.dtype[np.uint32]]
    third: np.ndarray[Any, np.dtype[np.uint32]]
    coins: np.ndarray[Any, np.dtype[np.uint32]]
    positives: IntVector
    negatives: IntVector
    arrives: np.ndarray[Any, np.dtype[np.int8]]


@compiled(allocates=False)
def _set_bits(starts: LongVector, items: IntVector, bits: Any) -> None:
    for user in range(len(bits)):
        for position in range(starts[user], starts[user + 1]):
            bits[user, items[position] >> 6] |= np.uint64(1) << np.uint64(items[position] & 63)


def histories_of(profiles: Profiles, n_items: int, recipe: Recipe) -> Histories:
    """What everyone takes part with (their history, unless their policy says otherwise), as the kernels want it."""
    profiles = outward_profiles(recipe.outward, profiles)
    n_users, row = len(profiles.starts) - 1, -(-n_items // 64)
    bits = np.zeros((n_users, row) if 8 * n_users * row <= _MOST_BIT_BYTES else (0, row), dtype=np.uint64)
    starts, items = np.ascontiguousarray(profiles.starts).view(), np.ascontiguousarray(profiles.items).view()
    # Not to be written to, whoever made them: one form of array, so that one compilation serves every caller.
    starts.flags.writeable = items.flags.writeable = False
    _set_bits(starts, items, bits)
    return Histories(starts, items, bits, recipe.outward.allowed)


@inlined
def room_for_pairs(count: Any) -> Any:
    """A block with room for this many pairs."""
    return Pairs(
        np.empty(count, np.int32),
        np.empty(count, np.uint32),
        np.zeros(count, np.uint32),
        np.empty(count, np.uint32),
        np.empty(count, np.uint32),
        np.empty(count, np.uint32),
        np.empty(count, np.uint32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int8),
    )


@compiled(allocates=False)
def draw_pairs(recipe: Recipe, histories: Histories, n_items: int, pairs: Pairs, count: int) -> None:
    """Fill the items of a block whose users, rounds and counters are set, and what of each pair arrives."""
    # The words first, alone: this loop runs eight draws at a time in vector registers.
    for k in range(count):
        first, second, third, coin = words(recipe.seed, pairs.users[k], TRIPLE, pairs.rounds[k], pairs.counters[k])
        pairs.first[k] = first
        pairs.second[k] = second
        pairs.third[k] = third
        pairs.coins[k] = coin
    # Then ask memory for the histories: where there are no bits, a negative is looked for in them.
    if len(histories.bits) == 0:
        for k in range(count):
            start, end = histories.starts[pairs.users[k]], histories.starts[pairs.users[k] + 1]
            for position in range(start, min(end, start + 8 * LINE), LINE):
                fetch_place(histories.items, position)
    for k in range(count):
        user, r = pairs.users[k], pairs.rounds[k]
        start = histories.starts[user]
        size = histories.starts[user + 1] - start
        draw = Draw(recipe.seed, user, r, pairs.counters[k])
        profile = Profile(histories.items, start, size, histories.bits, n_items)
        position, j = pair_of_words(pairs.first[k], pairs.second[k], pairs.third[k], draw, profile)
        i = histories.items[position]
        pairs.positives[k] = i
        pairs.negatives[k] = j
        allowed = len(histories.allowed) == 0 or histories.allowed[position]
        coin, pi = pairs.coins[k], recipe.pi[user]
        sent = may_send(allowed, recipe.mask_per_row, recipe.seed, user, r, i, coin, pi)
        pairs.arrives[k] = BOTH if sent else NEGATIVE_ONLY
    if recipe.dropout > 0.0:
        for k in range(count):
            word, _, _, _ = words(recipe.seed, pairs.users[k], DROPOUT, pairs.rounds[k], 0)
            if happens(word, recipe.dropout):
                pairs.arrives[k] = LOST


@inlined
def next_block(recipe: Any, clients: Any, round_number: Any, client: Any, counter: Any, pairs: Any) -> Any:
    """Name the next pairs of these clients: how many fit in the block, and where to go on."""
    count = 0
    while count < len(pairs.users) and client < len(clients):
        pairs.users[count] = clients[client]
        pairs.rounds[count] = round_number
        pairs.counters[count] = counter
        count += 1
        counter += 1
        if counter == recipe.triples[clients[client]]:
            client += 1
            counter = 0
    return count, client, counter


@compiled(allocates=False)
def choose_one_each(recipe: Recipe, first_round: int, count: int, marks: Any, chosen: IntVector, pairs: Pairs) -> int:
    """The one client of each of these rounds; rounds for which nobody is there are left out."""
    if recipe.online >= 1.0 and len(recipe.trace) == 0:
        for k in range(count):
            word, _, _, _ = words(recipe.seed, SERVER, SELECT, first_round + k, 0)
            pairs.first[k] = word
        for k in range(count):
            pairs.users[k] = recipe.participants[below(pairs.first[k], len(recipe.participants))]
            pairs.rounds[k] = first_round + k
        return count
    found = 0
    for k in range(count):
        r = first_round + k
        if choose_clients(recipe, r, 1, marks, chosen) == 1:
            pairs.users[found] = chosen[0]
            pairs.rounds[found] = r
            found += 1
    return found
