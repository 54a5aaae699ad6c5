"""RP3beta, GF-CF and weighted cosines, against the same written out densely."""

import numpy as np
from tests.worlds import two_tastes

import federank as fr

WORLD = two_tastes()
X = WORLD.matrix().toarray().astype(np.float64)
USERS, ITEMS = X.sum(1), X.sum(0)


def scores(model):
    return model._score_users(np.arange(WORLD.n_users, dtype=np.int32))


def test_rp3beta_is_a_walk_of_three_steps():
    alpha, beta = 0.7, 0.4
    walks = (X.T / ITEMS[:, None] ** alpha) @ (X / USERS[:, None] ** alpha) / ITEMS**beta
    np.fill_diagonal(walks, 0)
    model = fr.RP3beta(alpha=alpha, beta=beta, k=WORLD.n_items).fit(WORLD)
    np.testing.assert_allclose(scores(model), X @ walks, rtol=1e-4, atol=1e-6)


def test_gfcf_is_a_linear_and_a_low_pass_filter():
    graph = X / np.sqrt(USERS)[:, None] / np.sqrt(ITEMS)
    vectors = np.linalg.svd(graph)[2][:2].T
    low_pass = (X / np.sqrt(ITEMS)) @ vectors @ vectors.T * np.sqrt(ITEMS)
    model = fr.GFCF(factors=2, low_pass=0.5).fit(WORLD)
    np.testing.assert_allclose(scores(model), X @ graph.T @ graph + 0.5 * low_pass, rtol=1e-3, atol=1e-4)


def weighted_cosine(table, weights):
    lengths = np.sqrt((table**2 * weights).sum(1))
    found = (table * weights) @ table.T / np.outer(lengths, lengths)
    np.fill_diagonal(found, 0)
    return found


def test_item_knn_down_weights_active_users():
    likeness = weighted_cosine(X.T, USERS**-0.5)
    model = fr.ItemKNN(k=WORLD.n_items, user_weight_exponent=0.5).fit(WORLD)
    np.testing.assert_allclose(scores(model), X @ likeness, rtol=1e-4, atol=1e-6)


def test_user_knn_down_weights_popular_items():
    likeness = weighted_cosine(X, 1 / ITEMS)
    model = fr.UserKNN(k=WORLD.n_users, item_weight_exponent=1.0).fit(WORLD)
    np.testing.assert_allclose(scores(model), likeness @ X, rtol=1e-4, atol=1e-6)


def test_a_new_user_has_the_neighbours_of_one_with_the_same_history():
    model = fr.UserKNN(k=5, item_weight_exponent=1.0).fit(WORLD)
    vector = X[0].astype(np.float32)
    weights = 1 / ITEMS
    likeness = (X * weights) @ X[0] / np.sqrt((X * weights).sum(1) * (X[0] * weights).sum())
    best = np.lexsort((np.arange(len(likeness)), -likeness))[:5]
    np.testing.assert_allclose(model.scores_of(vector), likeness[best] @ X[best], rtol=1e-4, atol=1e-6)
