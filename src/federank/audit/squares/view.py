"""What a curious server of few messages knows about some people: one row per person.

Nothing of a device's private state is in a view: it holds what messages or sums say, the public model, and what is
public about policies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector
from federank.audit.knowledge import KnownPolicies

UNSEEN, WITHOUT, WITH = 0, 1, 2
"""What a message says of an item: nothing, that it was not in what the message was made from, that it was."""


class MessagesView(NamedTuple):
    """What the server knows that reads single messages."""

    seen: NDArray[np.uint8]  # people x items: UNSEEN, WITHOUT or WITH
    tastes: FloatMatrix  # people x items: the catalogue scored with the vector of the person's last message
    neighbours: FloatMatrix  # people x items: what those have whose messages were made from alike items
    popularity: FloatVector  # items: what the sums of all messages say of everybody
    typical_size: int  # of a history
    policies: KnownPolicies


class SumsView(NamedTuple):
    """What the server knows that has only sums of rounds, and who was in each."""

    counts: FloatMatrix  # people x items: how much of the items' counts in sums goes back to this person
    tastes: FloatMatrix  # people x items: the same of the scores that the vectors of sums give
    popularity: FloatVector
    typical_size: int


AnySquaresView = MessagesView | SumsView
