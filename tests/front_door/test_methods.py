"""Every registered method through the command line, with its defaults, on tiny data.

The methods come from the registry: a new one is tested here without a line being added.
"""

import json
import re
from dataclasses import fields

import numpy as np
import pytest
from tests.commands import refused, succeeded

import federank as fr
from federank.methods.predicting import PredictsRatings
from federank.methods.registry import audited_names, method_names, recommender_class

USERS, ITEMS, RATED = 60, 60, 12
EXTRAS = {"vae": "jax"}


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """A file of users who give half of the items high ratings and the other half low ones."""
    rng = np.random.default_rng(0)
    rows = ["user,item,rating,time"]
    for user in range(USERS):
        for time, item in enumerate(rng.choice(ITEMS, RATED, replace=False)):
            rows.append(f"{user},{item},{4 + time % 2 if (user + item) % 2 else 1 + time % 2},{time}")
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module", params=method_names())
def method(request):
    """The name of a registered method, if its library is installed."""
    if request.param in EXTRAS:
        pytest.importorskip(EXTRAS[request.param])
    return request.param


@pytest.fixture(scope="module")
def folder(method, ratings, tmp_path_factory):
    """A model as `federank train METHOD` keeps it."""
    out = tmp_path_factory.mktemp(method) / "model"
    succeeded("train", method, "--data", ratings, "--out", out, "--quiet")
    return out


def test_it_is_trained_and_kept(method, folder):
    kept = json.loads((folder / "model.json").read_text())
    assert kept["kind"] == method
    assert kept["settings"].keys() == {field.name for field in fields(recommender_class(method).settings_type)}


def test_it_is_evaluated(method, folder):
    means = json.loads(succeeded("evaluate", folder, "--at", 5, "--json").stdout)
    assert means["users"] == USERS
    assert 0 <= means["precision@5"] <= means["recall@5"] <= 1  # each user has two test items
    if issubclass(recommender_class(method), PredictsRatings):
        assert 0 < means["mae"] <= means["rmse"] <= 4


def test_it_is_loaded_to_recommend(folder):
    listed = json.loads(succeeded("recommend", folder, "--user", 3, "-n", 4, "--json").stdout)
    model = fr.load_model(folder)
    assert [entry["item"] for entry in listed] == [entry.item for entry in model.recommend(3, 4)]
    known = set(model.training.item_ids[model.training.profiles.of(model.training.user_index(3))].tolist())
    assert listed
    assert not {entry["item"] for entry in listed} & known


def test_it_is_saved_again_as_it_was(folder, tmp_path):
    model = fr.load_model(folder)
    model.save(tmp_path / "again", fr.load_split(folder))
    again = fr.load_model(tmp_path / "again")
    np.testing.assert_array_equal(again.recommend(n=5).items, model.recommend(n=5).items)
    assert again.settings == model.settings


def test_it_is_audited_where_it_sends_anything(method, folder):
    if method not in audited_names():
        refused("audit", folder)
        return
    findings = json.loads(succeeded("audit", folder, "--sample", 10, "--json").stdout)
    assert findings["people_followed"] == findings["people_attacked"] == 10
    assert 0 <= findings["best"]["auc"] <= 1


def test_its_help_offers_every_setting(method):
    flags = set(re.findall(r"--[a-z0-9-]+", succeeded("train", method, "--help-all").output))
    for field in fields(recommender_class(method).settings_type):
        flag = field.name.replace("_", "-")
        assert flags & {f"--{flag}", f"--{method}-{flag}"}
