"""EASE (Steck, 2019): the item-item weights that explain everybody's history best, in closed form.

    B = argmin |X - X B|^2 + lambda |B|^2   with a diagonal of zeros, so that no item explains itself

    P = (X'X + lambda I)^-1        B_ij = -P_ij / P_jj

X is users x items of ones. All there is to pay is the inverse of a symmetric items x items matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_array

from federank.arrays import FloatMatrix, RealMatrix


def item_weights(histories: csr_array, regulariser: float) -> FloatMatrix:
    """B, items x items, with a diagonal of zeros."""
    ones = csr_array(histories, dtype=np.float64)
    together: RealMatrix = np.asfortranarray((ones.T @ ones).toarray())
    diagonal = np.diag_indices(len(together))
    together[diagonal] += regulariser
    # X'X + lambda I is symmetric and positive: by Cholesky its inverse costs half of a general one.
    factor, _ = dpotrf(together, lower=1, overwrite_a=1)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    scale = -1.0 / inverse[diagonal]
    lower = np.tril(inverse, -1)
    weights: FloatMatrix = np.ascontiguousarray((lower + lower.T) * scale, dtype=np.float32)
    return weights
