"""Item-item weights from the sums of all messages."""

import numpy as np
import pytest

import federank as fr
from federank.errors import ModelError, SettingError
from federank.methods.frugal.ridge import LEVELS, Block, RidgeWeights, co_occurrences, nearest, ridge_weights
from federank.methods.frugal.side_knowledge import side_knowledge

SPLIT = fr.split_temporal(fr.city(people=300, places=120, checkins=9000, seed=4), test=0.2)
SETTINGS = {"item_weights": "ridge", "factors": 12, "min_support": 5}


@pytest.fixture(scope="module")
def model():
    return fr.Frugal(**SETTINGS).fit(SPLIT.train)


def test_co_occurrences_are_exact_inside_the_span():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(30, 6))
    whole = base @ base.T
    blocks = [Block(whole @ through, through) for through in (rng.normal(size=(30, 4)), rng.normal(size=(30, 4)))]
    factors = co_occurrences(blocks)
    np.testing.assert_allclose(factors @ factors.T, whole, atol=1e-6 * np.abs(whole).max())


def test_weights_solve_the_ridge_regression():
    rng = np.random.default_rng(2)
    factors = np.abs(rng.normal(size=(8, 5)))
    counts = (factors**2).sum(axis=1) + 5
    weights = ridge_weights(factors, counts, interactions=100.0, low_rank=1.0)
    for item in range(8):
        here = slice(weights.starts[item], weights.starts[item + 1])
        own = weights.neighbours[here]
        together = np.minimum(np.maximum(factors @ factors.T, 0), np.minimum.outer(counts, counts))
        pull = 0.25 * (1 + 4 * 8 / 100) * np.sqrt(counts * counts.mean())
        sides = together[np.ix_(own, own)]
        np.fill_diagonal(sides, (counts + pull)[own])
        expected = np.linalg.solve(sides, together[own, item])
        step = np.abs(expected).max() / LEVELS
        np.testing.assert_allclose(weights.codes[here] * weights.scales[item], expected, atol=0.51 * step)


def test_no_item_is_its_own_neighbour():
    rows = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    assert all(item not in own for item, own in enumerate(nearest(rows)))


def test_engines_agree(model):
    plain = fr.Frugal(**SETTINGS).fit(SPLIT.train, training_options=fr.TrainingOptions(engine="reference"))
    users = np.arange(30, dtype=np.int32)
    np.testing.assert_allclose(model._score_users(users), plain._score_users(users), atol=0.03)


def test_it_recommends_better_than_popularity(model):
    popular = fr.MostPopular().fit(SPLIT.train)
    precision = [fr.evaluate(one, SPLIT, at=10).means["precision@10"] for one in (model, popular)]
    assert precision[0] > 1.2 * precision[1]


def test_a_saved_model_has_its_weights(model, tmp_path):
    model.save(tmp_path / "model")
    again = fr.load_model(tmp_path / "model")
    users = np.arange(20, dtype=np.int32)
    np.testing.assert_array_equal(again._score_users(users), model._score_users(users))


def test_weights_of_another_catalogue_are_refused(model):
    with pytest.raises(ModelError):
        RidgeWeights.read(model.ridge.arrays(), model.training.n_items + 1)
    with pytest.raises(ModelError):
        RidgeWeights.read({}, model.training.n_items)


def test_a_new_user_is_scored_as_a_known_one(model):
    data = model.training
    newcomer = fr.enrol(model, [int(item) for item in data.item_ids[data.profiles.of(0)]])
    scores = model._score_users(np.array([0], np.int32))[0]
    np.testing.assert_allclose(newcomer.score(data.item_ids), scores, atol=1e-5)


def test_an_outsider_scores_with_the_weights(model):
    found = side_knowledge(model, sees="outsider", known=4)
    assert set(found) == {"model", "weights"}
    assert 0 < found["weights"]["inside"] <= 1


def test_only_downloads_grow(model):
    plain = fr.Frugal(**SETTINGS | {"item_weights": "none"}).fit(SPLIT.train)
    ridge, without = model.communication(), plain.communication()
    assert ridge["up"] == without["up"]
    assert ridge["down_changed"]["bytes"] > without["down_changed"]["bytes"]


@pytest.mark.parametrize("beside", [{"epsilon": 4.0}, {"cohorts": 2}, {"alpha": 1.0}, {"loss": "pairs"}])
def test_what_it_cannot_be_made_from_is_refused(beside):
    with pytest.raises(SettingError):
        fr.Frugal(item_weights="ridge", **beside)
