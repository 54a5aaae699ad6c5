"""At home, where ratings are learnt: a person's vector in closed form, from a few stars or from many.

    U = (V'V + pull I)^-1  V' (r - V beside)          over the rated items' V, in double precision

`beside` is what having rated items says by itself (SVD++; nothing for PMF): what V is multiplied with to predict is
U + beside. This is the only fold-in of PMF and SVD++: for new users of the library (`fr.enrol`), for clients and for
the page. It follows the model at once, where the vector of the rounds is a few steps behind. Nothing of it is sent.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatMatrix, FloatVector
from federank.models.svdpp import normaliser

HOME_PULL = 0.5
"""As if half a rating of zero were there in every direction: from few ratings it predicts far better than lambda n, and
from many as well (docs/fedrec.md)."""


def solved_taste(
    vectors: FloatMatrix, ratings: FloatVector, beside: FloatVector, pull: float = HOME_PULL
) -> FloatVector:
    """What predicts these ratings of items with these vectors best: the solved vector and what stands beside it."""
    V = vectors.astype(np.float64)
    own = np.linalg.solve(V.T @ V + pull * np.eye(V.shape[1]), V.T @ (ratings.astype(np.float64) - V @ beside))
    taste: FloatVector = (own + beside).astype(np.float32)
    return taste


def beside_of(implicit_vectors: FloatMatrix, factors: int) -> FloatVector:
    """What the rated items' W say together; nothing without rows."""
    if not len(implicit_vectors):
        return np.zeros(factors, dtype=np.float32)
    total: FloatVector = normaliser(len(implicit_vectors)) * implicit_vectors.sum(axis=0)
    return total
