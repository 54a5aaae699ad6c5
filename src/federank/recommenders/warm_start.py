"""A warm start: what a model knew before new data came, for those people and items that are still there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank.arrays import Ids
from federank.data.interactions import Interactions
from federank.recommenders.recommendations import match_ids


class Earlier(NamedTuple):
    """The vectors of an earlier model, and whose they are."""

    user_ids: Ids
    item_ids: Ids
    tables: dict[str, NDArray[np.float32]]
    """`user_...` has a row for each user, `item_...` for each item."""


def put_back(earlier: Earlier | None, data: Interactions, tables: dict[str, NDArray[np.float32]]) -> None:
    """Write the earlier rows into tables that are about to be learnt, for everybody and everything known before."""
    if earlier is None:
        return
    rows = {"user": match_ids(data.user_ids, earlier.user_ids), "item": match_ids(data.item_ids, earlier.item_ids)}
    for name, table in tables.items():
        there, before = rows[name[:4]], earlier.tables[name]
        known = there >= 0
        if before.ndim == 1:
            table[known] = before[there[known]]
        else:
            table[known, : before.shape[1]] = before[there[known]]
