"""Methods that predict ratings: what to say of an item no one has rated, and within which range.

    model.predict(user=42, item=50)          a rating, within the declared range
    model.recommend(42)                      the items with the highest predictions

A prediction is clipped to the declared range when it is given, never while learning. Where there is nothing to
predict from there is a stated fallback: for an item that was never rated in training the user's mean rating, for a
user without ratings in training the mean of all. `predict_all` counts them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatVector, Ids, IntVector
from federank.data.interactions import Interactions
from federank.errors import DataError
from federank.methods.recommender import Recommender


class Predictions(NamedTuple):
    """Predicted ratings, and how many of them had nothing to be predicted from."""

    values: FloatVector
    unrated_items: int
    """The item was never rated in training: the user's mean rating stands in."""
    unknown_users: int
    """The user has no rating in training: the mean of all ratings stands in."""


class PredictsRatings(Recommender):
    """A method whose scores are ratings; its settings declare the `lowest` and the `highest` that there are."""

    @abstractmethod
    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """Unclipped predictions of pairs, by number."""

    def predict(self, user: Any, item: Any) -> float:
        """The rating this user would give this item, by original ids; for an item never rated, the user's mean."""
        self._fitted().user_index(user)  # a user no one has met is a mistake, not a matter of taste
        return float(self.predict_all([user], [item]).values[0])

    def predict_all(self, users: Sequence[Any] | Ids, items: Sequence[Any] | Ids) -> Predictions:
        """Predicted ratings of pairs, by original ids, with the fallbacks counted."""
        known = self._fitted()
        assert known.ratings is not None
        user_numbers, item_numbers = _numbers(users, known.user_ids), _numbers(items, known.item_ids)
        means = np.bincount(known.users, weights=known.ratings, minlength=known.n_users) / known.profiles.sizes
        values = np.full(len(user_numbers), known.ratings.mean(), dtype=np.float32)
        no_user, no_item = user_numbers < 0, (user_numbers >= 0) & (item_numbers < 0)
        values[no_item] = means[user_numbers[no_item]]
        both = (user_numbers >= 0) & (item_numbers >= 0)
        values[both] = self._predict_pairs(user_numbers[both], item_numbers[both])
        clipped = np.clip(values, self.settings.lowest, self.settings.highest)
        return Predictions(clipped, int(no_item.sum()), int(no_user.sum()))


def _numbers(asked: Sequence[Any] | Ids, known: Ids) -> IntVector:
    """The number of each id, given as it is or as text; -1 where it is not known."""
    if isinstance(asked, np.ndarray) and asked.dtype.kind == known.dtype.kind == "i":
        positions = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return np.where(known[positions] == asked, positions, -1).astype(np.int32)
    as_known = int if known.dtype.kind == "i" else str
    numbers = {identity: number for number, identity in enumerate(known.tolist())}
    distinct, positions = np.unique(np.asarray([str(identity) for identity in asked]), return_inverse=True)
    found = [numbers.get(as_known(text), -1) if _fits(text, as_known) else -1 for text in distinct.tolist()]
    return np.asarray(found, dtype=np.int32)[positions]


def _fits(text: str, kind: type) -> bool:
    return kind is str or text.removeprefix("-").isdecimal()


def refuse_bad_ratings(data: Interactions, settings: Any) -> None:
    """Ratings must be there, and within the declared range."""
    if data.ratings is None:
        raise DataError(f"{data.name} has no ratings to learn from; choose data with a column of ratings.")
    wrong = np.flatnonzero(~((data.ratings >= settings.lowest) & (data.ratings <= settings.highest)))
    if len(wrong):
        row = wrong[0]
        raise DataError(
            f"{len(wrong):,} of {len(data):,} ratings are outside the declared range from {settings.lowest:g} to "
            f"{settings.highest:g} (the first: user {data.user_ids[data.users[row]]} gave item "
            f"{data.item_ids[data.items[row]]} {data.ratings[row]:g}); declare another range, or fix them."
        )
