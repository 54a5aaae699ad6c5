"""Federated collaborative filtering: the maths of FCF (Ammad-ud-din et al., 2019).

A user either has an item (p_ui = 1) or not (p_ui = 0), and the second may only mean that they have not met: so
each guess x_u . y_i counts with a confidence c_ui (Hu et al., 2008). What is to be made small is

    sum over u, i of  c_ui (p_ui - x_u . y_i)^2   +   lambda (sum |x_u|^2 + sum |y_i|^2)

with c_ui = 1 + alpha for what the user has and w for all else: w = 1 in the paper, and w = 0 in the variant
behind the tables of the FPL papers, where nothing is learnt from what a user does not have.

1. On the device: the user's own factors, in closed form. The server's Y'Y serves everyone; only the user's own
   items are added to it:      x_u = (w Y'Y + (1 + alpha - w) Y_u'Y_u + lambda I)^-1  (1 + alpha) sum of Y_u
2. On the device: one row for every item of the catalogue, which is what is uploaded:
                               f_ui = c_ui (p_ui - x_u . y_i) x_u
3. On the server: the gradient -2 (sum over u of f_ui) + 2 lambda y_i, and a step of Adam against it.

A simulation needs only the sum of step 2, and that costs far less than its parts: w (0 - x_u . y_i) x_u over all
users is -w y_i X'X, and the rest is a sum over an item's own users.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.compiling import compiled
from federank.data.interactions import Profiles


class Objective(NamedTuple):
    """What counts how much."""

    liked: np.float32
    """1 + alpha: the confidence that a user likes what they have."""
    unobserved: np.float32
    """w: the confidence that they dislike what they do not have."""
    regulariser: np.float32
    """lambda: the pull of all factors towards zero."""


class Adam(NamedTuple):
    """The server's memory of past gradients, from which each factor gets a step size of its own."""

    mean: FloatMatrix
    square: FloatMatrix
    steps: int


def solve_user(objective: Objective, item_factors: FloatMatrix, gram: FloatMatrix, profile: IntVector) -> FloatVector:
    """On the device: the factors that explain this user's history best; `gram` is the server's Y'Y."""
    own = item_factors[profile].astype(np.float64)
    sides = objective.unobserved * gram.astype(np.float64)
    sides += (objective.liked - objective.unobserved) * (own.T @ own)
    sides += objective.regulariser * np.eye(len(gram))
    solved: FloatVector = np.linalg.solve(sides, objective.liked * own.sum(axis=0)).astype(np.float32)
    return solved


def upload(
    objective: Objective, item_factors: FloatMatrix, user_factors: FloatVector, profile: IntVector
) -> FloatMatrix:
    """On the device: what it sends, a row for every item whether the user has it or not."""
    scores = item_factors @ user_factors
    weights = -objective.unobserved * scores
    weights[profile] = objective.liked * (1 - scores[profile])
    return np.outer(weights, user_factors)


def server_step(
    objective: Objective,
    item_factors: FloatMatrix,
    summed: FloatMatrix,
    memory: Adam,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
) -> tuple[FloatMatrix, Adam]:
    """On the server: the item factors after one step of Adam (Kingma and Ba, 2015), from the sum of all uploads."""
    gradient: FloatMatrix = 2 * (objective.regulariser * item_factors - summed)
    steps = memory.steps + 1
    mean: FloatMatrix = memory.mean * np.float32(beta1) + gradient * np.float32(1 - beta1)
    square: FloatMatrix = memory.square * np.float32(beta2) + gradient * gradient * np.float32(1 - beta2)
    size = np.float32(learning_rate * np.sqrt(1 - beta2**steps) / (1 - beta1**steps))
    direction: FloatMatrix = np.divide(mean, np.sqrt(square) + np.float32(1e-8))
    return item_factors - direction * size, Adam(mean, square, steps)


def solve_users(objective: Objective, item_factors: FloatMatrix, profiles: Profiles) -> FloatMatrix:
    """All devices at once: `solve_user` for each."""
    return _solve_users(objective, item_factors, gram_matrix(item_factors), profiles.starts, profiles.items)


def summed_uploads(
    objective: Objective, item_factors: FloatMatrix, user_factors: FloatMatrix, audiences: Profiles
) -> FloatMatrix:
    """The sum of all devices' uploads, without making any of them."""
    summed = np.empty_like(item_factors)
    everyone = gram_matrix(user_factors)
    _sum_uploads(objective, item_factors, user_factors, everyone, audiences.starts, audiences.items, summed)
    return summed


def gram_matrix(factors: FloatMatrix) -> FloatMatrix:
    """The inner products of all columns: Y'Y."""
    # Not by the matrix product's library: its threads wait for busy cores, and their number may change the last bits.
    products: FloatMatrix = np.einsum("if,ig->fg", factors, factors)
    return products


@compiled(parallel=True)
def _solve_users(
    objective: Objective, item_factors: FloatMatrix, gram: FloatMatrix, starts: LongVector, items: IntVector
) -> FloatMatrix:
    """The arithmetic of `solve_user`, on half of the symmetric matrix: its lower triangle."""
    factors = item_factors.shape[1]
    solved = np.empty((len(starts) - 1, factors), dtype=np.float32)
    for user in numba.prange(len(solved)):
        sides = objective.unobserved * gram.astype(np.float64)
        aim = np.zeros(factors)
        for item in items[starts[user] : starts[user + 1]]:
            for row in range(factors):
                y = np.float64(item_factors[item, row])
                aim[row] += objective.liked * y
                weighted = (objective.liked - objective.unobserved) * y
                for column in range(row + 1):
                    sides[row, column] += weighted * item_factors[item, column]
        for row in range(factors):
            sides[row, row] += objective.regulariser
        _solve_symmetric(sides, aim)
        solved[user] = aim
    return solved


@compiled
def _solve_symmetric(sides: Any, aim: Any) -> None:
    """Solve in place by Cholesky's decomposition L L' of the lower triangle of `sides`; `aim` becomes the answer."""
    size = len(aim)
    for row in range(size):
        for column in range(row + 1):
            rest = sides[row, column]
            for k in range(column):
                rest -= sides[row, k] * sides[column, k]
            sides[row, column] = np.sqrt(rest) if row == column else rest / sides[column, column]
    for row in range(size):  # L z = aim
        for k in range(row):
            aim[row] -= sides[row, k] * aim[k]
        aim[row] /= sides[row, row]
    for row in range(size - 1, -1, -1):  # L' x = z
        for k in range(row + 1, size):
            aim[row] -= sides[k, row] * aim[k]
        aim[row] /= sides[row, row]


@compiled(parallel=True)
def _sum_uploads(
    objective: Objective,
    item_factors: FloatMatrix,
    user_factors: FloatMatrix,
    everyone: FloatMatrix,
    starts: LongVector,
    users: IntVector,
    summed: FloatMatrix,
) -> None:
    """Each item's row: -w y X'X as if nobody had it, then (1 + alpha) (1 - x . y) x for -w (x . y) x of who has."""
    factors = item_factors.shape[1]
    for item in numba.prange(len(summed)):
        y, row = item_factors[item], summed[item]
        for factor in range(factors):
            total = np.float32(0)
            for other in range(factors):
                total += everyone[factor, other] * y[other]
            row[factor] = -objective.unobserved * total
        for user in users[starts[item] : starts[item + 1]]:
            x = user_factors[user]
            score = np.float32(0)
            for factor in range(factors):
                score += x[factor] * y[factor]
            weight = objective.liked * (np.float32(1) - score) + objective.unobserved * score
            for factor in range(factors):
                row[factor] += weight * x[factor]
