"""What PMF and SVD++ share: learning ratings by the rounds of a federation, and predicting them from vectors.

model = PMF(filling="hybrid", rho=3).fit(split.train)
model.predict(user=42, item=50)          a rating, within the declared range
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.methods.fedrec import method as federated
from federank.methods.fedrec.communication import (
    count_rating_communication,
    fedrec_of_paper,
    passes_of_paper,
    rating_cost,
)
from federank.methods.fedrec.reference import folded_in, implicit_part, normaliser
from federank.methods.fedrec.settings import (
    FedRecSettings,
    PMFSettings,
    RatingSettings,
    SVDPlusPlusSettings,
    simulated_recipe,
)
from federank.methods.fedrec.simulation import RatingFederation
from federank.methods.predicting import PredictsRatings, refuse_bad_ratings
from federank.methods.recommender import Arrays, LearnsInRounds, made_from
from federank.simulation.complexity import cost_figures
from federank.simulation.options import TrainingOptions


class RatingFactors(PredictsRatings, LearnsInRounds):
    """Predicts r = U_u . V_i, with what SVD++ adds to U_u."""

    audit = "federank.methods.fedrec.audit"

    learns_from = "ratings"
    tables: ClassVar = {"item_vectors": 2, "user_vectors": 2}
    method_type: ClassVar[type[federated.PMF]]
    """The method of real clients that goes on from this model."""
    settings: RatingSettings
    item_vectors: FloatMatrix
    user_vectors: FloatMatrix

    def _learn(self, train: Interactions, training_options: TrainingOptions) -> None:
        refuse_bad_ratings(train, self.settings)
        federation = RatingFederation.established(self.settings, train)
        self._play(federation, self.settings.iterations, training_options)
        self.report["ratings"] = round(federation.steps_per_round * federation.round_number)

    @property
    def method(self) -> federated.PMF:
        """The method of real clients, with the settings of this run."""
        names = {part.name for part in fields(FedRecSettings)} | {"factors", "seed"}
        own = {name: getattr(self.settings, name) for name in names}
        return self.method_type(**own, n_items=self.training.n_items)

    @property
    def state(self) -> federated.RatingState:
        """What was learnt, as the server of a federation has it: it goes on at the rate with which the run ended."""
        return federated.trained_state(self.method, self._tables(), self.settings.iterations)

    def _tables(self) -> dict[str, FloatMatrix]:
        return {"vectors": np.ascontiguousarray(self.item_vectors)}

    def communication(self) -> dict[str, Any]:
        """What the run has sent, in rows and bytes, beside the paper's formula; nothing without a federation."""
        if not self.settings.federated:
            return {}
        data = self._fitted()
        sizes = data.profiles.sizes
        recipe = simulated_recipe(self.settings, sizes, data.n_items)
        return count_rating_communication(recipe, sizes, data.n_items, self.report["rounds"], self.settings.rho)

    def complexity(self) -> dict[str, float]:
        """What an iteration costs a client and the server, counted, beside the paper's formulas; SVD++ has none."""
        if not self.settings.federated:
            return {}
        data, settings = self._fitted(), self.settings
        counted = rating_cost(RatingFederation.established(settings, data))
        users = int(np.count_nonzero(data.profiles.sizes))
        formula = fedrec_of_paper(settings, ratings=len(data), users=users, items=data.n_items)
        passes = {"local_passes": passes_of_paper(settings)}
        return cost_figures(counted, None if settings.implicit else formula) | passes

    def _factors_of(self, users: IntVector) -> FloatMatrix:
        """What V is multiplied with to predict these users' ratings of items they have not rated."""
        return self.user_vectors[users]

    def rated(self, profile: IntVector, ratings: FloatVector) -> FloatVector:
        """The vector of a new user with these ratings, by the fold-in of a client."""
        implicit = implicit_part(self._implicit_rows(profile), self.item_vectors.shape[1])
        return folded_in(self.item_vectors[profile], ratings, implicit)

    def _implicit_rows(self, profile: IntVector) -> FloatMatrix:
        """The rows of W of these items; SVD++ has them."""
        return self.item_vectors[profile[:0]]

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The predicted ratings of the full catalogue for a user with these factors, within the declared range."""
        predicted = np.clip(self.item_vectors @ vector, self.settings.lowest, self.settings.highest)
        scores: FloatVector = predicted.astype(np.float32)
        return scores

    def _predict_pairs(self, users: IntVector, items: IntVector) -> FloatVector:
        """Unclipped predictions of pairs, by number."""
        distinct, positions = np.unique(users, return_inverse=True)
        values: FloatVector = np.einsum("kf,kf->k", self._factors_of(distinct)[positions], self.item_vectors[items])
        return values

    def _score_users(self, users: IntVector) -> FloatMatrix:
        scores: FloatMatrix = self._factors_of(users) @ self.item_vectors.T
        return scores

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        if self.training.ratings is None:
            raise ModelError("The model was learnt from ratings, but the training data in its folder have none.")
        super()._restore(shared, private)


# PMF as a recommender: probabilistic matrix factorisation, federated as in FedRec or not.


class PMF(RatingFactors):
    """Probabilistic matrix factorisation (Mnih and Salakhutdinov, 2007; Lin et al., 2020); see `PMFSettings`."""

    name = "pmf"
    method_type = federated.PMF
    settings_type = PMFSettings
    settings: PMFSettings

    @made_from(PMFSettings)
    def __init__(self) -> None: ...


# SVD++ as a recommender: PMF that also learns from which items a user has rated, federated as in FedRec or not.


class SVDPlusPlus(RatingFactors):
    """SVD++ (Koren, 2008; Lin et al., 2020) without biases; see `SVDPlusPlusSettings`."""

    name = "svdpp"
    method_type = federated.SVDPlusPlus
    settings_type = SVDPlusPlusSettings
    settings: SVDPlusPlusSettings
    tables: ClassVar = {"item_vectors": 2, "implicit_vectors": 2, "user_vectors": 2}
    implicit_vectors: FloatMatrix
    """W: what having rated an item says about a user."""

    @made_from(SVDPlusPlusSettings)
    def __init__(self) -> None: ...

    def _factors_of(self, users: IntVector) -> FloatMatrix:
        rated = self.training.matrix()[users]
        norms = 1 / np.sqrt(np.maximum(rated.sum(axis=1), 1))
        factors: FloatMatrix = self.user_vectors[users] + (norms[:, None] * (rated @ self.implicit_vectors)).astype(
            "f4"
        )
        return factors

    def _tables(self) -> dict[str, FloatMatrix]:
        return super()._tables() | {"implicit_vectors": np.ascontiguousarray(self.implicit_vectors)}

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
            factors = self.user_vectors[user] + normaliser(len(others)) * self.implicit_vectors[others].sum(axis=0)
            values[k] = factors @ self.item_vectors[item]
        return values
