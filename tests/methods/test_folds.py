import json

import pytest
from tests.rated_worlds import two_opinions

import federank as fr
from federank.errors import ModelError
from federank.methods.model_folder import folds_in, is_folds, load_model, load_split, train_each, unfinished

SPLITS = fr.split_folds(two_opinions(), folds=3, seed=1)


def new(**settings):
    return fr.PMF(**({"factors": 4, "iterations": 2} | settings))


def fit(model, split, number, checkpoint):
    model.fit(split.train)


def stopped_in_the_second(model, split, number, checkpoint):
    if number == 2:
        raise KeyboardInterrupt
    fit(model, split, number, checkpoint)


def test_folds_are_a_folder_of_models_with_their_splits(tmp_path):
    models = train_each(new, SPLITS, tmp_path / "runs", fit)
    places = folds_in(tmp_path / "runs")
    assert [place.name for place in places] == ["fold-1", "fold-2", "fold-3"]
    for place, model, split in zip(places, models, SPLITS, strict=True):
        assert load_model(place).training.fingerprint == model.training.fingerprint
        assert load_split(place).test.fingerprint == split.test.fingerprint
    assert not unfinished(tmp_path / "runs").exists()


def test_a_failure_leaves_nothing_behind(tmp_path):
    def fail_in_the_second(model, split, number, checkpoint):
        if number == 2:
            raise ModelError("something is wrong")
        fit(model, split, number, checkpoint)

    with pytest.raises(ModelError):
        train_each(new, SPLITS, tmp_path / "runs", fail_in_the_second)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_with_the_folds_it_lacks(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train_each(new, SPLITS, tmp_path / "runs", stopped_in_the_second)
    assert not (tmp_path / "runs").exists()
    fitted = []

    def remember(model, split, number, checkpoint):
        fitted.append(number)
        fit(model, split, number, checkpoint)

    with pytest.raises(ModelError, match="--resume"):
        train_each(new, SPLITS, tmp_path / "runs", remember)
    with pytest.raises(ModelError):
        train_each(lambda: new(seed=9), SPLITS, tmp_path / "runs", remember, resume=True)
    train_each(new, SPLITS, tmp_path / "runs", remember, resume=True)
    assert fitted == [2, 3]
    assert len(folds_in(tmp_path / "runs")) == 3


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(ModelError):
        train_each(new, SPLITS, tmp_path / "runs", fit, resume=True)


def test_what_is_not_complete_is_refused(tmp_path):
    train_each(new, SPLITS, tmp_path / "runs", fit)
    (tmp_path / "runs" / "fold-2" / "model.json").unlink()
    with pytest.raises(ModelError, match="2"):
        folds_in(tmp_path / "runs")
    (tmp_path / "runs" / "folds.json").write_text(json.dumps({"format": "federank-folds", "folds": "many"}))
    with pytest.raises(ModelError):
        folds_in(tmp_path / "runs")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "something else"}'])
def test_another_folder_is_not_taken_for_folds(content, tmp_path):
    (tmp_path / "folds.json").write_text(content)
    assert not is_folds(tmp_path)
    with pytest.raises(ModelError):
        folds_in(tmp_path)
