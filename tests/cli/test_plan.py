"""`federank plan`: what a size can promise, from measured curves."""

import json
from types import SimpleNamespace

from click.testing import CliRunner

from federank.cli import federank
from federank.cli.train.affordable import affordable_promise
from federank.protocol.squares.private.forecast import CITIES, FILMS, forecast, kept_at


def planned(*flags):
    return CliRunner().invoke(federank, ["plan", *map(str, flags)])


def test_the_plan_tells_messages_noise_and_the_accuracy_to_expect():
    told = planned("--people", 50_000, "--items", 3_000, "--epsilon", 2)
    assert told.exit_code == 0, told.output
    assert "Messages in a life" in told.output
    found = json.loads(planned("--people", 50_000, "--items", 3_000, "--epsilon", 2, "--json").output)
    assert (found["messages"], len(found["sigmas"])) == (5, 5)
    assert 1.99 < found["epsilon"] <= 2
    assert 0.5 < found["kept_cities"] <= found["kept_films"] <= 1


def test_more_people_and_a_larger_epsilon_cost_no_more():
    for curve in (CITIES, FILMS):
        kept = [kept_at(curve, signal) for signal in (1, 5, 20, 50, 100, 500, 2_000, 10_000)]
        assert kept == sorted(kept)
        assert kept[-1] > 0.95
    small, large = (forecast(people, 1_500, 1.0, 1e-6, 5) for people in (3_000, 300_000))
    assert small.kept_cities < large.kept_cities
    assert small.affordable is None
    assert large.affordable < 1


def test_without_an_epsilon_the_plan_is_for_the_smallest_that_costs_less_than_a_tenth():
    found = json.loads(planned("--people", 100_000, "--items", 1_500, "--json").output)
    assert found["epsilon"] <= found["affordable"] < 1.2
    assert found["kept_cities"] >= 0.9
    small = planned("--people", 1_000, "--items", 1_500)
    assert small.exit_code == 0
    assert "No epsilon up to 16" in small.output
    assert json.loads(planned("--people", 1_000, "--items", 1_500, "--json").output)["epsilon"] is None


def test_training_with_the_affordable_promise_follows_the_size():
    settings = {"delta": 1e-6}
    large, small = (SimpleNamespace(n_users=people, n_items=1_500) for people in (100_000, 1_000))
    assert 0.5 < affordable_promise(large, settings)["epsilon"] < 1.2
    assert affordable_promise(small, settings) == {}


def test_the_affordable_promise_is_refused_beside_another(tmp_path):
    words = ["train", "frugal", "--data", "city", "--preset", "affordable", "--epsilon", "2", "--out", tmp_path / "m"]
    refused = CliRunner().invoke(federank, [str(word) for word in words])
    assert "leave out --epsilon" in str(refused.exception)


def test_a_promise_that_is_none_is_refused():
    for flags in (["--epsilon", 0], ["--epsilon", 1, "--delta", 2]):
        refused = planned("--people", 100, "--items", 100, *flags)
        assert refused.exit_code != 0
        assert "is needed" in str(refused.exception) or "are needed" in str(refused.exception)
