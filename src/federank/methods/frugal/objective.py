"""Implicit least squares (Hu et al., 2008): learning from the items a user has and from those the user has not.

A user either has an item (p_ui = 1) or not (p_ui = 0), and the second may only mean that they have not met: so
each guess x_u . y_i counts with a confidence c_ui. What is to be made small is

    sum over u, i of  a_u d_i c_ui (p_ui - x_u . y_i)^2   +   lambda (sum |x_u|^2 + sum |y_i|^2)

with weights a_u of users and d_i of items (1 in FCF; server_update.py has Frugal's), and c_ui =
1 + alpha for what the user has and w for all else: w = 1, but 0 in the variant behind the tables of the FPL papers,
where nothing is learnt from what a user does not have.

1. The user's own vector, in closed form. Y'DY serves everyone; only the own items are added to it:
                               x_u = (w Y'DY + (1 + alpha - w) Y_u'DY_u + lambda I)^-1  (1 + alpha) sum of D Y_u
2. How strongly each item should be pulled towards x_u, one number per item:
                               w_ui = c_ui (p_ui - x_u . y_i)
   The gradient of a full catalogue is then a matrix of rank one, w_u x_u' (items x factors): FCF's upload.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.errors import Diverged

_NOTHING = 1e-13


class Objective(NamedTuple):
    """What counts how much."""

    liked: np.float32
    """1 + alpha: the confidence that a user likes what they have."""
    unobserved: np.float32
    """w: the confidence that they dislike what they do not have."""


def solve_user(
    objective: Objective,
    regulariser: float,
    item_vectors: FloatMatrix,
    weights: FloatVector,
    gram: RealMatrix,
    profile: IntVector,
) -> FloatVector:
    """The vector that explains this user's history best; `gram` is Y'DY."""
    own = item_vectors[profile].astype(np.float64)
    weighted = own * weights[profile, None]
    sides = objective.unobserved * gram
    sides += float(objective.liked - objective.unobserved) * (own.T @ weighted)
    sides += regulariser * np.eye(len(gram))
    refuse_singular(sides)
    solved: FloatVector = np.linalg.solve(sides, float(objective.liked) * weighted.sum(axis=0)).astype(np.float32)
    return solved


def refuse_singular(sides: RealMatrix) -> None:
    """Say so where no user's vector can be solved for: without regularisation, item vectors must span all factors."""
    values = np.linalg.eigvalsh(sides)
    if not values[0] > _NOTHING * values[-1]:
        raise Diverged(
            "The item vectors span fewer directions than there are factors, so that people's own vectors cannot be "
            "solved for. A regulariser above 0, or fewer factors, are needed."
        )


def residuals(objective: Objective, item_vectors: FloatMatrix, vector: FloatVector, profile: IntVector) -> FloatVector:
    """How strongly each of these items should move towards the user's vector: w_ui, one number per item."""
    scores = item_vectors @ vector
    strengths: FloatVector = -objective.unobserved * scores
    strengths[profile] = objective.liked * (1 - scores[profile])
    return strengths
