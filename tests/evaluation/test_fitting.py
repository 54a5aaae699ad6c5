"""A method by its name; stopped early; searched through."""

import pytest
from tests.rated_worlds import two_opinions
from tests.worlds import two_tastes

import federank as fr
from federank.errors import BadSplit, SettingError

SPLIT = fr.split_random(two_tastes(people=40), 0.2, 0.2)


def test_fit_makes_a_method_by_its_name_and_takes_the_training_part():
    named, classed = fr.fit("ials", SPLIT, factors=3), fr.fit(fr.IALS, SPLIT.train, factors=3)
    assert named.settings == classed.settings == fr.IALS(factors=3).settings
    assert named.recommend(0) == classed.recommend(0) == fr.IALS(factors=3).fit(SPLIT.train).recommend(0)
    with pytest.raises(SettingError, match="'ials'"):
        fr.fit("ialss", SPLIT)
    with pytest.raises(SettingError):
        fr.fit("ials", SPLIT, metric="ndcg@5")


@pytest.mark.parametrize("method", ["ials", "fpl"])
def test_patience_keeps_the_best_epoch(method):
    name = {"ials": "iterations", "fpl": "epochs"}[method]
    model = fr.fit(method, SPLIT, factors=3, patience=2, metric="ndcg@5", **{name: 30})
    stop = model.report["early_stopping"]
    curve = stop["curve"]
    assert stop["validation"] == max(curve) == curve[stop["epoch"] - 1]
    assert curve.index(max(curve)) == stop["epoch"] - 1
    assert len(curve) in (30, stop["epoch"] + 2)
    again = fr.fit(method, SPLIT, factors=3, **{name: stop["epoch"]})
    assert model.recommend(0) == again.recommend(0)
    assert fr.evaluate(model, SPLIT.development, at=5).means["ndcg@5"] == pytest.approx(stop["validation"])


def test_ratings_are_stopped_by_their_error():
    split = fr.split_random(two_opinions(), 0.2, 0.2)
    model = fr.fit("pmf", split, factors=3, iterations=12, learning_rate=0.05, patience=3)
    stop = model.report["early_stopping"]
    assert stop["metric"] == "rmse"
    assert stop["validation"] == min(stop["curve"])


@pytest.mark.parametrize(
    ("method", "data", "error", "sentence"),
    [
        ("itemknn", SPLIT, SettingError, "itemknn does not learn in epochs"),
        ("ials", SPLIT.train, SettingError, "patience needs a validation part"),
        ("ials", fr.split_random(two_tastes(), 0.2), BadSplit, "no validation part"),
    ],
)
def test_what_cannot_be_stopped_early_is_refused(method, data, error, sentence):
    with pytest.raises(error, match=sentence):
        fr.fit(method, data, patience=2)


def test_a_search_tries_every_combination_on_validation():
    found = fr.search("itemknn", SPLIT, k=[1, 2, 5], shrinkage=[0.0, 10.0], normalised=True, metric="ndcg@5")
    assert found.table.shape == (6, 4)
    assert found.best == found.table["ndcg@5"].max()
    assert found.settings["normalised"] is True
    model = found.fit(SPLIT)
    assert fr.evaluate(model, SPLIT.development, at=5).means["ndcg@5"] == pytest.approx(found.best)


def test_values_that_cannot_be_are_passed_over_with_their_reason():
    found = fr.search("ials", SPLIT, factors=[0, 3], iterations=2)
    assert found.settings == {"factors": 3, "iterations": 2}
    assert "factors is 0" in found.table["reason"][0]
    with pytest.raises(SettingError, match=r"1.*0"):
        fr.search("ials", SPLIT, factors=[0])
    with pytest.raises(SettingError):
        fr.search("ials", SPLIT, factors=3)


def test_the_error_of_ratings_is_searched_downwards():
    split = fr.split_random(two_opinions(), 0.2, 0.2)
    found = fr.search("biases", split, of=["none", "both"], metric="rmse")
    assert found.best == found.table["rmse"].min()
