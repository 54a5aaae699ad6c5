import numpy as np
import pytest

from federank.errors import SettingError
from federank.methods.fedrec.reference import predicts, rate_after
from federank.methods.fedrec.simulation import PMFSettings, SVDPlusPlusSettings

SIZES = np.array([2, 9, 10, 0])


def recipe(settings=PMFSettings, **chosen):
    return settings(**chosen).recipe(SIZES, 10)


def test_the_papers_rates_are_the_default_of_each_style():
    assert recipe(style="batch").learning_rate == 0.8
    assert recipe(style="stochastic").learning_rate == 0.01
    assert recipe(SVDPlusPlusSettings).learning_rate == 0.01
    assert recipe(learning_rate=0.3).learning_rate == 0.3


def test_the_rate_is_multiplied_by_the_decay_after_each_iteration():
    told = recipe(learning_rate=0.5, decay=0.8)
    assert [rate_after(told, times) for times in range(3)] == pytest.approx([0.5, 0.4, 0.32])


def test_an_iteration_is_one_round_of_all_in_batch_style_and_a_round_for_each_in_stochastic_style():
    assert (recipe(style="batch").clients_per_round, recipe(style="batch").rounds_per_epoch) == (3, 1)
    assert (recipe().clients_per_round, recipe().rounds_per_epoch) == (1, 3)


@pytest.mark.parametrize(
    ("rho", "expected"),
    [(0, [0, 0, 0, 0]), (0.5, [1, 1, 0, 0]), (1, [2, 1, 0, 0]), (3, [6, 1, 0, 0]), (1e9, [8, 1, 0, 0])],
)
def test_rho_times_the_own_ratings_are_virtual_but_never_more_than_there_are_items(rho, expected):
    assert recipe(rho=rho).virtual.tolist() == expected


@pytest.mark.parametrize(("start", "first"), [("late", 7), ("early", 5)])
def test_predicted_virtual_ratings_begin_as_the_code_or_the_paper_says(start, first):
    told = recipe(rho=1, filling="hybrid", t_predict=5, filling_start=start)
    iterations = [t for t in range(1, 20) if predicts(told, t - 1)]  # the paper counts from 1
    assert iterations == list(range(first, 20))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"rho": -1}, "rho is -1; a number 0 or more is needed"),
        ({"rho": float("nan")}, "rho is nan; a number 0 or more is needed"),
        ({"rho": float("inf")}, "rho is inf; a number 0 or more is needed"),
        ({"rho": 1, "filling": "none"}, "rho is 1, but filling is none; choose average or hybrid, or rho 0"),
        ({"rho": 1, "federated": False}, "without a federation nothing is sent that virtual ratings could hide"),
        ({"filling": "negative"}, "filling is 'negative'; it can be hybrid or average or none"),
        ({"style": "online"}, "style is 'online'; it can be stochastic or batch"),
        ({"item_gradients": "during"}, "item_gradients is 'during'; it can be before or after"),
        ({"client_rate": "own"}, "client_rate is 'own'; it can be participation or iteration"),
        ({"filling_start": "now"}, "filling_start is 'now'; it can be late or early"),
        ({"local_training": "none"}, "local_training is 'none'; it can be copy or own"),
        ({"factors": 0}, "factors is 0; an integer, from 1 to 1024, is needed"),
        ({"iterations": 1.5}, "iterations is 1.5; an integer, 1 or more, is needed"),
        ({"t_local": -1}, "t_local is -1; an integer, from 0 to 10000, is needed"),
        ({"seed": 2**32}, "seed is 4294967296; an integer, from 0 to 4294967295, is needed"),
        ({"learning_rate": 0}, "learning_rate is 0; a finite number above 0 is needed"),
        ({"decay": float("nan")}, "decay is nan; a finite number above 0 is needed"),
        ({"regulariser": -0.1}, "regulariser is -0.1; a number 0 or more is needed"),
        ({"lowest": 5, "highest": 1}, "Ratings are declared to lie between 5 and 1; a lowest and a greater highest"),
    ],
)
def test_what_cannot_be_is_refused(wrong, sentence):
    with pytest.raises(SettingError, match=sentence):
        PMFSettings(**wrong)
