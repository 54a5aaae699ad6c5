"""Methods to which someone's vector is the history itself: nothing is learnt of a person but what they have.

So are neighbours, EASE, SLIM and Mult-VAE. Where all that was learnt is how much each item speaks for each other one,
scores are the history times that table (`ItemWeights`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.methods.recommender import Recommender


class FromHistories(Recommender):
    """Scores from a history, anyone who's it is."""

    def enrolled(self, profile: IntVector) -> FloatVector:
        """Someone with this history: a one for each of their items."""
        row = np.zeros(self.training.n_items, dtype=np.float32)
        row[profile] = 1
        return row


class ItemWeights(FromHistories):
    """Scores are the weights of what is in a history, added up."""

    weights: Any
    """Items x items, dense or sparse: how much having the first speaks for the second."""
    _histories: csr_array

    @property
    def zero_is_nothing(self) -> bool:
        """An item that nothing of someone's history speaks for is not recommended to them."""
        return True

    def _keep(self, weights: Any) -> None:
        self.weights, self._histories = weights, self.training.matrix()

    def _score_users(self, users: IntVector) -> FloatMatrix:
        return dense(self._histories[users] @ self.weights)

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for someone with this history."""
        scores: FloatVector = (vector @ self.weights).astype(np.float32)
        return scores


def dense(scores: Any) -> FloatMatrix:
    """Scores with their zeros written out."""
    table: FloatMatrix = scores.toarray() if issparse(scores) else scores
    return table
