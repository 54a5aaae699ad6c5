"""Two data sets as one: what was known, and what has come since."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from federank.data.interactions import Interactions
from federank.data.splits import numbered_together
from federank.errors import DataError


def joined(known: Interactions, new: Interactions) -> Interactions:
    """Everything of both, users and items matched by their ids; of a pair that both have, the new row stays."""
    if known.ratings is not None and new.ratings is None:
        raise DataError("The model has learnt from rows with ratings, and the new rows have none; give them theirs.")
    before, after = numbered_together({"train": known, "new": new}).values()
    users, items = np.concatenate((before.users, after.users)), np.concatenate((before.items, after.items))
    keys = users.astype(np.int64) * before.n_items + items
    # Of equal keys the last stays: the new one.
    _, last = np.unique(keys[::-1], return_index=True)
    rows = len(keys) - 1 - last
    both = (before.times is not None, after.times is not None)
    return replace(
        before,
        users=users[rows],
        items=items[rows],
        ratings=None if before.ratings is None else np.concatenate((before.ratings, after.ratings))[rows],  # type: ignore[arg-type]
        times=np.concatenate((before.times, after.times))[rows] if all(both) else None,  # type: ignore[arg-type]
        repeats_left_out=known.repeats_left_out + new.repeats_left_out,
    )
