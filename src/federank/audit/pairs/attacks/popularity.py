"""Popularity: the attacker who knows only the public model, and guesses the same for everyone.

The biases of items rise with every positive that is sent and fall with every negative, so they tell how popular an
item is. Whoever holds the model knows that much about anybody; an attack has learnt something about a person only as
far as it does better than this one. (Where few positives are sent and many negatives, popular items are drawn as
negatives less often, and the biases can even point the wrong way: that is measured too.)
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess, claim_typical
from federank.audit.pairs.view import AnyView


def popularity(view: AnyView) -> Guess:
    """Rank everything by the public biases."""
    return claim_typical(np.tile(view.broadcast.biases, (len(view.vectors), 1)), view.typical_size)
