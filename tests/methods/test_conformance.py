"""What holds for every method: one suite over the whole registry, on a tiny world of two tastes."""

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.worlds import two_tastes

from federank.data.interactions import Interactions
from federank.data.splits import split_random
from federank.errors import DataError, ModelError, SettingError, UnknownId
from federank.methods.model_folder import load_model
from federank.methods.registry import METHODS, recommender_class

SETTINGS = {
    "fpl": {"factors": 4, "epochs": 30},
    "bpr": {"factors": 4, "epochs": 30},
    "userknn": {"k": 5, "fill": True},
    "itemknn": {"k": 5, "fill": True},
    "vae": {"topology": "16-4-16", "epochs": 80, "batch_size": 8, "learning_rate": 0.01, "held_back": 0.0},
    "frugal": {"factors": 4, "min_support": 1},
    "ease": {"regulariser": 1.0},
    "ials": {"factors": 4, "regulariser": 1.0},
    "rp3beta": {"beta": 0.3},
    "gfcf": {"factors": 2},
    "dpals": {"epsilon": 1e5, "items_per_user": 8, "factors": 4, "regularization": 0.1, "iterations": 4},
    "slim": {"l1": 0.1, "l2": 1.0},
    "fedmf": {"factors": 4, "rounds": 30, "item_rate": 1.0},
    "pfedrec": {
        "factors": 4,
        "rounds": 60,
        "item_rate": 0.1,
        "negatives": 1,
        "initial_scale": 0.1,
        "learning_rate": 1.0,
    },
    "gpfedrec": {"factors": 4, "rounds": 60, "item_rate": 0.1, "negatives": 1, "learning_rate": 1.0},
    "local": {"factors": 4, "local_epochs": 5, "item_rate": 0.1},
    "fedrap": {
        "factors": 2,
        "rounds": 300,
        "item_rate": 0.3,
        "negatives": 1,
        "initial_scale": 0.5,
        "learning_rate": 2.0,
    },
    "fcf": {"factors": 4, "rounds": 40},
    "pmf": {"factors": 4, "learning_rate": 0.05, "decay": 0.98, "initial_range": 0.5},
    "svdpp": {"factors": 4, "learning_rate": 0.05, "decay": 0.98, "initial_range": 0.5},
}
WITHOUT_TASTE = {"random", "popular", "biases", "local"}
WORLD, RATED_WORLD = two_tastes(), two_opinions()


def new(method):
    if method == "vae":
        pytest.importorskip("jax", reason="Mult-VAE learns with JAX: install federank[vae]")
    return recommender_class(method)(**SETTINGS.get(method, {}))


def world(method):
    return RATED_WORLD if method in ("pmf", "svdpp", "biases") else WORLD


def _as_cases(names):
    """Every method; the one whose library takes seconds to wake up is left to `make test`."""
    return [pytest.param(name, marks=pytest.mark.slow if name == "vae" else ()) for name in names]


@pytest.fixture(scope="module", params=_as_cases(METHODS))
def method(request):
    return request.param


@pytest.fixture(scope="module")
def model(method):
    return new(method).fit(world(method))


def assert_same_lists(one, other):
    np.testing.assert_array_equal(one.items, other.items)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_the_registry_names_the_class(method):
    found = recommender_class(method)
    assert found.name == method
    assert found.__name__ == METHODS[method][1]
    assert found.__doc__


@pytest.mark.parametrize("method", _as_cases(name for name in METHODS if name not in WITHOUT_TASTE), indirect=True)
def test_users_are_recommended_their_own_taste(model):
    table = model.recommend(n=4)
    own = model.item_ids[table.items] % 2 == (table.users % 2)[:, None]
    assert own.mean() > 0.9


def test_no_user_is_recommended_what_they_have(model):
    table = model.recommend(n=len(model.item_ids))
    for user in range(len(table)):
        assert not np.isin(table.items[user], model.seen.of(user)).any()


def test_a_list_holds_distinct_items_best_first(model):
    table = model.recommend(n=6)
    for items, scores in zip(table.items, table.scores, strict=True):
        assert len(set(items[items >= 0].tolist())) == (items >= 0).sum() >= (1 if model.zero_is_nothing else 6)
        assert np.all(scores[:-1] >= scores[1:])


def test_of_equal_scores_the_smaller_item_comes_first(model):
    table = model.recommend(n=len(model.item_ids))
    for items, scores in zip(table.items, table.scores, strict=True):
        tied = (scores[:-1] == scores[1:]) & (items[1:] >= 0)
        assert np.all(items[:-1][tied] < items[1:][tied])


def test_asking_for_more_than_the_catalogue_gives_all_that_is_left(model):
    table = model.recommend(n=1000)
    assert table.items.shape[1] == len(model.item_ids)
    for user in range(0 if model.zero_is_nothing else len(table)):
        assert (table.items[user] >= 0).sum() == len(model.item_ids) - len(model.seen.of(user))


def test_scores_are_finite_numbers(model):
    table = model.recommend(n=5)
    assert np.isfinite(table.scores[table.items >= 0]).all()


def test_one_user_gets_the_list_they_have_in_every_users_table(model):
    everyone = model.recommend(n=5)
    for place in (0, 7, len(everyone) - 1):
        alone = model.recommend(int(everyone.users[place]), n=5)
        together = everyone.of(place)
        assert [entry.item for entry in alone] == [entry.item for entry in together]
        np.testing.assert_allclose([e.score for e in alone], [e.score for e in together], rtol=1e-4, atol=1e-6)


def test_the_order_of_the_users_does_not_matter(model):
    backwards = model.user_ids[::-1]
    there, back = model.recommend(n=5), model.recommend(backwards, n=5)
    np.testing.assert_array_equal(back.users, backwards)
    np.testing.assert_array_equal(back.items[::-1], there.items)


def test_score_agrees_with_the_lists(model):
    user = model.user_ids[3].item()
    entries = model.recommend(user, n=5)
    scores = model.score(user, [entry.item for entry in entries])
    np.testing.assert_allclose(scores, [entry.score for entry in entries], rtol=1e-4, atol=1e-6)


def test_a_saved_model_recommends_the_same_bit_for_bit(method, model, tmp_path):
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    assert isinstance(loaded, recommender_class(method))
    assert loaded.settings == model.settings
    assert_same_lists(loaded.recommend(n=8), model.recommend(n=8))


def test_the_same_seed_gives_the_same_model(method, model):
    assert_same_lists(new(method).fit(world(method)).recommend(n=8), model.recommend(n=8))


def test_text_ids_and_gaps_in_the_numbering_are_no_hindrance(method):
    data = world(method)
    users, items = [f"person {user:02}" for user in data.users], [f"item {i:02}" for i in data.items]
    named = Interactions.from_columns(users, items, data.ratings)
    part = named.take(named.users != 2)  # one person and perhaps an item are numbered but have no row
    table = new(method).fit(part).recommend(n=3)
    assert len(table) == named.n_users - 1
    assert {item for _, item, _ in table.rows()} <= set(named.item_ids.tolist())


def test_who_has_the_complete_catalogue_gets_an_empty_list(method):
    everything, data = 3, world(method)
    users = np.concatenate((data.users, np.full(data.n_items, everything)))
    items = np.concatenate((data.items, np.arange(data.n_items)))
    ratings = None if data.ratings is None else np.concatenate((data.ratings, np.full(data.n_items, 3.0)))
    fitted = new(method).fit(Interactions.from_columns(users, items, ratings))
    assert fitted.recommend(everything, n=5) == []
    assert len(fitted.recommend(0, n=5)) == 5


def test_an_unknown_user_is_named(model):
    with pytest.raises(UnknownId, match="999"):
        model.recommend(999)


def test_an_unknown_item_is_named(model):
    with pytest.raises(UnknownId, match="999"):
        model.score(model.user_ids[0].item(), [999])


def test_no_recommendations_at_all_is_a_mistake(model):
    with pytest.raises(SettingError, match=r"0.*1"):
        model.recommend(n=0)


def test_fit_says_what_it_wants_when_handed_a_complete_split(method):
    with pytest.raises(DataError):
        recommender_class(method)().fit(split_random(two_tastes()))


def test_a_method_shows_what_was_chosen(method):
    made = recommender_class(method)()
    assert repr(made) == f"{type(made).__name__}()"


@pytest.mark.parametrize("use", ["recommend", "save", "score"])
def test_nothing_can_be_asked_of_a_method_that_has_not_learnt(method, use, tmp_path):
    untrained = recommender_class(method)(**SETTINGS.get(method, {}))
    arguments = {"recommend": (1,), "save": (tmp_path / "model",), "score": (1, [1])}[use]
    with pytest.raises(ModelError):
        getattr(untrained, use)(*arguments)
    assert not (tmp_path / "model").exists()


def test_an_unknown_method_gets_a_suggestion():
    with pytest.raises(SettingError, match=r"'itemkn'.*'itemknn'"):
        recommender_class("itemkn")
