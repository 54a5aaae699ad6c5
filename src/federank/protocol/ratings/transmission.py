"""Transmission, when ratings are learnt: the gradients of rated and sampled items, in one ascending list.

Everything a device has gathered is sent; what hides the rated items is that sampled ones are among them (FedRec,
2020, section 3). So the list is sorted: its order must not tell one kind from the other.
"""

from __future__ import annotations

import numpy as np

from federank.protocol.ratings.computation import RatingGradients
from federank.protocol.ratings.messages import RatingUpdate


def share_ratings(gradients: RatingGradients) -> RatingUpdate:
    """The Update: all item gradients, by item number."""
    order = np.argsort(gradients.items)
    return RatingUpdate(
        gradients.items[order].astype(np.int32),
        gradients.vectors[order].astype(np.float32),
        gradients.implicit_items.astype(np.int32),
        gradients.implicit_vectors.astype(np.float32),
    )
