"""Bias of categories: which kinds of items people choose more than their number tells, and how lists shift that.

Bias of a category (the papers' B) is its share of the interactions divided by its share of the items: above 1, it
is chosen more than its number of items tells. Bias disparity is how far the lists move it:

    B = (share of c among the interactions) / (share of c among the items)
    BD = (B_recommended - B_train) / B_train

B_train is taken over the training part, B_recommended over the lists; the items are those of training. Both can
be told for groups of users. An item in several categories counts fully in each; one in none counts in the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from federank.arrays import IntMatrix, IntVector, LongVector, RealVector
from federank.data.categories import Categories
from federank.data.interactions import Interactions
from federank.errors import DataError
from federank.evaluation.metrics.exposure import count_items

EVERYBODY = "everybody"


def bias(categories: Categories, counts: LongVector, catalogue: LongVector) -> RealVector:
    """B of each category: `counts` is how often each item was chosen, `catalogue` is 1 for each item there is.

    Not a number where a category has no item in the catalogue, or nothing at all was chosen.
    """
    if not counts.any():
        return np.full(len(categories.names), np.nan)
    of_interactions = categories.weights(counts) / counts.sum()
    of_items = categories.weights(catalogue) / catalogue.sum()
    return _ratio(of_interactions, of_items)


def bias_disparity(recommended: RealVector, training: RealVector) -> RealVector:
    """BD of each category: 0 where lists are as biased as training, -1 where they leave the category out."""
    return _ratio(recommended - training, training)


def bias_table(
    categories: Categories,
    train: Interactions,
    users: IntVector,
    items: IntMatrix,
    groups: Mapping[Any, str] | None = None,
) -> pl.DataFrame:
    """B_train, B_recommended and BD per group of users and category of training items; everybody comes first.

    `users` and `items` are the lists. `groups` maps a user's original id to the name of the user's group.
    """
    catalogue = (train.popularity > 0).astype(np.int64)
    occurring = categories.weights(catalogue) > 0
    names, group_of = _groups(train, groups)
    frames = []
    for code, name in enumerate(names, start=-1):
        mine = np.ones(train.n_users, dtype=bool) if code < 0 else group_of == code
        chosen = train.popularity if code < 0 else count_items(train.items[mine[train.users]], train.n_items)
        before = bias(categories, chosen, catalogue)
        after = bias(categories, count_items(items[mine[users]], train.n_items), catalogue)
        columns = {"bias_train": before, "bias": after, "bias_disparity": bias_disparity(after, before)}
        frames.append(
            pl.DataFrame(
                {
                    "group": [name] * int(occurring.sum()),
                    "category": [
                        category for category, there in zip(categories.names, occurring, strict=True) if there
                    ],
                    **{title: pl.Series(column[occurring]).fill_nan(None) for title, column in columns.items()},
                }
            )
        )
    return pl.concat(frames)


def _groups(train: Interactions, groups: Mapping[Any, str] | None) -> tuple[list[str], IntVector]:
    """The groups' names, everybody first, and each user's position in the rest of them."""
    if groups is None:
        return [EVERYBODY], np.full(train.n_users, -1, dtype=np.int32)
    ids = train.user_ids.tolist()
    missing = [user for user in ids if user not in groups]
    if missing:
        raise DataError(f"{len(missing):,} users have no group (the first: {missing[0]!r}); give one to every user.")
    named = sorted({groups[user] for user in ids})
    position = {name: code for code, name in enumerate(named)}
    return [EVERYBODY, *named], np.array([position[groups[user]] for user in ids], dtype=np.int32)


def _ratio(above: RealVector, below: RealVector) -> RealVector:
    ratio: RealVector = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return ratio
