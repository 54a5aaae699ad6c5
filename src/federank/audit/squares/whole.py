"""Whoever opens messages of whole numbers: both servers together, or a device that sends them plainly.

A message of the first round is p / sqrt(n): every number above zero is an item, so one message tells everything that it
was made from. A later one is c x' / (|c| |x|), a matrix of rank one: its strongest column points where the history
does, and gives the taste.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import IntVector
from federank.audit.squares.notes import Notes
from federank.audit.squares.view import WITH, WITHOUT
from federank.protocol.squares.aggregation import private_columns
from federank.protocol.squares.distribution import published
from federank.protocol.squares.private.message import directions_of, new_scratch, private_message


class WholeReader(Notes):
    """Reads the messages of the people that are followed, round by round."""

    def watch(self, answering: IntVector) -> None:
        """Read the messages of a round before it is folded."""
        federation = self._federation
        recipe, number, outward = federation.recipe, federation.round_number, federation.outward
        known = directions_of(published(recipe, federation.item_vectors), federation.weights)
        columns = private_columns(recipe, number)
        room = new_scratch(recipe.n_items, columns)
        for row in np.flatnonzero(np.isin(self.people, answering)):
            person = int(self.people[row])
            profile = outward.items[outward.starts[person] : outward.starts[person + 1]]
            if not private_message(known, profile, recipe.seed, person, number, room):
                continue
            # From here on only what was sent is used: whole numbers, and the public model.
            message = room.whole.reshape(-1, columns).astype(np.float64)
            strongest = message[:, np.abs(message).sum(axis=0).argmax()]
            if number == 0:
                read = strongest > 0
                self.seen[row] = np.where(read, WITH, np.maximum(self.seen[row], WITHOUT))
                self.seen_last[row] = np.where(read, WITH, WITHOUT)
                self.tastes[row] = strongest
            else:
                row_of_history = message @ (known.wanted.T @ strongest)
                sign = np.sign(row_of_history @ strongest) or 1.0
                self.tastes[row] = (known.wanted @ (known.wanted.T @ (sign * strongest))) / known.scales
