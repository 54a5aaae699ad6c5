"""`federank train pmf`, `federank recommend --item` and folds, as typed."""

import json

import numpy as np
import pytest
from tests.commands import refused, succeeded, told
from tests.rated_worlds import two_opinions

import federank as fr
from federank.methods.model_folder import load_model

QUICK = ("--factors", "4", "--iterations", "40", "--learning-rate", "0.05", "--decay", "0.98", "--initial-range", "0.5")


def complaint(*words):
    return str(refused(*words))


@pytest.fixture
def shop(tmp_path):
    """A small file of people with two opinions."""
    data = two_opinions()
    rows = zip(data.user_ids[data.users], data.item_ids[data.items], data.ratings, strict=True)
    lines = [f"{user},{item},{rating:g},{number}\n" for number, (user, item, rating) in enumerate(rows)]
    path = tmp_path / "shop.csv"
    path.write_text("user,item,rating,time\n" + "".join(lines))
    return path


@pytest.mark.slow
def test_folds_are_trained_and_judged_together(shop, tmp_path):
    out = tmp_path / "runs"
    told("train", "pmf", "--data", shop, "--style", "stochastic", "--federated", "--rho", "0", "--folds", "4",
         "--seed", "1", "--out", out, "--quiet", *QUICK)  # fmt: skip
    found = json.loads(told("evaluate", out, "--json"))
    assert found["folds"] == len(found["per_fold"]) == 4
    for name in ("mae", "rmse"):
        values = [fold[name] for fold in found["per_fold"]]
        assert found[name] == pytest.approx(np.mean(values))
        assert found[f"{name}_std"] == pytest.approx(np.std(values))
        assert found[f"{name}_std"] > 0
    assert found["mae"] < 1
    assert found["precision@10"] > 0
    model = load_model(out / "fold-2")
    expected = fr.split_folds(fr.load(shop), 4, seed=1)[1].train.compact()
    assert model.training.fingerprint == expected.fingerprint
    table = told("evaluate", out)
    assert "4 folds" in table
    assert "MAE" in table


@pytest.mark.parametrize(
    ("words", "warnings"),
    [
        (("pmf",), 1),
        (("pmf", "--rho", "0", "--style", "batch"), 1),
        (("svdpp",), 1),
        (("pmf", "--folds", "2"), 1),
        (("pmf", "--rho", "1"), 0),
        (("pmf", "--no-federated"), 0),
    ],
)
def test_training_says_where_nothing_hides_what_was_rated(words, warnings, shop, tmp_path):
    result = succeeded("train", *words, "--data", shop, "--out", tmp_path / "run", "--quiet", "--json", *QUICK)
    assert sum("rho is 0" in line for line in result.stderr.splitlines()) == warnings
    json.loads(result.stdout)


def test_the_split_seed_divides_again(shop, tmp_path):
    parts = []
    for seed in (1, 2):
        out = tmp_path / f"runs-{seed}"
        told("train", "pmf", "--data", shop, "--folds", "2", "--split-seed", seed, "--out", out, "--quiet", *QUICK)
        parts.append(load_model(out / "fold-1").training.fingerprint)
    assert parts[0] != parts[1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pmf", "svdpp"])
def test_one_model_is_trained_judged_and_asked(method, shop, tmp_path):
    out = tmp_path / "run"
    answer = told("train", method, "--data", shop, "--split", "random", "--filling", "hybrid", "--rho", "1",
                  "--t-predict", "3", "--t-local", "4", "--out", out, "--quiet", *QUICK)  # fmt: skip
    assert " a second)" in answer
    found = json.loads(told("evaluate", out, "--json"))
    assert found["mae"] < 1.5
    assert found["rmse"] >= found["mae"]
    assert "ndcg@10" in found
    assert "MAE" in told("evaluate", out)
    assert len(json.loads(told("recommend", out, "--user", "3", "-n", "4", "--json"))) == 4
    rating = json.loads(told("recommend", out, "--user", "3", "--item", "5", "--json"))
    assert rating["rating"] == pytest.approx(load_model(out).predict(3, 5))
    assert rating["fallback"] is None
    assert told("recommend", out, "--user", "3", "--item", "5").strip() == f"{rating['rating']:.2f}"


def test_a_rating_is_predicted_by_the_models_that_have_not_seen_it(shop, tmp_path):
    out = tmp_path / "runs"
    told("train", "svdpp", "--data", shop, "--folds", "3", "--out", out, "--quiet", *QUICK)
    models = [load_model(out / f"fold-{number}") for number in (1, 2, 3)]
    data = fr.load(shop)
    user, item = data.users[0].item(), data.items[0].item()
    blind = [model for model in models if model.training.item_index(item) not in
             model.training.profiles.of(model.training.user_index(user))]  # fmt: skip
    assert len(blind) == 1
    answer = json.loads(told("recommend", out, "--user", user, "--item", item, "--json"))
    assert answer["models"] == 1
    assert answer["rating"] == pytest.approx(blind[0].predict(user, item))
    unrated = int(np.setdiff1d(data.item_ids, data.item_ids[data.profiles.of(user)])[0])
    answer = json.loads(told("recommend", out, "--user", user, "--item", unrated, "--json"))
    assert answer["models"] == 3
    assert answer["rating"] == pytest.approx(np.mean([model.predict(user, unrated) for model in models]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rho", "-1"), "rho is -1.0"),
        (("--rho", "nan"), "rho is nan"),
        (("--rho", "1", "--filling", "none"), "filling is none"),
        (("--highest", "4"), "from 1 to 4"),
        (("--ratings", "none"), "ratings"),
        (("--folds", "1"), "folds is 1"),
        (("--folds", "3", "--split", "random"), "leave out --split"),
        (("--folds", "3", "--resume"), "run"),
        (("--folds", "3", "--highest", "4"), "from 1 to 4"),
    ],
)
def test_bad_input_is_an_error_and_nothing_is_written(words, sentence, shop, tmp_path):
    answer = complaint("train", "pmf", "--data", shop, "--out", tmp_path / "out", "--quiet", *words)
    assert sentence in answer
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.csv"]


def test_earlier_folds_are_not_replaced_unasked(shop, tmp_path):
    out = tmp_path / "runs"
    words = ("train", "pmf", "--data", shop, "--folds", "2", "--out", out, "--quiet", *QUICK)
    told(*words)
    assert "--overwrite" in complaint(*words)
    told(*words, "--overwrite")
    assert "--overwrite" in complaint("train", "popular", "--data", shop, "--out", out, "--quiet")
