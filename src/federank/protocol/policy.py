"""Policy: what an owner allows to leave, decided once and kept for life.

Tossing a coin of pi anew for every pair (as published) only delays disclosure: over enough rounds nearly every item has
been sent once. A *sticky* decision is made once per item: of a profile of n items, ceil(pi n) may leave, and the others
never do. Which ones is drawn with the seed, like everything else, so that the decision needs no memory: the items whose
words are the smallest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import IntVector, RealVector
from federank.compiling import compiled
from federank.data.interactions import Profiles
from federank.protocol.draws import STICKY, words

Allowed = np.ndarray[Any, np.dtype[np.bool_]]


@compiled
def _words_of_items(seed: int, users: IntVector, items: IntVector) -> np.ndarray[Any, np.dtype[np.uint32]]:
    drawn = np.empty(len(items), np.uint32)
    for place in range(len(items)):
        word, _, _, _ = words(seed, users[place], STICKY, 0, items[place])
        drawn[place] = word
    return drawn


def everyones_sticky_items(seed: int, profiles: Profiles, pi: RealVector) -> Allowed:
    """Which items of everyone's profile may ever leave, in the places of the profiles' items."""
    sizes = profiles.sizes
    users = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    order = np.lexsort((_words_of_items(seed, users, np.array(profiles.items)), users))
    rank = np.arange(len(order)) - profiles.starts[users]
    allowed = np.zeros(len(order), dtype=np.bool_)
    allowed[order[rank < np.ceil(pi * sizes)[users]]] = True
    return allowed


def sticky_items(seed: int, user: int, profile: IntVector, pi: float) -> Allowed:
    """The same for one person: ceil(pi n) of their n items."""
    users = np.full(len(profile), user, dtype=np.int32)
    first = np.argsort(_words_of_items(seed, users, np.array(profile)), kind="stable")[
        : int(np.ceil(pi * len(profile)))
    ]
    allowed = np.zeros(len(profile), dtype=np.bool_)
    allowed[first] = True
    return allowed
