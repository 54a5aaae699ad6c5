"""Methods to which someone's vector is the history itself: nothing is learnt of a person but what they have.

So are neighbours, EASE, SLIM and Mult-VAE. Where all that was learnt is how much each item speaks for each other one,
scores are the history times that table (`ItemWeights`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import ModelError
from federank.methods.recommender import Arrays, Recommender


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


def stored_weights(weights: csr_array) -> Arrays:
    """Sparse weights as the arrays of a model's file."""
    starts, items = weights.indptr.astype(np.int64), weights.indices.astype(np.int32)
    return {"starts": starts, "items": items, "values": weights.data}


def restored_weights(stored: Arrays, count: int) -> csr_array:
    """Sparse weights from a model's file, once they are finite weights between this many items."""
    try:
        weights = csr_array((stored["values"], stored["items"], stored["starts"]), shape=(count, count))
        weights.check_format()
    except (KeyError, ValueError) as reason:
        raise ModelError(f"The model's weights are not those of its {count:,} items; train it again.") from reason
    if weights.dtype != np.float32 or not np.isfinite(weights.data).all():
        raise ModelError("The model's weights are not finite float32 numbers; train it again.")
    return weights


def dense(scores: Any) -> FloatMatrix:
    """Scores with their zeros written out."""
    table: FloatMatrix = scores.toarray() if issparse(scores) else scores
    return table
