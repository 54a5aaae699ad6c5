"""Bounds for anyone who reads only sums: no item is shown to nearly everyone, and what honest people like stays."""

import numpy as np
import pytest

import federank as fr
from federank.errors import SettingError
from federank.methods.frugal.bounds import LEAST_ITEMS, Tastes, hold_back, private_tastes, spectral_tastes
from federank.methods.frugal.settings import FrugalSettings

PEOPLE, ITEMS, FACTORS = 2000, 400, 5


def crowd(seed=1):
    """People's vectors, and items that none of them would all be shown."""
    rng = np.random.default_rng(seed)
    people = rng.normal(size=(PEOPLE, FACTORS)) + np.array([1.0, 0, 0, 0, 0])
    return people, rng.normal(size=(ITEMS, FACTORS)).astype(np.float32)


def tastes_of(people):
    return Tastes(people.mean(axis=0), np.cov(people.T))


def shown(people, vectors):
    """To how large a share of people each item is shown, in lists of ten."""
    lists = np.argsort(-people @ vectors.T, axis=1)[:, :10]
    return np.bincount(lists.ravel(), minlength=len(vectors)) / len(people)


def test_an_item_that_is_pushed_is_shown_to_few_and_the_others_are_left_alone():
    people, vectors = crowd()
    vectors[7] = [30, 0, 0, 0, 0]
    assert shown(people, vectors)[7] > 0.7
    held = hold_back(vectors, tastes_of(people), 0.15)
    assert shown(people, held)[7] < 0.2
    changed = np.flatnonzero((held != vectors).any(axis=1))
    assert 7 in changed
    assert len(changed) < 0.1 * ITEMS
    directions = held / np.linalg.norm(held, axis=1, keepdims=True)
    np.testing.assert_allclose(directions, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("most", [0.1, 0.2, 0.4])
def test_no_item_is_shown_to_many_more_than_is_allowed(most):
    people, vectors = crowd(2)
    vectors[:20] *= 3
    assert shown(people, vectors).max() > 0.4
    assert shown(people, hold_back(vectors, tastes_of(people), most)).max() < 1.5 * most


def test_without_a_bound_or_with_few_items_nothing_is_held_back():
    people, vectors = crowd()
    vectors[7] *= 50
    assert hold_back(vectors, tastes_of(people), 1.0) is vectors
    few = vectors[: LEAST_ITEMS - 1]
    assert hold_back(few, tastes_of(people), 0.15) is few
    nothing = np.zeros_like(vectors)
    assert not hold_back(nothing, tastes_of(people), 0.15).any()


@pytest.fixture(scope="module")
def town():
    return fr.city(people=300, places=250, checkins=9000)


def test_users_vectors_lie_as_the_model_tells(town):
    model = fr.Frugal(min_support=1, factors=16, messages=5, activity=0.0, encoding="float32").fit(town)
    having = np.bincount(town.items, minlength=town.n_items) / town.n_users
    told = spectral_tastes(model.item_vectors, model.item_weights, model.regulariser, having, town.n_users)
    people = np.array([model.user_vectors[user] for user in range(town.n_users)])
    np.testing.assert_allclose(told.mean, people.mean(axis=0), atol=0.02 * np.abs(people.mean(axis=0)).max())
    np.testing.assert_allclose(np.trace(told.covariance), np.trace(np.cov(people.T)), rtol=0.1)


def test_a_model_of_sums_with_noise_has_a_mean_in_popularity_alone(town):
    model = fr.Frugal(min_support=1, sigma=0.0, messages=3).fit(town)
    mean, covariance = private_tastes(model.item_vectors, model.item_weights)
    assert mean[-1] > 0
    assert not mean[:-1].any()
    assert (np.diag(covariance)[:-1] > 0).all()


@pytest.mark.parametrize("recipe", [{}, {"clip": 1.0}])
def test_a_simulation_plays_the_bound_and_shows_the_most_shown_item_to_fewer(town, recipe):
    free = fr.Frugal(min_support=1, messages=3, **recipe).fit(town)
    held = fr.Frugal(min_support=1, messages=3, most_shown=0.1, **recipe).fit(town)
    most = [np.bincount(lists_of(model, town), minlength=town.n_items).max() for model in (free, held)]
    assert most[1] < most[0]


@pytest.mark.parametrize("noise", [{"sigma": 0.0}, {"epsilon": 8.0}])
def test_a_simulation_of_sums_with_noise_plays_the_bound_too(town, noise):
    free, held = (fr.Frugal(min_support=1, messages=2, most_shown=most, **noise).fit(town) for most in (None, 0.2))
    lengths = [np.linalg.norm(model.item_vectors, axis=1) for model in (free, held)]
    shortened = lengths[1] < 0.99 * lengths[0]
    assert 0 < shortened.sum() < 0.3 * town.n_items


def lists_of(model, town):
    scores = model.user_vectors @ model.item_vectors.T
    scores[town.users, town.items] = -np.inf
    return np.argsort(-scores, axis=1)[:, :10].ravel()


@pytest.mark.parametrize("wrong", [{"most_shown": 0.0}, {"most_shown": 1.5}, {"most_shown": 0.2, "alpha": 1.0}])
def test_a_share_that_cannot_be_kept_is_refused(wrong):
    with pytest.raises(SettingError, match="most_shown"):
        FrugalSettings(**wrong)
