"""`federank audit` on the command line: what it refuses, and what it prints."""

import json

import pytest
from click.testing import CliRunner
from tests.worlds import two_tastes

from federank.cli import federank
from federank.errors import SettingError

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path):
    data, path = two_tastes(), tmp_path / "shop.csv"
    rows = zip(data.user_ids[data.users], data.item_ids[data.items], strict=True)
    lines = "".join(f"{u},{i},{1 + (u + i) % 5},{1_600_000_000 + n}\n" for n, (u, i) in enumerate(rows))
    path.write_text("user,item,rating,time\n" + lines)
    return path


def told(*arguments):
    return CliRunner().invoke(federank, ["audit", *map(str, arguments)], catch_exceptions=False).stdout


def test_sums_over_a_cohort_are_audited_in_rounds_of_that_many(shop):
    found = json.loads(told("fpl", "--data", shop, "--epochs", 5, "--sees", "sums", "--cohort", 4, "--json"))
    assert found["sees"] == "sums"
    assert found["cohort"] == 4
    assert set(found["attacks"]) >= {"popularity", "membership", "sum_vector", "learned", "fused"}
    assert found["best"]["by_auc"] in found["attacks"]


def test_a_report_about_sums_keeps_to_eighty_columns(shop):
    answer = told("fpl", "--data", shop, "--epochs", 2, "--sees", "sums", "--cohort", 4, "--quiet")
    assert "4 devices" in answer
    assert max(len(line) for line in answer.splitlines()) <= 80


def test_ratings_are_audited_too(shop):
    answer = told("pmf", "--data", shop, "--style", "batch", "--iterations", 6, "--rho", 1, "--quiet")
    assert max(len(line) for line in answer.splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frugal", "--min-support", 1, "--messages", 2, "--factors", 4], "after at most 2 messages of each device"),
        (
            ["frugal", "--min-support", 1, "--messages", 2, "--factors", 4],
            "gives away everything that it was made from: one is enough",
        ),
        (
            ["frugal", "--min-support", 1, "--factors", 4, "--sharing", "fixed-subset", "--pi", 0.4],
            "taste still points at it",
        ),
        (["fcf", "--rounds", 3, "--factors", 4], "A message, read backwards"),
        (
            ["frugal", "--min-support", 1, "--cohorts", 4, "--messages", 1, "--factors", 4, "--sees", "sums"],
            "rounds of 5 devices",
        ),
        (
            ["frugal", "--min-support", 1, "--cohorts", 4, "--messages", 1, "--factors", 4, "--sees", "sums"],
            "differ by one member",
        ),
        (
            ["frugal", "--min-support", 1, "--cohorts", 4, "--messages", 1, "--factors", 4, "--sees", "sums"],
            "items went into a sum",
        ),
        (["frugal", "--min-support", 1, "--messages", 2, "--factors", 4, "--per-epoch"], "All together"),
        (
            ["frugal", "--min-support", 1, "--messages", 2, "--factors", 4, "--server", "solve"],
            "after at most 2 messages of each device",
        ),
    ],
)
def test_few_messages_are_audited_and_what_the_table_must_not_be_taken_for_is_said(shop, arguments, words):
    answer = told(*arguments, "--data", shop, "--quiet")
    assert words in " ".join(answer.split())
    assert max(len(line) for line in answer.splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fpl", "--cohort", "4"], "add `--sees sums`"),
        (["fpl", "--cohort", "4", "--sees", "sums", "--clients-per-round", "3"], "needs rounds of 4"),
        (["pmf", "--pi", "0.5"], "pmf has no setting --pi"),
        (["fpl", "--rho", "2"], "fpl has no setting --rho"),
        (["svdpp", "--sees", "sums"], "not audited yet"),
        (["pmf", "--per-epoch"], "leave out --per-epoch"),
        (["pmf", "--sees", "sums", "--cohort", "4"], "pmf has no setting --cohort"),
        (["svdpp", "--preset", "sfpl"], "svdpp has no setting --preset"),
        (["frugal", "--rho", "2"], "frugal has no setting --rho"),
        (["frugal", "--sharing", "all"], "it can be fixed-subset or randomized-response"),
        (["frugal", "--cohort", "4", "--sees", "sums"], "frugal has no setting --cohort"),
        (["fcf", "--messages", "2"], "fcf has no setting --messages"),
        (["fpl", "--messages", "2"], "fpl has no setting --messages"),
        (["fpl", "--server", "solve"], "it can be plain or adam"),
        (["frugal", "--server", "plain"], "it can be solve or adam"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(shop, arguments, words):
    with pytest.raises(SettingError, match=words):
        told(*arguments, "--data", shop)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sees", "sums"], "`--cohort K` makes rounds of K devices"),
        (["--clip", "1", "--noise", "0.1"], "averaged over rounds"),
    ],
)
def test_another_server_than_was_asked_for_is_told(shop, arguments, words):
    answer = told("fpl", "--data", shop, "--epochs", 2, "--quiet", *arguments)
    assert words in " ".join(answer.split())
    assert "averaged" not in told("fpl", "--data", shop, "--epochs", 2, "--quiet")


@pytest.mark.parametrize("sees", ["both", "sums"])
def test_no_report_calls_open_what_left_in_parts_or_sums(shop, sees):
    words = ["frugal", "--min-support", 1, "--messages", 2, "--factors", 4, "--per-epoch", "--sees", sees]
    assert "openly" not in told(*words, "--data", shop, "--quiet")


def test_devices_of_the_servers_own_are_told_only_where_it_has_some(shop):
    answer = told("pmf", "--data", shop, "--iterations", 2, "--sample", 1, "--quiet")
    assert "Means over 1 of" in answer
    assert "to learn on" not in answer


def test_an_attacker_knows_items(shop):
    words = ("frugal", "--min-support", 1, "--messages", 2, "--factors", 4, "--data", shop, "--sees", "sums")
    found = json.loads(told(*words, "--known", 3, "--json"))
    assert found["side_knowledge"]["shares"]["known"] == 3
    assert max(len(line) for line in told(*words, "--known", 3, "--quiet").splitlines()) <= 80


def test_only_frugal_is_attacked_with_known_items(shop):
    with pytest.raises(SettingError):
        told("fpl", "--data", shop, "--epochs", 1, "--known", 3)
