"""What PMF and SVD++ share: learning from ratings, predicting them, and what to say of an item nobody has rated.

    model = PMF(filling="hybrid", rho=3).fit(split.train)
    model.predict(user=42, item=50)          a rating, within the declared range
    model.recommend(42)                      the items with the highest predictions

A prediction is clipped to the declared range when it is given, never while learning. Where there is nothing to
predict from there is a stated fallback: for an item that was never rated in training the user's mean rating, for a
user without ratings in training the mean of all. `predict_all` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, Ids, IntVector
from federank.data.interactions import Interactions
from federank.engines.conduct import Conduct
from federank.engines.ratings.communication import count_rating_communication
from federank.engines.ratings.federation import RatingFederation
from federank.engines.training import train as play_epochs
from federank.errors import DataError, ModelError
from federank.protocol.ratings.recipes import RatingSettings, rating_recipe
from federank.recommenders.identity import run_identity
from federank.recommenders.recommender import Arrays, Recommender, restored_table


class Predictions(NamedTuple):
    """Predicted ratings, and how many of them had nothing to be predicted from."""

    values: FloatVector
    unrated_items: int
    """The item was never rated in training: the user's mean rating stands in."""
    unknown_users: int
    """The user has no rating in training: the mean of all ratings stands in."""


class RatingFactors(Recommender):
    """Predicts r = U_u . V_i, with what SVD++ adds to U_u."""

    in_rounds = True
    learns_from = "ratings"
    settings: RatingSettings
    item_vectors: FloatMatrix
    user_vectors: FloatMatrix

    def _learn(self, train: Interactions, conduct: Conduct) -> None:
        _refuse_bad_ratings(train, self.settings)
        federation = RatingFederation.established(self.settings, train)
        self._follow(federation)
        identity = run_identity(self.name, self.settings, train)
        seconds = play_epochs(federation, self.settings.iterations, conduct, identity)
        self._follow(federation)
        self.report |= {
            "seconds": seconds,
            "rounds": federation.round_number,
            "rounds_per_epoch": federation.rounds_per_epoch,
            "ratings": round(federation.steps_per_round * federation.round_number),
        }

    def _follow(self, federation: RatingFederation) -> None:
        """Views of the federation's tables without their padding: no copy, so they are current during training."""
        factors = federation.recipe.factors
        self.item_vectors = federation.item_vectors[:, :factors]
        self.user_vectors = federation.user_vectors[:, :factors]

    def predict(self, user: Any, item: Any) -> float:
        """The rating this user would give this item, by original ids; for an item never rated, the user's mean."""
        self._fitted().user_index(user)  # a user nobody has met is a mistake, not a matter of taste
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

    def communication(self) -> dict[str, Any]:
        """What the run has sent, in rows and bytes, beside the paper's formula; nothing without a federation."""
        if not self.settings.federated:
            return {}
        data = self._fitted()
        sizes = data.profiles.sizes
        recipe = rating_recipe(self.settings, sizes, data.n_items)
        return count_rating_communication(recipe, sizes, data.n_items, self.report["rounds"], self.settings.rho)

    def _tastes(self, users: IntVector) -> FloatMatrix:
        """What V is multiplied with to predict these users' ratings of items they have not rated."""
        return self.user_vectors[users]

    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """Unclipped predictions of pairs, by number."""
        distinct, positions = np.unique(users, return_inverse=True)
        values: FloatVector = np.einsum("kf,kf->k", self._tastes(distinct)[positions], self.item_vectors[items])
        return values

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self._tastes(users) @ self.item_vectors.T
        return scores

    def _shared_arrays(self) -> Arrays:
        return {"item_vectors": self.item_vectors}

    def _private_arrays(self) -> Arrays:
        return {"user_vectors": self.user_vectors}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        if self.training.ratings is None:
            raise ModelError("The model was learnt from ratings, but the training data in its folder have none.")
        factors = self.settings.factors
        self.item_vectors = restored_table(shared, "item_vectors", (self.training.n_items, factors))
        self.user_vectors = restored_table(private, "user_vectors", (self.training.n_users, factors))


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


def _refuse_bad_ratings(data: Interactions, settings: RatingSettings) -> None:
    """Ratings must be there, and within the declared range."""
    if data.ratings is None:
        raise DataError(f"{data.name} has no ratings to learn from; choose data with a column of ratings.")
    wrong = np.flatnonzero(~((data.ratings >= settings.lowest) & (data.ratings <= settings.highest)))
    if len(wrong):
        row = wrong[0]
        raise DataError(
            f"{len(wrong):,} of {len(data):,} ratings lie outside the declared range from {settings.lowest:g} to "
            f"{settings.highest:g} (the first: user {data.user_ids[data.users[row]]} gave item "
            f"{data.item_ids[data.items[row]]} {data.ratings[row]:g}); declare another range, or mend them."
        )
