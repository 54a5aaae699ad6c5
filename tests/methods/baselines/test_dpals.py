"""Private ALS: what one user can change, and that noise follows epsilon."""

import numpy as np
from tests.worlds import two_tastes

import federank as fr
from federank.methods.baselines.dpals import _audiences, _limited, _positive, _symmetric, noisy_counts

WORLD = two_tastes()


def test_a_user_counts_for_a_limited_number_of_items():
    rows = _limited(WORLD, np.arange(len(WORLD), dtype=float), 3)
    assert np.bincount(WORLD.users[rows]).tolist() == [3] * WORLD.n_users
    audiences = _audiences(WORLD, WORLD.popularity.astype(float), np.arange(WORLD.n_items), 3)
    assert np.bincount(np.concatenate(audiences)).max() == 3


def test_counts_keep_to_the_limit_and_get_noise():
    exact = noisy_counts(WORLD, 3, 1e9, np.random.default_rng(1))
    assert round(exact.sum()) == 3 * WORLD.n_users
    noisy = [noisy_counts(WORLD, 4, 0.01, np.random.default_rng(seed)) for seed in range(50)]
    assert 150 < np.std(noisy) < 250  # sqrt(4) / 0.01


def test_noise_is_symmetric_and_grams_stay_positive():
    noise = _symmetric(np.random.default_rng(1), 5, 2.0)
    assert np.array_equal(noise, noise.T)
    assert np.linalg.eigvalsh(_positive(noise)).min() > -1e-9


def recall(split, epsilon):
    settings = {"factors": 4, "regularization": 0.1, "iterations": 4, "items_per_user": 8}
    models = (fr.PrivateALS(epsilon=epsilon, seed=seed, **settings).fit(split.train) for seed in range(4))
    return np.mean([fr.evaluate(model, split, at=4).means["recall@4"] for model in models])


def test_more_privacy_is_less_accurate():
    split = fr.split_random(WORLD, 0.25)
    assert recall(split, 1e5) > recall(split, 0.1) + 0.2


def test_the_report_has_the_guarantee():
    report = fr.PrivateALS(epsilon=2.0, factors=2).fit(WORLD).report
    assert report["privacy"] == {"epsilon": 2.0, "delta": 1e-6}
