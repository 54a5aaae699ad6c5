"""Traffic: what a curious server has seen of each device, kept in bounded room.

The server of this threat model can link a device's Updates over rounds, and nothing hides a single Update from it. Of
each row it sees the item and the sign of the bias gradient: above zero for a liked item that was sent, below zero for
an item the device was compared with. Signs depend on draws alone, never on the values of factors, so the observer
makes a run's draws again (engines/pairs/replay.py) and skips the maths. What it notes is therefore the same for every
engine; a test compares it with Updates recorded from the reference engine.

Nothing is logged. For each person that is followed, and each item, there is one byte (in how many Updates it came as
a positive, 255 at most) and one bit (whether it ever came as a negative):

    9/8 x people x items bytes      and 8 bytes per item and per user for bookkeeping
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import IntVector, LongVector
from federank.compiling import compiled
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.replay import replay
from federank.engines.pairs.triples import BOTH, LOST, Pairs

_MOST = 255


class Sightings(NamedTuple):
    """What the server has of the people it follows: one row per person."""

    as_positive: NDArray[np.uint8]  # people x items: Updates that had this row with a bias above zero
    as_negative: NDArray[np.uint64]  # people x words of 64 items: was it ever there with a bias below zero
    negative_rows: LongVector  # people: rows with a bias below zero, over all Updates that arrived


class Observer:
    """The curious server: follows some devices through the rounds of a run."""

    def __init__(self, federation: Federation, people: IntVector) -> None:
        n_items, n_users = len(federation.item_biases), len(federation.recipe.triples)
        self.people = people
        self.round_number = 0
        self.sightings = Sightings(
            np.zeros((len(people), n_items), dtype=np.uint8),
            np.zeros((len(people), -(-n_items // 64)), dtype=np.uint64),
            np.zeros(len(people), dtype=np.int64),
        )
        self.federation = federation
        self._row_of_user = np.full(n_users, -1, dtype=np.int32)
        self._row_of_user[people] = np.arange(len(people), dtype=np.int32)

    def watch_until(self, round_number: int) -> None:
        """Take note of all rounds before this one that have not been watched yet."""
        federation, rounds = self.federation, range(self.round_number, round_number)
        n_items, followed = len(federation.item_biases), self._row_of_user >= 0
        in_update, update = np.full(n_items, -1, dtype=np.int64), 0  # the last Update that had each row
        for pairs in replay(federation.recipe, federation.histories, n_items, rounds, followed):
            update = _note(self._row_of_user, pairs, self.sightings, in_update, update)
        self.round_number = max(round_number, self.round_number)

    def negatives_of(self, rows: IntVector) -> NDArray[np.bool_]:
        """Of these people, which items were ever seen as negatives: people x items."""
        words = self.sightings.as_negative[rows]
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=self.sightings.as_positive.shape[1], bitorder="little")
        return bits.view(np.bool_)


@compiled(allocates=False)
def _note(row_of_user: IntVector, pairs: Pairs, seen: Sightings, in_update: LongVector, update: int) -> int:
    """Note a block of pairs as the server sees them; the number of the last Update met."""
    for k in range(len(pairs.users)):
        if pairs.counters[k] == 0:
            update += 1
        row = row_of_user[pairs.users[k]]
        if pairs.arrives[k] == LOST:
            continue
        # An item drawn twice in a round is summed on the device: the server sees one row.
        item = pairs.negatives[k]
        if in_update[item] != update:
            in_update[item] = update
            seen.as_negative[row, item >> 6] |= np.uint64(1) << np.uint64(item & 63)
            seen.negative_rows[row] += 1
        item = pairs.positives[k]
        if pairs.arrives[k] == BOTH and in_update[item] != update:
            in_update[item] = update
            if seen.as_positive[row, item] < _MOST:
                seen.as_positive[row, item] += np.uint8(1)
    return update
