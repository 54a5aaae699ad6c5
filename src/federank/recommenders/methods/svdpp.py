"""SVD++ as a recommender: PMF that also learns from which items a person has rated, federated as in FedRec or not.

model = SVDPlusPlus(filling="average", rho=1).fit(split.train)
model.predict(42, 50)
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.engines.ratings.federation import RatingFederation
from federank.models.svdpp import normaliser
from federank.protocol.ratings.recipes import SVDPlusPlusSettings
from federank.recommenders.constructor import made_from
from federank.recommenders.methods.ratings import RatingFactors
from federank.recommenders.recommender import Arrays, restored_table


class SVDPlusPlus(RatingFactors):
    """SVD++ (Koren, 2008; Lin et al., 2020) without biases; see `SVDPlusPlusSettings`."""

    name = "svdpp"
    settings_type = SVDPlusPlusSettings
    settings: SVDPlusPlusSettings
    implicit_vectors: FloatMatrix
    """W: what having rated an item says about a person."""

    @made_from(SVDPlusPlusSettings)
    def __init__(self) -> None: ...

    def _follow(self, federation: RatingFederation) -> None:
        super()._follow(federation)
        self.implicit_vectors = federation.implicit_vectors[:, : federation.recipe.factors]

    def _tastes(self, users: IntVector) -> FloatMatrix:
        rated = self.training.matrix()[users]
        norms = 1 / np.sqrt(np.maximum(rated.sum(axis=1), 1))
        tastes: FloatMatrix = self.user_vectors[users] + (norms[:, None] * (rated @ self.implicit_vectors)).astype("f4")
        return tastes

    def _implicit_rows(self, profile: IntVector) -> FloatMatrix:
        return self.implicit_vectors[profile]

    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """An item that the user has rated does not speak for itself (Eq. 2)."""
        values = super()._predict_pairs(users, items)
        known, n_items = self.training, self.training.n_items
        # Rows are sorted by user and item, so their keys ascend.
        keys, wanted = known.users.astype(np.int64) * n_items + known.items, users.astype(np.int64) * n_items + items
        rated = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        for k in np.flatnonzero(rated):
            user, item, profile = users[k], items[k], known.profiles.of(users[k])
            others = profile[profile != item]
            taste = self.user_vectors[user] + normaliser(len(others)) * self.implicit_vectors[others].sum(axis=0)
            values[k] = taste @ self.item_vectors[item]
        return values

    def _shared_arrays(self) -> Arrays:
        return super()._shared_arrays() | {"implicit_vectors": self.implicit_vectors}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        super()._restore(shared, private)
        shape = (self.training.n_items, self.settings.factors)
        self.implicit_vectors = restored_table(shared, "implicit_vectors", shape)
