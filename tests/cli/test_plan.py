"""`federank audit plan`: what a size can guarantee, from measured curves."""

import json
import math

import pytest
from click.testing import CliRunner

from federank.cli import federank
from federank.methods.frugal.private_server import AMAZON, CITIES, FILMS, ITALY, forecast, kept_at


def planned(*flags):
    return CliRunner().invoke(federank, ["audit", "plan", *map(str, flags)])


def test_the_plan_tells_messages_noise_and_the_accuracy_to_expect():
    told = planned("--users", 50_000, "--items", 3_000, "--epsilon", 2)
    assert told.exit_code == 0, told.output
    assert "Uploads per client" in told.output
    found = json.loads(planned("--users", 50_000, "--items", 3_000, "--epsilon", 2, "--json").output)
    assert (found["messages"], len(found["sigmas"])) == (5, 5)
    assert 1.99 < found["epsilon"] <= 2
    assert 0.5 < found["kept_cities"] <= found["kept_films"] <= 1


def test_more_users_and_a_larger_epsilon_cost_no_more():
    for curve in (CITIES, FILMS):
        kept = [kept_at(curve, signal) for signal in (16, 20, 50, 100, 500, 2_000, 10_000)]
        assert kept == sorted(kept)
        assert kept[-1] > 0.95
    small, large = (forecast(people, 1_500, 1.0, 1e-6, 5) for people in (3_000, 300_000))
    assert small.kept_cities < large.kept_cities
    assert small.affordable is None
    assert large.affordable < 1


@pytest.mark.parametrize("curve", [CITIES, FILMS, ITALY, AMAZON])
def test_no_accuracy_is_made_up_below_what_was_measured(curve):
    smallest = min(signal for signal, _ in curve)
    assert kept_at(curve, smallest) is not None
    assert kept_at(curve, 0.99 * smallest) is None


MEASURED = [  # docs/results/privacy-price.md: what is kept of P@10 at epsilon 1, 2, 4, 8
    ("kept_amazon", 1_835, 34_526, (0.00, 0.02, 0.08, 0.28)),
    ("kept_italy", 1_353, 25_498, (0.23, 0.44, 0.57, 0.65)),
]


@pytest.mark.parametrize(("curve", "people", "items", "measured"), MEASURED)
def test_few_users_with_many_items_learn_what_was_measured(curve, people, items, measured):
    for epsilon, kept in zip((1, 2, 4, 8), measured, strict=True):
        found = json.loads(planned("--users", people, "--items", items, "--epsilon", epsilon, "--json").output)
        assert math.isclose(found[curve], kept, abs_tol=0.006)
        assert found["kept_cities"] is None
    told = planned("--users", people, "--items", items, "--epsilon", 8).output
    assert f"{measured[-1]:.0%}" in told
    assert "not measured" in told


def test_without_an_epsilon_the_plan_is_for_the_smallest_that_costs_less_than_a_tenth():
    found = json.loads(planned("--users", 100_000, "--items", 1_500, "--json").output)
    assert found["epsilon"] <= found["affordable"] < 1.2
    assert found["kept_cities"] >= 0.9
    small = planned("--users", 1_000, "--items", 1_500)
    assert small.exit_code == 0
    assert "16" in small.output
    assert json.loads(planned("--users", 1_000, "--items", 1_500, "--json").output)["epsilon"] is None


@pytest.mark.parametrize("flags", [["--delta", 0], ["--delta", 1], ["--epsilon", -1], ["--epsilon", "inf"]])
def test_what_is_no_guarantee_is_refused_by_its_own_name(flags):
    answer = planned("--users", 100, "--items", 100, *flags)
    assert answer.exit_code == 2
    assert flags[0] in answer.stderr
