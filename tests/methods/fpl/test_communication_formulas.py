"""Communication: the figures that the FPL paper prints for Foursquare Brazil, and the laws of the formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.methods.fpl.communication import communication_cost, conversations, freshness, normalised_freshness

BRAZIL = {"users": 17_473, "items": 47_270, "interactions": 599_958}


@pytest.mark.parametrize(
    ("pi", "one_pair", "many_pairs"),
    [
        (0.0, 28_360_614_618, 28_380_614_992),
        (0.2, 28_360_734_610, 28_384_735_058),
        (0.4, 28_360_854_601, 28_388_855_125),
        (0.6, 28_360_974_593, 28_392_975_191),
        (0.8, 28_361_094_584, 28_397_095_258),
        (1.0, 28_361_214_576, 28_401_215_324),
    ],
)
def test_brazil_costs_what_the_paper_prints(pi, one_pair, many_pairs):
    rho = conversations(clients_per_round=1, rounds_per_epoch=BRAZIL["interactions"])
    triples = BRAZIL["interactions"] / BRAZIL["users"]  # 34.3: the table prints 34, and is computed without rounding
    assert round(communication_cost(rho, BRAZIL["items"], 1, pi)) == one_pair
    assert round(communication_cost(rho, BRAZIL["items"], triples, pi)) == many_pairs


def test_brazil_has_the_rounds_and_the_freshness_that_the_paper_prints():
    rounds = BRAZIL["interactions"] / BRAZIL["users"]
    assert round(rounds) == 34
    assert f"{normalised_freshness(rounds, BRAZIL['interactions']):.4%}" == "0.0057%"


def test_calling_all_users_at_once_costs_the_same_and_renews_the_model_less_often():
    one_by_one = BRAZIL["interactions"]
    all_at_once = BRAZIL["interactions"] / BRAZIL["users"]
    assert conversations(BRAZIL["users"], all_at_once) == pytest.approx(conversations(1, one_by_one))
    assert freshness(all_at_once) < freshness(one_by_one)
    assert normalised_freshness(one_by_one, BRAZIL["interactions"]) == 1
    assert normalised_freshness(all_at_once, BRAZIL["interactions"]) == pytest.approx(1 / BRAZIL["users"])


@given(pi=st.floats(0, 1), triples=st.integers(1, 200))
def test_each_positive_that_is_sent_adds_its_vector(pi, triples):
    nothing = communication_cost(10, 100, triples, 0)
    assert communication_cost(10, 100, triples, pi) - nothing == pytest.approx(10 * triples * pi)
