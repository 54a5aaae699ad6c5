"""What a reader of messages writes down about the people it follows, whatever form the messages have.

6 x people x items bytes
"""

from __future__ import annotations

import numpy as np

from federank.arrays import IntVector
from federank.audit.squares.view import UNSEEN
from federank.engines.squares.federation import SquaresFederation


class Notes:
    """About the messages of the people that are followed."""

    def __init__(self, federation: SquaresFederation, people: IntVector) -> None:
        shape = len(people), federation.recipe.n_items
        self.people, self._federation = people, federation
        self.seen = np.full(shape, UNSEEN, dtype=np.uint8)  # all that was ever read of an item
        self.seen_last = np.full(shape, UNSEEN, dtype=np.uint8)  # what the last message alone says
        self.tastes = np.zeros(shape, dtype=np.float32)  # the catalogue, scored with the last message's vector
