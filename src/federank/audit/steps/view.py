"""What a curious server knows about some people from messages of a form that it was not made for: a row per person."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, FloatVector
from federank.audit.knowledge import KnownPolicies

Message = dict[str, NDArray[Any]]


class StepsView(NamedTuple):
    """What the server has that reads messages; with sums alone, `named`, `last` and `neighbours` are empty."""

    named: NDArray[np.int32]  # people x items: how many of a person's messages move the item
    strength: FloatMatrix  # people x items: how far they move it; of sums: how much further in the person's rounds
    last: list[Message]  # each person's last message, as it was sent
    broadcast: Message  # the public model, as devices were told it when the last round began
    neighbours: FloatMatrix  # people x items: what the messages of those move whose messages move alike items
    popularity: FloatVector  # items: how many messages move them, over everybody who is followed
    typical_size: int  # of a history
    policies: KnownPolicies
