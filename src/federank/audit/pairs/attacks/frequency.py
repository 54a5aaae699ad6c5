"""Frequency: how often an item was sent as a positive.

As long as devices send no false positives, once is as good as often, and this attack knows less than accumulation. It
asks what would be left if a single sighting could be denied: a row that comes back is no accident. (Decoys that are
kept for life come back too: against deniable sharing it is no better than accumulation.)
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess
from federank.audit.pairs.view import PairsView


def frequency(view: PairsView) -> Guess:
    """Rank by the number of Updates that sent an item as a positive; claim what came more than once."""
    return Guess(view.times_positive.astype(np.float32), (view.times_positive > 1).sum(axis=1, dtype=np.int64))
