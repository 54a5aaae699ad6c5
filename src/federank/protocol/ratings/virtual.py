"""Virtual ratings: items a person has not rated, rated all the same, so that an upload does not say which are which.

Before each round a device samples rho |I_u| of the items its owner has not rated (never more than there are) and
gives each a rating (FedRec, 2020, Algorithm 3):

    user averaging    the mean of the owner's ratings (Eq. 5)
    hybrid filling    that mean at first; later the prediction of the owner's vectors (Eq. 6), trained for T_local more
                      passes over the own ratings

How much that hides is a question to be measured, not assumed. As published, sampled items change with every round and
rated ones do not, so that the items of every upload are the rated ones. Sampled once for life (`sampling = fixed`), all
items of an upload come back alike; SVD++ still uploads gradients of W for the rated items alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import IntVector
from federank.models.rows import inlined
from federank.protocol.draws import VIRTUAL, absent_item, below, words


@inlined
def round_of_sample(recipe: Any, round_number: Any) -> Any:
    """The round that names a sample's draws: always the first, where items are sampled for life."""
    return np.int64(0) if recipe.fixed else np.int64(round_number)


@inlined
def sample_unrated(
    seed: Any, user: Any, round_number: Any, profile: Any, n_items: Any, marks: Any, stamp: Any, sampled: Any
) -> None:
    """Fill `sampled` with different items that are missing from an ascending profile.

    Every set of that many is equally likely. `marks` has a whole number for every item of the catalogue and is kept
    between calls; `stamp` must differ from those of earlier calls.
    """
    size, count = len(profile), len(sampled)
    drawn = np.empty(count, np.uint32)
    for k in range(count):  # alone in their loop, the draws run eight at a time in vector registers
        word, _, _, _ = words(seed, user, VIRTUAL, round_number, k)
        drawn[k] = word
    if 2 * (size + count) <= n_items:
        # Most items are free: draw again what is rated or sampled already.
        for k in range(size):
            marks[profile[k]] = stamp
        found, tried = 0, 0
        while found < count:
            if tried < count:
                word = drawn[tried]
            else:
                word, _, _, _ = words(seed, user, VIRTUAL, round_number, tried)
            tried += 1
            item = below(word, n_items)
            if marks[item] != stamp:
                marks[item] = stamp
                sampled[found] = item
                found += 1
    else:
        # Few are: draw ranks among the missing items, each at the first try (Floyd's method).
        for k in range(count):
            last = n_items - size - count + k
            rank = below(drawn[k], last + 1)
            if marks[rank] == stamp:
                rank = last
            marks[rank] = stamp
            sampled[k] = absent_item(profile, 0, size, rank)


def virtual_items(
    recipe: Any, user: int, round_number: int, profile: IntVector, count: int, n_items: int, sampled: IntVector
) -> IntVector:
    """The items that get a virtual rating in this round, in the order of their draws.

    A sample for life outlives changes of the history: what was `sampled` before and is not rated stays, ahead of new
    ones. (While most of the catalogue is free the draws see to that by themselves.)
    """
    drawn = _drawn(recipe.seed, user, round_of_sample(recipe, round_number), profile, n_items, count)
    if not recipe.fixed or not len(sampled):
        return drawn
    stays = np.setdiff1d(sampled, profile).astype(np.int32)
    if np.isin(stays, drawn).all() or np.isin(drawn, stays).all():
        return drawn
    if len(stays) >= count:
        return stays[:count]
    known = np.union1d(profile, stays).astype(np.int32)
    more = _drawn(recipe.seed, user, round_of_sample(recipe, round_number), known, n_items, count - len(stays))
    return np.concatenate((stays, more))


def _drawn(seed: int, user: int, named_by: int, profile: IntVector, n_items: int, count: int) -> IntVector:
    drawn = np.empty(count, np.int32)
    sample_unrated(seed, user, named_by, profile, n_items, np.zeros(n_items, np.int64), 1, drawn)
    return drawn
