"""The leak: held-out items that are never drawn as negatives, and the control that exposes it."""

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.errors import SettingError
from federank.methods.model_folder import load_model
from federank.methods.registry import recommender_class

SPLIT = fr.split_random(two_tastes(), test=0.2, seed=1)
ALONE = {"factors": 8, "rounds": 1, "online": 0.0, "local_epochs": 60}


def local_only(leak):
    model = recommender_class("local")(**ALONE, leak=leak)
    return (model.with_held_out(SPLIT.test) if leak else model).fit(SPLIT.train)


def test_local_only_sends_nothing():
    assert local_only(leak=False).communication()["uploads"] == 0


def test_local_only_finds_the_test_items_by_the_leak_alone():
    with_leak, without = (fr.evaluate(local_only(leak), SPLIT, at=5).means["recall@5"] for leak in (True, False))
    assert with_leak > without + 0.3


def test_held_out_items_are_never_drawn():
    client = fr.Client(1, 0, 0, np.array([1, 3], np.int32), held_out=np.array([0, 2], np.int32))
    assert client.not_negative.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["local", "fedmf", "pfedrec", "fedrap", "gpfedrec"])
def test_leak_needs_the_held_out_part(method):
    with pytest.raises(SettingError):
        recommender_class(method)(leak=True, rounds=1).fit(SPLIT.train)


def test_a_leaking_model_is_the_same_once_stored(tmp_path):
    model = local_only(leak=True)
    model.save(tmp_path / "model")
    kept = load_model(tmp_path / "model")
    assert np.array_equal(kept.recommend(n=3).items, model.recommend(n=3).items)
