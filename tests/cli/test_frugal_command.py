"""`federank train frugal` on the command line: what cannot be is refused in a sentence, with exit code 2."""

import json

import pytest
from tests.cli.program import program
from tests.squares_worlds import some_people
from tests.worlds import shop_of


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return shop_of(tmp_path_factory.mktemp("shop"), some_people())


def trained(shop, tmp_path, *arguments):
    return program("train", "frugal", "--data", shop, "--out", tmp_path / "run", *arguments)


def trained_on_all(shop, tmp_path, *arguments):
    return trained(shop, tmp_path, "--split", "none", "--quiet", *arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--messages", "0"], "messages is 0"),
        (["--factors", "31"], "factors is 31"),
        (["--delta", "1e-5"], "--delta"),
        (["--pi", "1.5"], "pi is 1.5"),
        (["--sharing", "all"], "--sharing"),
    ],
)
def test_what_cannot_be_ends_with_exit_code_2(shop, tmp_path, arguments, sentence):
    answer = trained_on_all(shop, tmp_path, *arguments)
    assert answer.returncode == 2
    assert sentence in " ".join(answer.stderr.split())
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "run").exists()


def test_a_search_says_what_it_chose_and_the_model_has_it(shop, tmp_path):
    found_already = ("--shrinkage", 0.9, "--activity", 0.15, "--popularity", 0.3)
    answer = trained(shop, tmp_path, "--messages", 1, "--min-support", 1, *found_already, "--search", "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)["search"]
    assert found["validation"] >= found["validation_before"]
    assert list(found["chosen"]) == ["factors"]
    kept = json.loads((tmp_path / "run" / "model.json").read_text())
    assert kept["settings"]["factors"] == found["chosen"]["factors"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["--search"], "--search needs a part to tune on"), (["--search", "--folds", "3"], "leave")],
)
def test_a_search_without_a_part_to_tune_on_ends_with_exit_code_2(shop, tmp_path, arguments, sentence):
    answer = trained_on_all(shop, tmp_path, *arguments)
    assert answer.returncode == 2
    assert sentence in " ".join(answer.stderr.split())
