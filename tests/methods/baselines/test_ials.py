"""Alternating least squares: every solve is the one that methods/frugal/objective.py states."""

import numpy as np
import pytest
from tests.worlds import random_world

import federank as fr
from federank._numerics.topn import gram_matrix
from federank.methods.baselines.ials import new_workspace, solve_rows
from federank.methods.frugal.objective import Objective, solve_user


@pytest.mark.parametrize("factors", [1, 3, 8, 17])
def test_each_row_is_solved_as_a_user_is(factors):
    data = random_world(users=30, items=40, interactions=500, seed=3)
    rng = np.random.default_rng(factors)
    vectors = rng.standard_normal((data.n_items, factors)).astype(np.float32)
    weights = np.ones(data.n_items, dtype=np.float32)
    gram, residuals = gram_matrix(vectors, weights), rng.uniform(0.5, 3, data.n_users).astype(np.float32)
    solved = np.full((data.n_users, factors), 7, dtype=np.float32)
    solve_rows(*data.profiles, vectors, gram, 3.0, 0.5, residuals, 2, data.n_users, solved, new_workspace(factors))
    assert np.all(solved[:2] == 7)
    objective = Objective(np.float32(3), np.float32(0.5))
    for user in range(2, data.n_users):
        wanted = solve_user(objective, float(residuals[user]), vectors, weights, gram, data.profiles.of(user))
        np.testing.assert_allclose(solved[user], wanted, rtol=2e-4, atol=2e-5)


def loss(model, data):
    settings = model.settings
    has = data.matrix().toarray()
    confidence = np.where(has > 0, 1 + settings.alpha, settings.unobserved_weight)
    error = (confidence * (has - model.user_vectors @ model.item_vectors.T) ** 2).sum()
    return error + settings.regulariser * ((model.user_vectors**2).sum() + (model.item_vectors**2).sum())


def test_every_iteration_makes_the_loss_smaller():
    data, losses = random_world(users=40, items=30, interactions=500, seed=1), []
    model = fr.IALS(factors=4, regulariser=0.5, alpha=2.0, iterations=8)
    model.fit(data, training_options=fr.TrainingOptions(after_epoch=lambda _: losses.append(loss(model, data))))
    assert len(losses) == 8
    assert np.all(np.diff(losses) <= 1e-4 * losses[0])
    assert losses[-1] < losses[0]


def test_threads_never_change_a_bit():
    data = random_world(users=50, items=30, interactions=500, seed=2)
    one, three = (
        fr.IALS(factors=5).fit(data, training_options=fr.TrainingOptions(threads=threads)) for threads in (1, 3)
    )
    np.testing.assert_array_equal(one.user_vectors, three.user_vectors)
    np.testing.assert_array_equal(one.item_vectors, three.item_vectors)


def test_a_new_user_with_the_history_of_someone_known_gets_their_vector():
    data = random_world(users=20, items=30, interactions=500, seed=4)
    model = fr.IALS(factors=4, frequency=1.0, regulariser=0.1).fit(data)
    np.testing.assert_array_equal(model.enrolled(data.profiles.of(7)), model.user_vectors[7])


@pytest.mark.parametrize("frequency", [0.0, 0.5])
def test_regularization_grows_with_the_size_of_a_history(frequency):
    data = random_world(users=20, items=30, interactions=300, seed=4)
    model = fr.IALS(factors=4, frequency=frequency, regulariser=0.1, alpha=2.0, unobserved_weight=0.2).fit(data)
    vectors, weights, own = model.item_vectors, np.ones(data.n_items, dtype=np.float32), data.profiles.of(7)
    regulariser = 0.1 * (len(own) + 0.2 * data.n_items) ** frequency
    objective = Objective(np.float32(3.0), np.float32(0.2))
    wanted = solve_user(objective, regulariser, vectors, weights, gram_matrix(vectors, weights), own)
    np.testing.assert_allclose(model.enrolled(own), wanted, rtol=2e-4, atol=2e-5)


def test_what_no_user_has_may_not_count_for_more_than_what_they_have():
    with pytest.raises(fr.FedeRankError):
        fr.IALS(alpha=0.5, unobserved_weight=2.0)
