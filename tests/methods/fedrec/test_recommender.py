"""PMF and SVD++ as a person meets them: what they learn, predict, refuse, and keep."""

import signal

import numpy as np
import pytest
from tests.rated_worlds import rated_world, two_opinions

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import DataError, Diverged, ModelError, UnknownId
from federank.evaluation.evaluate import prediction_errors
from federank.methods.model_folder import load_model
from federank.simulation.options import TrainingOptions
from federank.simulation.training import Stopped

QUICK = {"factors": 4, "initial_range": 0.5, "decay": 0.98}
KINDS = {
    "stochastic PMF": (fr.PMF, {"style": "stochastic", "learning_rate": 0.05}),
    "batch PMF": (fr.PMF, {"style": "batch", "learning_rate": 0.2}),
    "SVD++": (fr.SVDPlusPlus, {"learning_rate": 0.05}),
}


def new(kind, **settings):
    method, chosen = KINDS[kind]
    return method(**(QUICK | chosen | settings))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


FILLINGS = {
    "unfederated": {"federated": False},
    "rho 0": {},
    "hybrid": {"filling": "hybrid", "rho": 1, "t_predict": 10, "t_local": 10},
}


@pytest.mark.parametrize("filling", FILLINGS)
def test_opinions_are_learnt(kind, filling):
    split = fr.split_random(two_opinions(), test=0.25)
    model = new(kind, **FILLINGS[filling]).fit(split.train)
    errors = prediction_errors(model, split.test)
    assert errors.mae < 0.5  # always saying 3 would be off by 2
    assert errors.ratings == len(split.test)


def test_predictions_are_clipped_but_scores_are_not(kind):
    data = two_opinions()
    model = new(kind, lowest=1, highest=5, learning_rate=0.1).fit(data)
    pairs = data.users[:50], data.items[:50]
    predicted = model.predict_all(*pairs).values
    assert predicted.min() >= 1
    assert predicted.max() <= 5
    everything = np.concatenate([model.score(user, data.item_ids) for user in data.user_ids])
    assert everything.max() > 5 or everything.min() < 1


def test_the_declared_range_clips(kind):
    data = two_opinions()
    narrow = Interactions.from_columns(data.users, data.items, np.where(data.ratings > 3, 3.2, 2.8))
    model = new(kind, lowest=2.9, highest=3.1)
    with pytest.raises(DataError, match=r"480.*480.*2\.9"):
        model.fit(narrow)
    predicted = new(kind, lowest=2.8, highest=3.2).fit(narrow).predict_all(data.users, data.items).values
    assert predicted.min() >= np.float32(2.8)
    assert predicted.max() <= np.float32(3.2)


def test_an_item_never_rated_gets_the_users_mean_and_is_counted(kind):
    data = two_opinions()
    model = new(kind).fit(data)
    mean = data.ratings[data.users == 7].mean()
    assert model.predict(7, 999) == pytest.approx(mean)
    assert model.predict(7, "no number") == pytest.approx(mean)
    assert model.predict_all([7, 7], [999, 1]).unrated_items == 1


def test_a_user_without_ratings_gets_the_mean_of_all_in_a_test_and_a_sentence_when_asked_for(kind):
    data = two_opinions()
    model = new(kind).fit(data)
    found = model.predict_all([555, 7], [1, 1])
    assert found.unknown_users == 1
    assert found.values[0] == pytest.approx(data.ratings.mean())
    with pytest.raises(UnknownId, match="555"):
        model.predict(555, 1)


def test_svdpp_predicts_by_the_formula_of_the_paper():
    data = two_opinions()
    model = new("SVD++", iterations=3).fit(data)
    rated, item = data.profiles.of(5), 3
    for target in (int(rated[0]), item if item not in rated else int(np.setdiff1d(np.arange(24), rated)[0])):
        others = rated[rated != target]
        bracket = model.user_vectors[5] + model.implicit_vectors[others].sum(axis=0) / np.sqrt(len(others))
        expected = np.clip(bracket @ model.item_vectors[target], 1, 5)
        assert model.predict(5, target) == pytest.approx(float(expected), rel=1e-4)


def test_one_with_a_single_rating_and_one_with_all_are_no_hindrance(kind):
    world = rated_world()
    users = np.concatenate((world.users, [50], np.full(world.n_items, 51)))
    items = np.concatenate((world.items, [0], np.arange(world.n_items)))
    data = Interactions.from_columns(users, items, np.concatenate((world.ratings, [5], np.full(world.n_items, 2))))
    model = new(kind, filling="hybrid", rho=2, t_predict=1).fit(data)
    predicted = model.predict_all([50, 51], [1, 1]).values
    assert np.isfinite(predicted).all()
    assert model.recommend(51) == []


def test_data_without_ratings_are_refused(kind):
    with pytest.raises(DataError):
        new(kind).fit(Interactions.from_columns([1, 2], [1, 2]))


@pytest.mark.parametrize("wrong", [0.0, 6.0, float("nan")])
def test_a_rating_outside_the_range_is_named(kind, wrong):
    data = Interactions.from_columns([1, 2, 3], [4, 5, 6], [3, wrong, 2])
    with pytest.raises(DataError, match=r"1.*3.*1"):
        new(kind).fit(data)


def test_the_folder_keeps_what_is_the_servers_apart_from_what_is_the_clients(tmp_path):
    from safetensors.numpy import load_file

    new("SVD++", iterations=2).fit(two_opinions()).save(tmp_path / "model")
    assert set(load_file(tmp_path / "model" / "model.safetensors")) == {"item_vectors", "implicit_vectors"}
    assert set(load_file(tmp_path / "model" / "devices.safetensors")) == {"user_vectors"}


def test_a_folder_whose_tables_do_not_fit_is_refused(tmp_path):
    model = new("SVD++", iterations=2).fit(two_opinions())
    model.implicit_vectors = model.implicit_vectors[:3]
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"implicit_vectors.*24.*4"):
        load_model(tmp_path / "model")


def test_a_rate_that_is_too_large_is_named(kind):
    with pytest.raises(Diverged, match=r"learning_rate.*9"):
        new(kind, learning_rate=9.0, decay=1.0).fit(two_opinions())


def test_a_run_that_was_stopped_goes_on_to_the_same_model(kind, tmp_path):
    data, checkpoint = rated_world(), tmp_path / "run.checkpoint"
    settings = {"filling": "hybrid", "rho": 1, "t_predict": 2, "iterations": 8}
    whole = new(kind, **settings).fit(data)

    def stop_in_the_fourth(now):
        if now.epoch == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped):
        new(kind, **settings).fit(
            data, training_options=TrainingOptions(checkpoint=checkpoint, progress=stop_in_the_fourth)
        )
    epochs = []
    resumed = new(kind, **settings).fit(
        data,
        training_options=TrainingOptions(
            checkpoint=checkpoint, resume=True, progress=lambda now: epochs.append(now.epoch)
        ),
    )
    assert epochs[0] >= 4
    np.testing.assert_array_equal(resumed.item_vectors, whole.item_vectors)
    np.testing.assert_array_equal(resumed.user_vectors, whole.user_vectors)
