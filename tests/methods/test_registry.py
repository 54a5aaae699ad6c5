"""What is asked of a method by name: its settings, and how its run is carried out."""

import inspect

import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.errors import SettingError
from federank.methods.registry import METHODS, recommender_class

TASTES = two_tastes()


@pytest.mark.parametrize("method", METHODS)
def test_a_constructor_shows_the_settings_of_its_record(method):
    kind = recommender_class(method)
    assert inspect.signature(kind).parameters == inspect.signature(kind.settings_type).parameters
    assert kind().settings == kind.settings_type()


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_is_not_there_is_refused(method):
    with pytest.raises(SettingError, match="'sede'"):
        recommender_class(method)(sede=3)


def test_settings_are_given_by_name():
    with pytest.raises(SettingError, match="20"):
        fr.FPL(20)


@pytest.mark.parametrize("method", METHODS)
def test_an_argument_that_fit_does_not_have_is_refused(method):
    with pytest.raises(SettingError, match="'chekpoint'"):
        recommender_class(method)().fit(TASTES, chekpoint="x")


def test_training_options_of_another_type_are_refused():
    with pytest.raises(SettingError):
        fr.BPR().fit(TASTES, training_options={"threads": 2})


@pytest.mark.parametrize(
    ("model", "training_options", "sentence"),
    [
        (fr.MostPopular(), {"checkpoint": "x"}, "MostPopular cannot use checkpoint: it is not trained in rounds"),
        (fr.ItemKNN(), {"threads": 2}, "ItemKNN cannot use threads: it is not trained in rounds"),
        (fr.Random(), {"after_epoch": print}, "Random cannot use after_epoch"),
        (fr.MultVAE(), {"progress": print}, "MultVAE cannot use progress: it can use after_epoch alone"),
    ],
)
def test_what_a_method_cannot_use_is_refused_before_it_learns(model, training_options, sentence):
    with pytest.raises(SettingError, match=sentence):
        model.fit(TASTES, training_options=fr.TrainingOptions(**training_options))
    assert not hasattr(model, "training")


def test_progress_is_reported_to_the_caller(tmp_path):
    told = []
    training_options = fr.TrainingOptions(progress=told.append, checkpoint=str(tmp_path / "run"))
    fr.BPR(factors=4, epochs=2).fit(TASTES, training_options=training_options)
    assert told[-1].epoch == told[-1].epochs == 2
    assert told[-1].round_number == told[-1].rounds


@pytest.mark.parametrize("setting", [{"learning_rate": 0.3}, {"beta1": 0.5}, {"beta2": 0.5}])
def test_frugal_refuses_steps_of_adam_where_the_server_solves(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        fr.Frugal(**setting)
    assert fr.Frugal(server="adam", **setting).settings.step == "adam"
