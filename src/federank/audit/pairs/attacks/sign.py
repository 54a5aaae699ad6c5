"""Sign: what a single Update says outright.

The bias gradient of a positive that is sent is g > 0, that of a negative is -g < 0. So one Update, even without any
link to earlier ones, separates what its owner has from what they have not, with certainty.
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess, claim
from federank.audit.pairs.view import PairsView


def sign(view: PairsView) -> Guess:
    """Claim every item of one Update whose bias gradient is above zero."""
    positive = np.zeros(view.seen_negative.shape, dtype=np.bool_)
    for row, update in enumerate(view.updates):
        positive[row, update.items[update.biases > 0]] = True
    return claim(positive)
