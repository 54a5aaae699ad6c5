"""What a server may know of people without any message of theirs: the numbers of their policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import RealVector


class KnownPolicies(NamedTuple):
    """What a server may know of each person's policy: its kind and its numbers, not what it does to which item."""

    liked: RealVector  # people: the probability that an item of theirs is ever sent as liked, where that is for life
    unliked: RealVector  # people: the same of an item they do not have; 0 where there are no decoys
    excluding: NDArray[np.bool_]  # people: whether their negatives are never items of their own
