"""Traffic where ratings are learnt: which items each device's Updates have named, and how often.

An Update of FedRec names the items its owner has rated and as many sampled ones as rho asks for, and the server cannot
tell one kind from the other in a single Update. Over rounds it can count. What is named depends on draws alone, so the
observer lays out the run's rounds again through the engine's own function and skips the maths.

    2 x people x items bytes
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector, LongVector
from federank.compiling import compiled
from federank.engines.ratings.compiled import room_for_raters
from federank.engines.ratings.federation import RatingFederation
from federank.engines.ratings.kernels import Raters, Room, lay_out
from federank.protocol.ratings.distribution import choose_one
from federank.protocol.ratings.recipes import RatingRecipe

_MOST = 65_535
"""Updates of one device that a count has room for."""


class RatingObserver:
    """The curious server: counts the items of some devices' Updates, or of their first so many, in a run's rounds."""

    def __init__(self, federation: RatingFederation, people: IntVector, most_updates: int = _MOST) -> None:
        n_items = len(federation.item_vectors)
        self.people, self.federation, self.round_number = people, federation, 0
        self.most_updates = most_updates
        self.times_named = np.zeros((len(people), n_items), dtype=np.uint16)
        self.updates = np.zeros(len(people), dtype=np.int64)
        self._row_of_user = np.full(len(federation.user_vectors), -1, dtype=np.int32)
        self._row_of_user[people] = np.arange(len(people), dtype=np.int32)

    def watch_until(self, round_number: int) -> None:
        """Take note of all rounds before this one that have not been watched yet."""
        federation = self.federation
        raters = federation.run.raters
        notes = self._row_of_user, self.times_named, self.updates, self.most_updates
        room = room_for_raters(federation)
        n_items = len(federation.item_vectors)
        _watch(federation.recipe, raters, room, n_items, self.round_number, round_number, *notes)
        self.round_number = max(self.round_number, round_number)


@compiled
def _watch(
    recipe: RatingRecipe,
    raters: Raters,
    room: Room,
    n_items: int,
    first_round: int,
    end: int,
    row_of_user: IntVector,
    times_named: NDArray[np.uint16],
    updates: LongVector,
    most_updates: int,
) -> None:
    """Lay out what followed devices learn from, round by round, and count it."""
    for r in range(first_round, end):
        n_clients = len(recipe.participants) if recipe.batch else 1
        for k in range(n_clients):
            position = k if recipe.batch else choose_one(recipe.seed, r, recipe.participants)
            user = recipe.participants[position]
            row = row_of_user[user]
            if row < 0 or updates[row] >= most_updates:
                continue
            size, count = lay_out(recipe, raters, user, r, n_items, room)
            updates[row] += 1
            for named in range(size + count):
                item = room.items[named]
                times_named[row, item] += np.uint16(1)
