"""Private ALS: what one user can change, and that noise follows epsilon."""

import numpy as np
from tests.worlds import two_tastes

import federank as fr
from federank.methods.baselines.dpals import _audiences, _limited, _positive, _symmetric, noisy_counts
from federank.privacy.accountant import mu_for

WORLD = two_tastes()


def test_a_user_counts_for_a_limited_number_of_items():
    rows = _limited(WORLD, np.arange(len(WORLD), dtype=float), 3)
    assert np.bincount(WORLD.users[rows]).tolist() == [3] * WORLD.n_users
    audiences = _audiences(WORLD, np.arange(WORLD.n_items), 3, np.random.default_rng(1))
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
    settings = {"factors": 4, "regularization": 0.1, "unobserved_weight": 0.1, "iterations": 4, "items_per_user": 8}
    models = (fr.PrivateALS(epsilon=epsilon, seed=seed, **settings).fit(split.train) for seed in range(4))
    return np.mean([fr.evaluate(model, split, at=4).means["recall@4"] for model in models])


def test_more_privacy_is_less_accurate():
    split = fr.split_random(WORLD, 0.25)
    assert recall(split, 1e5) > recall(split, 0.1) + 0.2


def test_the_report_has_the_guarantee():
    report = fr.PrivateALS(epsilon=2.0, factors=2).fit(WORLD).report
    assert report["privacy"] == {"epsilon": 2.0, "delta": 1e-6}


def without_user(data, user):
    stays = data.users != user
    return fr.Interactions.from_columns(data.user_ids[data.users[stays]], data.item_ids[data.items[stays]])


def test_what_one_user_changes_costs_exactly_the_budget(monkeypatch):
    """One user changes the sums by at most their bounds, and the noise of all releases together has the budget's mu."""
    limit, scales = 3, {}

    class Recorded(np.random.Generator):
        def normal(self, loc=0.0, scale=1.0, size=None):
            kinds = {4: "b", (4, 4): "A or K", WORLD.n_items: "counts"}
            scales.setdefault(kinds.get(size, "first vectors"), []).append(scale)
            return super().normal(loc, scale, size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Recorded(np.random.PCG64(seed)))
    settings = {"factors": 4, "iterations": 2, "items_per_user": limit, "epsilon": 2.0}
    model = fr.PrivateALS(**settings).fit(WORLD)
    spent = limit / scales["counts"][0] ** 2
    each = 1 + WORLD.n_items  # the sum over everyone, then one for each item
    for start in (0, each):
        everyone, per_item = scales["A or K"][start], scales["A or K"][start + 1]
        spent += 1 / everyone**2 + limit / per_item**2 + limit / scales["b"][0] ** 2
    assert len(scales["A or K"]) == 2 * each
    assert len(set(scales["b"])) == 1
    np.testing.assert_allclose(np.sqrt(spent), mu_for(2.0, 1e-6), rtol=1e-9)

    # The releases themselves, with and without a user, from the same item vectors; every user has `limit` items.
    items = np.arange(WORLD.n_items)
    vectors = model.item_vectors

    def limited(data):
        rows = _limited(data, np.arange(len(data), dtype=float), limit)
        return [data.users[rows][data.items[rows] == item] for item in items]

    def sums(data):
        assert np.array_equal(data.item_ids, WORLD.item_ids)
        users = model._solved(data.profiles, vectors)
        users /= np.linalg.norm(users, axis=1, keepdims=True)  # as long as clipping lets them be
        audiences = [users[those].astype(float) for those in limited(data)]
        return (
            np.stack([those.T @ those for those in audiences]),
            np.stack([those.sum(axis=0) for those in audiences]),
            users.T.astype(float) @ users,
        )

    for user in range(0, WORLD.n_users, 5):
        changes = [np.linalg.norm(a - b) for a, b in zip(sums(WORLD), sums(without_user(WORLD, user)), strict=True)]
        np.testing.assert_allclose(changes, [np.sqrt(limit), np.sqrt(limit), 1], rtol=1e-5)
