"""Means with biases: known answers, and the best that least squares can do."""

import numpy as np
import pytest
from tests.rated_worlds import two_opinions

import federank as fr

DATA = fr.load([("ann", "tea", 5), ("ann", "jam", 3), ("bob", "tea", 4), ("bob", "ham", 1), ("cid", "jam", 2)])


def test_of_users_alone_and_undamped_it_is_the_users_mean():
    model = fr.Biases(of="users", user_damping=0).fit(DATA)
    assert model.predict("ann", "ham") == pytest.approx(4)
    assert model.predict("bob", "jam") == pytest.approx(2.5)


def test_of_items_alone_and_undamped_it_is_the_items_mean():
    model = fr.Biases(of="items", item_damping=0).fit(DATA)
    assert model.predict("cid", "tea") == pytest.approx(4.5)
    assert model.recommend("cid", 2)[0].item == "tea"


def test_of_no_users_it_is_the_mean_of_all():
    assert fr.Biases(of="none").fit(DATA).predict("cid", "tea") == pytest.approx(3)


def test_both_sides_are_the_damped_least_squares_solution():
    data = two_opinions()
    model = fr.Biases(user_damping=2, item_damping=3, passes=200).fit(data)
    design = np.zeros((len(data), data.n_users + data.n_items))
    rows = np.arange(len(data))
    design[rows, data.users] = 1
    design[rows, data.n_users + data.items] = 1
    damping = np.diag([2.0] * data.n_users + [3.0] * data.n_items)
    wanted = np.linalg.solve(design.T @ design + damping, design.T @ (data.ratings - data.ratings.mean()))
    found = np.concatenate([model.user_biases, model.item_biases])
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_predictions_stay_in_the_declared_range_and_ratings_outside_it_are_refused():
    assert fr.Biases(user_damping=0, item_damping=0).fit(DATA).predict("ann", "tea") <= 5
    with pytest.raises(fr.FedeRankError, match=r"1.*4"):
        fr.Biases(highest=4).fit(DATA)


def test_rmse_and_mae_are_metrics_by_name():
    split = fr.split_random(two_opinions(), 0.2)
    model = fr.Biases().fit(split.train)
    found = fr.evaluate(model, split, at=3, metrics=["rmse", "mae", "ndcg"]).means
    errors = fr.prediction_errors(model, split.test)
    assert (found["rmse"], found["mae"]) == (errors.rmse, errors.mae)
    with pytest.raises(fr.FedeRankError):
        fr.evaluate(fr.MostPopular().fit(split.train), split, metrics=["rmse"])
