"""The maths of squares: the closed form is a minimum, and the pulls are its gradient."""

import numpy as np
import pytest
from tests.worlds import random_world

from federank.methods.frugal.objective import Objective, gram_matrix, residuals, solve_user

FACTORS = 5
OBJECTIVES = [
    Objective(np.float32(1 + alpha), np.float32(weight)) for alpha, weight in ((1, 1), (10, 1), (0, 1), (1, 0))
]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
LAMBDA = 0.5


@pytest.fixture
def data():
    return random_world(users=14, items=20, interactions=120, seed=2).compact()


@pytest.fixture
def items(data):
    return np.random.default_rng(1).normal(size=(data.n_items, FACTORS)).astype(np.float32)


def cost(objective, data, items, users):
    """The objective written out over all pairs, in double precision."""
    liked = data.matrix().toarray().astype(np.float64)
    confidence = np.where(liked == 1, objective.liked, objective.unobserved)
    users, items = users.astype(np.float64), items.astype(np.float64)
    return (confidence * (liked - users @ items.T) ** 2).sum() + LAMBDA * ((users**2).sum() + (items**2).sum())


def solved(objective, data, items):
    weights = np.ones(len(items), dtype=np.float32)
    gram = gram_matrix(items, weights)
    people = (data.profiles.of(user) for user in range(data.n_users))
    return np.array([solve_user(objective, LAMBDA, items, weights, gram, profile) for profile in people])


def test_the_gram_matrix_is_the_product_with_itself(items):
    weights = np.linspace(0, 2, len(items)).astype(np.float32)
    double = items.astype(float)
    expected = (double * weights[:, None]).T @ double
    np.testing.assert_allclose(gram_matrix(items, weights), expected, rtol=1e-9, atol=1e-12)


@every_objective
def test_no_small_change_of_a_solved_user_lowers_the_cost(objective, data, items):
    users = solved(objective, data, items).astype(np.float64)
    best = cost(objective, data, items, users)
    rng = np.random.default_rng(3)
    for _ in range(20):
        assert cost(objective, data, items, users + 1e-2 * rng.normal(size=users.shape)) > best


@every_objective
def test_the_summed_pulls_are_half_the_gradient_of_the_cost(objective, data, items):
    users = solved(objective, data, items)
    pulled = sum(np.outer(residuals(objective, items, x, data.profiles.of(u)), x) for u, x in enumerate(users))
    item, factor, step = 3, 2, 1e-3
    up, down = items.astype(np.float64), items.astype(np.float64)
    up[item, factor] += step
    down[item, factor] -= step
    slope = (cost(objective, data, up, users) - cost(objective, data, down, users)) / (2 * step)
    expected = -2 * pulled[item, factor] + 2 * LAMBDA * items[item, factor]
    assert slope == pytest.approx(expected, rel=1e-3, abs=1e-3)
