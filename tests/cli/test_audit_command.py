"""`federank audit` on the command line: what it refuses, and what it prints."""

import json

import pytest
from click.testing import CliRunner
from tests.commands import run
from tests.worlds import shop_of, two_tastes

from federank.cli import federank
from federank.errors import FedeRankError, SettingError

pytestmark = pytest.mark.slow

FEW = ("--min-support", 1, "--factors", 4)


@pytest.fixture
def shop(tmp_path):
    return shop_of(tmp_path, two_tastes(), ratings=True)


def told(*arguments):
    return CliRunner().invoke(federank, ["audit", *map(str, arguments)], catch_exceptions=False).stdout


def test_sums_over_a_cohort_are_audited_in_rounds_of_that_many(shop):
    found = json.loads(told("fpl", "--data", shop, "--epochs", 5, "--sees", "sums", "--cohort", 4, "--json"))
    assert found["sees"] == "sums"
    assert found["cohort"] == 4
    assert set(found["attacks"]) >= {"popularity", "membership", "sum_vector", "learned", "fused"}
    assert found["best"]["by_auc"] in found["attacks"]


def test_ratings_are_audited_too(shop):
    answer = told("pmf", "--data", shop, "--style", "batch", "--iterations", 6, "--rho", 1, "--quiet")
    assert max(len(line) for line in answer.splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "figure"),
    [
        (["frugal", *FEW, "--messages", 2], "at most 2 uploads"),
        (["frugal", *FEW, "--messages", 2, "--server", "solve"], "at most 2 uploads"),
        (["frugal", *FEW, "--cohorts", 4, "--messages", 1, "--sees", "sums"], "5 clients"),
        (["fcf", "--rounds", 3, "--factors", 4], "One upload, inverted"),
    ],
)
def test_few_messages_are_audited(shop, arguments, figure):
    answer = told(*arguments, "--data", shop, "--quiet")
    assert figure in " ".join(answer.split())
    assert max(len(line) for line in answer.splitlines()) <= 80


def test_held_back_items_are_attacked_though_they_are_never_sent(shop):
    found = json.loads(told("frugal", *FEW, "--sharing", "fixed-subset", "--pi", 0.4, "--data", shop, "--json"))
    assert 0 < found["disclosed_share"] < 1
    assert found["best"]["auc_held_back"] is not None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fpl", "--cohort", "4"], "--sees sums"),
        (["fpl", "--cohort", "4", "--sees", "sums", "--clients-per-round", "3"], "--clients-per-round"),
        (["pmf", "--pi", "0.5"], "--pi"),
        (["fpl", "--rho", "2"], "--rho"),
        (["svdpp", "--sees", "sums"], "svdpp"),
        (["pmf", "--per-epoch"], "--per-epoch"),
        (["pmf", "--sees", "sums", "--cohort", "4"], "--cohort"),
        (["svdpp", "--preset", "sfpl"], "--preset"),
        (["frugal", "--rho", "2"], "--rho"),
        (["frugal", "--sharing", "all"], "fixed-subset"),
        (["frugal", "--cohort", "4", "--sees", "sums"], "--cohort"),
        (["fcf", "--messages", "2"], "--messages"),
        (["fpl", "--messages", "2"], "--messages"),
        (["fpl", "--server", "solve"], "adam"),
        (["frugal", "--server", "plain"], "solve"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(shop, arguments, named):
    result = run("audit", *arguments, "--data", shop)
    # `main` makes exit code 2 of an error of ours, as click does of its own.
    assert result.exit_code == 2 or isinstance(result.exception, FedeRankError), repr(result.exception)
    assert named in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "seen", "named"),
    [(["--sees", "sums"], "updates", "--cohort K"), (["--clip", "1", "--noise", "0.1"], "sums", "averaged")],
)
def test_another_server_than_was_asked_for_is_reported(shop, arguments, seen, named):
    words = ("fpl", "--data", shop, "--epochs", 2)
    assert json.loads(told(*words, "--json", *arguments))["sees"] == seen
    assert named in told(*words, "--quiet", *arguments)
    assert named not in told(*words, "--quiet")


def test_clients_of_the_servers_own_are_reported_only_where_it_has_some(shop):
    answer = told("pmf", "--data", shop, "--iterations", 2, "--sample", 1, "--quiet")
    assert "Means over 1 of" in answer
    assert "to learn on" not in answer


def test_an_attacker_knows_items(shop):
    words = ("frugal", *FEW, "--messages", 2, "--data", shop, "--sees", "sums")
    found = json.loads(told(*words, "--known", 3, "--json"))
    assert found["side_knowledge"]["shares"]["known"] == 3
    assert max(len(line) for line in told(*words, "--known", 3, "--quiet").splitlines()) <= 80


def test_only_frugal_is_attacked_with_known_items(shop):
    with pytest.raises(SettingError):
        told("fpl", "--data", shop, "--epochs", 1, "--known", 3)
