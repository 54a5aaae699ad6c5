"""Attacks on what FedRec sends: which items somebody has rated.

popularity     the public model alone: the vectors of items that are rated often grow long
presence       one Update: everything it names, rated or sampled
intersection   all Updates of a device: sampled items change from round to round and rated ones do not, so what was
               named every time is rated (unless the sample is kept for life)
second_rows    SVD++ only: an Update's rows of W are those of rated items, and of no others
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import FloatMatrix, LongVector
from federank.audit.attacks import BASELINE
from federank.audit.view import Guess, claim


class RatingView(NamedTuple):
    """What the server knows of some people: one row per person."""

    times_named: NDArray[np.uint16]  # people x items: in how many Updates the item was
    updates: LongVector  # people: how many Updates there were
    named_once: NDArray[np.bool_]  # people x items: what one Update named
    second_rows: NDArray[np.bool_]  # people x items: of which W was sent; nothing for PMF
    vectors: FloatMatrix  # V, public
    typical_size: int


def popularity(view: RatingView) -> Guess:
    """Rank by the lengths of the public item vectors; claim as many as a device has on average."""
    lengths = np.linalg.norm(view.vectors, axis=1).astype(np.float32)
    people = len(view.updates)
    return Guess(np.tile(lengths, (people, 1)), np.full(people, view.typical_size, dtype=np.int64))


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


RATING_ATTACKS: dict[str, dict[str, Callable[[RatingView], Guess]]] = {
    "updates": {
        BASELINE: popularity,
        "presence": presence,
        "intersection": intersection,
        "second_rows": second_rows,
    },
    "anonymous": {BASELINE: popularity, "presence": presence, "second_rows": second_rows},
}
"""What each kind of curious server tries."""
