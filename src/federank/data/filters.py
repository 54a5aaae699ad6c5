"""What is kept of a data set before it is split.

Each filter answers with new `Interactions` in which only the users and items that still have a row are
numbered. A filter that leaves nothing says so instead of handing on an empty set.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from federank.checks import whole
from federank.errors import DataError, SettingError

if TYPE_CHECKING:
    from federank.data.interactions import Interactions


def keep_users(data: Interactions, min_interactions: int) -> Interactions:
    """Only the users with at least this many interactions."""
    whole("min_interactions", min_interactions, 1)
    counts = np.bincount(data.users, minlength=data.n_users)
    return _kept(data, counts[data.users] >= min_interactions, f"no user has {min_interactions} or more interactions")


def keep_items(data: Interactions, min_interactions: int) -> Interactions:
    """Only the items with at least this many interactions."""
    whole("min_interactions", min_interactions, 1)
    return _kept(
        data,
        data.popularity[data.items] >= min_interactions,
        f"no item has {min_interactions} or more interactions",
    )


def k_core(data: Interactions, k: int, *, iterative: bool = True) -> Interactions:
    """Only users and items with at least k interactions each.

    Dropping an item takes interactions from users, so one pass (`iterative=False`: users first, then items)
    may leave some below k; the iterative form repeats until none is.
    """
    whole("k", k, 1)
    core = keep_items(keep_users(data, k), k)
    while iterative and np.bincount(core.users).min() < k:
        core = keep_items(keep_users(core, k), k)
    return core


def binarise(data: Interactions, threshold: float) -> Interactions:
    """Only the interactions rated at least this high, as liked or not: the ratings themselves are dropped."""
    if data.ratings is None:
        raise DataError(f"{data.name} has no ratings, so no threshold can be laid on them; leave the threshold out.")
    if not np.isfinite(threshold):
        raise SettingError(f"The threshold is {threshold}; a finite number is needed.")
    liked = _kept(data, data.ratings >= threshold, f"no rating reaches {threshold:g}")
    return replace(liked, ratings=None)


def within(data: Interactions, since: int | None = None, until: int | None = None) -> Interactions:
    """Only the interactions from `since` (included) to `until` (excluded), in seconds since 1970."""
    if data.times is None:
        raise DataError(f"{data.name} has no times, so no window of time can be cut from it; leave the window out.")
    inside = np.ones(len(data), dtype=bool)
    if since is not None:
        inside &= data.times >= since
    if until is not None:
        inside &= data.times < until
    return _kept(data, inside, f"no interaction lies in the window from {since} to {until}")


def _kept(data: Interactions, mask: np.ndarray[tuple[int], np.dtype[np.bool_]], nothing: str) -> Interactions:
    if not mask.any():
        raise DataError(f"Nothing of {data.name} is left: {nothing}. Filter less strictly.")
    return data.take(mask).compact()
