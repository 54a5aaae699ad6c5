"""Rating prediction, and fold-in of new users.

    model.predict(user=42, item=50)          a rating, within the declared range
    model.recommend(42)                      the items with the highest predictions

A prediction is clipped to the declared range when it is returned, never during training. Without training ratings
there is a fallback: the user's mean rating for an unrated item, the overall mean for a user without ratings.
`predict_all` counts the fallbacks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, Ids, IntVector
from federank._numerics.topn import top_n
from federank.checks import check_int, check_iterable
from federank.data.interactions import Interactions, Profiles
from federank.errors import DataError, SettingError
from federank.methods.recommendations import Recommendations, Recommended, match_ids
from federank.methods.recommender import Recommender


class Predictions(NamedTuple):
    """Predicted ratings, and how many of them are fallbacks."""

    values: FloatVector
    unrated_items: int
    """Number of items without training ratings: predicted as the user's mean."""
    unknown_users: int
    """Number of users without training ratings: predicted as the overall mean."""


class PredictsRatings(Recommender):
    """A method whose scores are ratings; its settings declare the `lowest` and `highest` rating."""

    @abstractmethod
    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """Unclipped predictions of (user, item) pairs, by number."""

    def predict(self, user: Any, item: Any) -> float:
        """This user's predicted rating of this item, by original ids; the user's mean for an item without ratings."""
        self._fitted().user_index(user)  # An unknown user is an error, not a fallback.
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


def _numbers(ids: Sequence[Any] | Ids, known: Ids) -> IntVector:
    """The number of each id, as given or as text; -1 where it is unknown."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind == known.dtype.kind == "i":
        positions = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[positions] == ids, positions, -1).astype(np.int32)
    as_known = int if known.dtype.kind == "i" else str
    numbers = {identity: number for number, identity in enumerate(known.tolist())}
    distinct, positions = np.unique(np.asarray([str(identity) for identity in ids]), return_inverse=True)
    numbered = [numbers.get(as_known(text), -1) if _fits(text, as_known) else -1 for text in distinct.tolist()]
    return np.asarray(numbered, dtype=np.int32)[positions]


def _fits(text: str, kind: type) -> bool:
    return kind is str or text.removeprefix("-").isdecimal()


def refuse_bad_ratings(data: Interactions, settings: Any) -> None:
    """Refuse data without ratings, or with ratings outside the declared range."""
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


# Fold-in: the vector of a new user, from their own history and the shared model. A model that can do it scores the
# catalogue for a vector (`scores_of`), and learns one from a history (`enrolled`; `fold_in` for many at once) or from
# ratings (`rated`).


@dataclass(frozen=True, eq=False)
class User:
    """A new user: vector, history, and the shared model."""

    model: Any
    vector: FloatVector
    profile: IntVector

    def recommend(self, n: int = 10) -> list[Recommended]:
        """The top n items that this user does not have yet."""
        check_int("n", n, 1)
        seen = Profiles(np.array([0, len(self.profile)], dtype=np.int64), self.profile)
        n = min(n, len(self.model.item_ids))
        items, scores = top_n(_ranked(self.model, self.vector), np.zeros(1, dtype=np.int32), seen, n)
        one = np.array([0])
        return Recommendations(one, items, scores, self.model.item_ids, self.model.training.titles).of(0)

    def score(self, items: Sequence[Any]) -> FloatVector:
        """This user's scores of these items, by original ids."""
        numbers = np.array([self.model.training.item_index(item) for item in items], dtype=np.int32)
        scores: FloatVector = self.model.scores_of(self.vector)[numbers]
        return scores


def _ranked(model: Any, vector: FloatVector) -> FloatMatrix:
    """One row of scores, with minus infinity for items that must not be recommended."""
    scores: FloatMatrix = model.scores_of(vector)[None, :]
    return np.where(scores != 0, scores, np.float32(-np.inf)) if model.zero_is_nothing else scores


def can_enrol(model: Any) -> bool:
    """Whether a model can fold in a new user from their history."""
    return hasattr(model, "enrolled") and hasattr(model, "scores_of")


def recommend_to_new_users(model: Any, data: Interactions, users: IntVector, n: int) -> Recommendations:
    """Top n items for the users of other data, each folded in as a client would."""
    there = match_ids(data.item_ids, model.item_ids).astype(np.int32)
    starts, items = [0], []
    for user in users:
        known = there[data.profiles.of(int(user))]
        items.append(np.sort(known[known >= 0]))
        starts.append(starts[-1] + len(items[-1]))
    profiles = Profiles(np.array(starts, dtype=np.int64), np.concatenate(items) if items else np.zeros(0, np.int32))
    if hasattr(model, "fold_in"):
        vectors = model.fold_in(profiles, np.arange(len(users), dtype=np.int32))
    else:
        vectors = (model.enrolled(profiles.of(user)) for user in range(len(users)))
    n = min(n, len(model.item_ids))
    best, best_scores = np.full((len(users), n), -1, np.int32), np.zeros((len(users), n), np.float32)
    for row, vector in enumerate(vectors):
        scores = top_n(_ranked(model, vector), np.array([row], np.int32), profiles, n)
        best[row], best_scores[row] = (part[0] for part in scores)
    return Recommendations(data.user_ids[users], best, best_scores, model.item_ids, model.training.titles)


def enrol(model: Any, history: Sequence[Any] | Mapping[Any, float]) -> User:
    """Fold in a new user, by the fold-in that a client uses; nothing is sent.

    For a model of ratings the history is a dictionary of ratings by item, such as `{50: 4.5}`.
    """
    if hasattr(model, "rated"):
        return _enrolled_with_ratings(model, history)
    if not can_enrol(model):
        raise SettingError(
            f"A {type(model).__name__} cannot fold in a new user. Federated methods, bpr, ials, ease, userknn, "
            "itemknn, vae, pmf and svdpp can."
        )
    check_iterable("history", history, "a list of the ids of items")
    data = model.training
    profile = np.unique(np.array([data.item_index(item) for item in history], dtype=np.int32))
    if not 0 < len(profile) < data.n_items:
        raise SettingError(
            f"The history has {len(profile):,} of the {data.n_items:,} items of the catalogue; at least one item, "
            "and not all of them, are needed."
        )
    return User(model, model.enrolled(profile), profile)


def _enrolled_with_ratings(model: Any, history: Any) -> User:
    """Fold in a user with ratings: the vector that predicts them best, in closed form."""
    if not isinstance(history, Mapping) or not history:
        raise SettingError("A model of ratings learns from ratings; give them by item, such as {50: 4.5}.")
    numbers = np.array([model.training.item_index(item) for item in history], dtype=np.int32)
    order = np.argsort(numbers)
    ratings = np.array(list(history.values()), dtype=np.float32)[order]
    low, high = model.settings.lowest, model.settings.highest
    if not np.isfinite(ratings).all() or ratings.min() < low or ratings.max() > high:
        raise SettingError(f"The ratings of the history must be between {low:g} and {high:g}, as this model's do.")
    profile: IntVector = numbers[order]
    return User(model, model.rated(profile, ratings), profile)
