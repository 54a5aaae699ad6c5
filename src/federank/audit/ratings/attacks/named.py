"""Attacks on what FedRec sends: which items somebody has rated.

popularity     the public model alone: the vectors of items that are rated often grow long
presence       one Update: everything it names, rated or sampled
intersection   all Updates of a device: sampled items change from round to round and rated ones do not, so what was
               named every time is rated (unless the sample is kept for life)
second_rows    SVD++ only: an Update's rows of W are those of rated items, and of no others
"""

from __future__ import annotations

import numpy as np

from federank.audit.guess import Guess, claim, claim_typical
from federank.audit.ratings.view import RatingView


def popularity(view: RatingView) -> Guess:
    """Rank by the lengths of the public item vectors; claim as many as a device has on average."""
    lengths = np.linalg.norm(view.vectors, axis=1).astype(np.float32)
    return claim_typical(np.tile(lengths, (len(view.updates), 1)), view.typical_size)


def presence(view: RatingView) -> Guess:
    """Claim everything that one Update names."""
    return claim(view.named_once)


def intersection(view: RatingView) -> Guess:
    """Rank by how often an item was named; claim what was named every time."""
    every_time = (view.times_named == view.updates[:, None]) & (view.updates > 0)[:, None]
    return Guess(view.times_named.astype(np.float32), every_time.sum(axis=1, dtype=np.int64))


def second_rows(view: RatingView) -> Guess:
    """Claim every item whose W was sent."""
    return claim(view.second_rows)
