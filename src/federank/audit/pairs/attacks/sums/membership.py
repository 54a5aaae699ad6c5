"""Membership in a sum: what is different about the rounds in which a person takes part?

A device adds to the sum a positive bias gradient for items it sends as liked and a negative one for items it is
compared with. If the sums of an item are higher in the rounds of one person than in the others, beyond what chance
explains, that person has sent it as liked; or, where everybody else has sent it as a negative, has never done so.
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess
from federank.audit.pairs.view import SumsView

_BEYOND_CHANCE = 3.0
"""Standard deviations."""


def membership(view: SumsView) -> Guess:
    """Rank by how far the sums of a person's rounds lie above the others; claim what is far above."""
    return Guess(view.differences, (view.differences > _BEYOND_CHANCE).sum(axis=1, dtype=np.int64))
