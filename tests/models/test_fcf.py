"""FCF's maths: the closed form is a minimum, uploads are gradients, and the fast sum is the sum of devices."""

import numpy as np
import pytest
from tests.worlds import random_world

from federank.models.fcf import Adam, Objective, server_step, solve_user, solve_users, summed_uploads, upload

FACTORS = 5
OBJECTIVES = [
    Objective(np.float32(1 + alpha), np.float32(weight), np.float32(regulariser))
    for alpha, weight, regulariser in ((1.0, 1.0, 0.5), (10.0, 1.0, 2.0), (0.0, 1.0, 0.1), (1.0, 0.0, 0.5))
]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)


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
    return (confidence * (liked - users @ items.T) ** 2).sum() + objective.regulariser * (
        (users**2).sum() + (items**2).sum()
    )


@every_objective
def test_no_small_change_of_a_solved_user_lowers_the_cost(objective, data, items):
    users = solve_users(objective, items, data.profiles).astype(np.float64)
    best = cost(objective, data, items, users)
    rng = np.random.default_rng(3)
    for _ in range(20):
        assert cost(objective, data, items, users + 1e-2 * rng.normal(size=users.shape)) > best


@every_objective
def test_the_fast_solve_is_the_solve_of_each_device(objective, data, items):
    gram = items.T @ items
    devices = [solve_user(objective, items, gram, data.profiles.of(user)) for user in range(data.n_users)]
    np.testing.assert_allclose(solve_users(objective, items, data.profiles), devices, rtol=1e-4, atol=1e-5)


@every_objective
def test_the_fast_sum_is_the_sum_of_what_the_devices_upload(objective, data, items):
    users = solve_users(objective, items, data.profiles)
    uploads = [upload(objective, items, users[user], data.profiles.of(user)) for user in range(data.n_users)]
    assert all(sent.shape == items.shape for sent in uploads)
    summed = summed_uploads(objective, items, users, data.audiences)
    np.testing.assert_allclose(summed, np.sum(uploads, axis=0), rtol=1e-3, atol=1e-4)


@every_objective
def test_uploads_and_the_servers_share_make_the_gradient_of_the_cost(objective, data, items):
    users = solve_users(objective, items, data.profiles)
    summed = summed_uploads(objective, items, users, data.audiences)
    gradient = -2 * summed + 2 * objective.regulariser * items
    step = 1e-4
    for item, factor in ((0, 0), (3, 2), (len(items) - 1, FACTORS - 1)):
        nudge = np.zeros(items.shape)
        nudge[item, factor] = step
        up, down = (cost(objective, data, items + sign * nudge, users) for sign in (1, -1))
        assert gradient[item, factor] == pytest.approx((up - down) / (2 * step), rel=1e-3, abs=1e-3)


def test_a_dense_upload_has_a_row_for_items_the_user_does_not_have(data, items):
    users = solve_users(OBJECTIVES[0], items, data.profiles)
    sent = upload(OBJECTIVES[0], items, users[0], data.profiles.of(0))
    assert np.all(np.abs(sent).sum(axis=1) > 0)


def test_without_weight_on_the_unobserved_an_upload_names_the_history(data, items):
    users = solve_users(OBJECTIVES[3], items, data.profiles)
    sent = upload(OBJECTIVES[3], items, users[0], data.profiles.of(0))
    np.testing.assert_array_equal(np.flatnonzero(np.abs(sent).sum(axis=1)), data.profiles.of(0))


def test_the_first_step_of_adam_is_as_long_as_the_learning_rate(items):
    memory = Adam(np.zeros_like(items), np.zeros_like(items), 0)
    nobody = np.zeros_like(items)  # only the regulariser pulls, towards zero
    stepped, memory = server_step(OBJECTIVES[0], items, nobody, memory, learning_rate=0.01, beta1=0.9, beta2=0.999)
    np.testing.assert_allclose(stepped, items - 0.01 * np.sign(items), rtol=1e-4, atol=1e-5)
    assert memory.steps == 1


def test_adam_follows_its_formula_over_several_steps(items):
    objective, beta1, beta2 = OBJECTIVES[1], 0.8, 0.99
    rng = np.random.default_rng(4)
    mean = square = np.zeros(items.shape)
    expected, stepped = items.astype(np.float64), items
    memory = Adam(np.zeros_like(items), np.zeros_like(items), 0)
    for number in range(1, 6):
        summed = rng.normal(size=items.shape).astype(np.float32)
        gradient = -2 * summed + 2 * objective.regulariser * expected
        mean, square = beta1 * mean + (1 - beta1) * gradient, beta2 * square + (1 - beta2) * gradient**2
        unbiased, size = mean / (1 - beta1**number), np.sqrt(square / (1 - beta2**number))
        expected = expected - 0.05 * unbiased / size
        stepped, memory = server_step(objective, stepped, summed, memory, learning_rate=0.05, beta1=beta1, beta2=beta2)
    np.testing.assert_allclose(stepped, expected, rtol=1e-3, atol=1e-4)
