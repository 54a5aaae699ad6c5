"""The baselines of the papers, one by one: known answers on tiny worlds, then the papers' tables on real data."""

import sys

import numpy as np
import pytest
from tests.worlds import random_world, two_tastes

from federank.data.interactions import Interactions
from federank.errors import Diverged, MissingExtra, SettingError
from federank.methods.baselines.knn import ItemKNN, UserKNN
from federank.methods.baselines.popular import MostPopular
from federank.methods.baselines.vae import MultVAE
from federank.methods.frugal.recommender import FCF
from federank.methods.model_folder import load_model
from federank.methods.registry import recommender_class
from federank.simulation.options import TrainingOptions

TASTES = two_tastes()


def timed(world):
    """The same people and items, each met a second after the one before."""
    return Interactions.from_columns(world.users, world.items, times=np.arange(len(world)))


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("random", {"seed": -1}),
        ("userknn", {"k": 0}),
        ("itemknn", {"shrinkage": -0.5}),
        ("itemknn", {"shrinkage": float("nan")}),
        ("fcf", {"factors": 0}),
        ("fcf", {"rounds": 0}),
        ("fcf", {"seed": 2**32}),
        ("fcf", {"regulariser": 0.0}),
        ("fcf", {"learning_rate": float("inf")}),
        ("fcf", {"alpha": -1.0}),
        ("fcf", {"unobserved_weight": 1.5}),
        ("fcf", {"beta1": 1.0}),
        ("vae", {"topology": "200-100"}),
        ("vae", {"topology": "0-1-2"}),
        ("vae", {"epochs": 0}),
        ("vae", {"dropout": 1.0}),
        ("vae", {"held_back": -0.1}),
        ("vae", {"learning_rate": 0.0}),
        ("vae", {"beta": -1.0}),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(method, settings):
    [(name, value)] = settings.items()
    with pytest.raises(SettingError) as error:
        recommender_class(method)(**settings)
    assert str(error.value).startswith(f"{name} is {value!r}")


def test_the_most_popular_come_first_and_equals_by_number():
    data = Interactions.from_columns([1, 2, 3, 1, 2, 3, 4, 4], ["c", "c", "c", "b", "a", "a", "b", "d"])
    listed = [entry.item for entry in MostPopular().fit(data).recommend(4, n=4)]
    assert listed == ["c", "a"]  # 4 has b and d
    assert [entry.item for entry in MostPopular().fit(data).recommend(1, n=4)] == ["a", "d"]


def cosine(data):
    """Similarities between all users, without those to themselves."""
    table = data.matrix().toarray().astype(np.float64)
    sizes = np.sqrt(table.sum(axis=1))
    similarity = table @ table.T / np.outer(sizes, sizes)
    np.fill_diagonal(similarity, 0)
    return table, similarity


def nearest_only(similarity, k):
    """The k largest of each row, the rest zero; of equals the smaller number stays."""
    kept = np.zeros_like(similarity)
    for row, values in enumerate(similarity):
        best = np.lexsort((np.arange(len(values)), -values.astype(np.float32)))[:k]
        kept[row, best] = values[best]
    return kept


@pytest.mark.parametrize("k", [1, 3, 100])
def test_user_knn_adds_up_the_similarities_of_neighbours_who_have_the_item(k):
    data = random_world(users=15, items=20, interactions=120, seed=8).compact()
    table, similarity = cosine(data)
    model = UserKNN(k=k).fit(data)
    expected = nearest_only(similarity, k) @ table
    for user in data.user_ids.tolist():
        scores = model.score(user, data.item_ids)
        np.testing.assert_allclose(scores, expected[data.user_index(user)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 100])
@pytest.mark.parametrize("normalised", [False, True])
def test_item_knn_adds_up_the_similarities_of_an_items_neighbours_in_the_history(k, normalised):
    data = random_world(users=20, items=15, interactions=120, seed=9).compact()
    turned = Interactions.from_columns(data.items, data.users)
    table, similarity = cosine(turned)
    kept = nearest_only(similarity, k)
    expected = table.T @ kept.T
    if normalised:
        expected = expected / kept.sum(axis=1)
    model = ItemKNN(k=k, normalised=normalised).fit(data)
    for user in data.user_ids.tolist():
        scores = model.score(user, data.item_ids)
        np.testing.assert_allclose(scores, expected[data.user_index(user)], rtol=1e-5, atol=1e-6)


def test_an_item_without_neighbours_scores_zero_when_normalised():
    data = Interactions.from_columns([0, 0, 1, 1, 2], [0, 1, 0, 1, 2])
    assert ItemKNN(normalised=True).fit(data).score(0, [2]).tolist() == [0.0]


def test_fcf_lowers_its_cost_round_by_round():
    data = TASTES.compact()
    liked = data.matrix().toarray()
    confidence = np.where(liked == 1, 2.0, 1.0)
    costs = []
    model = FCF(factors=4, rounds=30, learning_rate=0.02)

    def note(number):
        users, items = model.user_vectors, model.item_vectors
        misses = (confidence * (liked - users @ items.T) ** 2).sum()
        costs.append(misses + (users**2).sum() + (items**2).sum())

    model.fit(data, training_options=TrainingOptions(after_epoch=note))
    assert len(costs) == 30
    assert np.all(np.diff(costs) < 0)


def test_fcf_that_leaves_the_range_of_numbers_says_what_to_do():
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(Diverged, match=r"learning_rate.*38"),
    ):
        FCF(factors=3, rounds=5, learning_rate=1e38).fit(TASTES)


@pytest.mark.slow
def test_the_vae_stops_early_and_keeps_the_best_network():
    pytest.importorskip("jax", reason="Mult-VAE learns with JAX: install federank[vae]")
    seen = []
    model = MultVAE(topology="16-4-16", epochs=200, patience=3, batch_size=8, learning_rate=0.05, held_back=0.25)
    model.fit(
        timed(TASTES),
        training_options=TrainingOptions(after_epoch=lambda _: seen.append(model.network.output_weights.copy())),
    )
    assert model.report["epochs"] == model.report["best_epoch"] + 3 == len(seen)
    np.testing.assert_array_equal(model.network.output_weights, seen[model.report["best_epoch"] - 1])
    assert 0 < model.report["held_back_ndcg"] <= 1


@pytest.mark.slow
def test_the_vae_that_leaves_the_range_of_numbers_says_what_to_do():
    pytest.importorskip("jax", reason="Mult-VAE learns with JAX: install federank[vae]")
    with pytest.raises(Diverged, match=r"learning_rate.*30"):
        MultVAE(topology="8-2-8", epochs=20, learning_rate=1e30, held_back=0.0).fit(TASTES)


@pytest.mark.slow
def test_without_jax_the_vae_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)  # what Python keeps for a package that cannot be imported
    with pytest.raises(MissingExtra) as missing:
        MultVAE(epochs=1).fit(TASTES)
    assert missing.value.extra == "vae"


@pytest.mark.slow
def test_a_trained_vae_can_be_used_without_jax(tmp_path, monkeypatch):
    pytest.importorskip("jax", reason="Mult-VAE learns with JAX: install federank[vae]")
    model = MultVAE(topology="8-2-8", epochs=2, batch_size=8).fit(TASTES)
    model.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setitem(sys.modules, "optax", None)
    loaded = load_model(tmp_path / "model").recommend(n=5)
    np.testing.assert_array_equal(loaded.items, model.recommend(n=5).items)
