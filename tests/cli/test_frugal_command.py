"""`federank train frugal` on the command line: what cannot be is refused in a sentence, with exit code 2."""

import json

import pytest
from tests.cli.program import program
from tests.squares_worlds import some_people

PEOPLE = some_people()


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    lines = "".join(
        f"{user},{item},{time}\n" for time, (user, item) in enumerate(zip(PEOPLE.users, PEOPLE.items, strict=True))
    )
    path.write_text("user,item,time\n" + lines)
    return path


def trained(shop, tmp_path, *arguments):
    return program("train", "frugal", "--data", shop, "--out", tmp_path / "run", *arguments)


def trained_on_all(shop, tmp_path, *arguments):
    return trained(shop, tmp_path, "--split", "none", "--quiet", *arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--messages", "0"], "messages is 0; an integer, 1 or more, is needed."),
        (["--messages", "4", "--rounds", "3"], "which takes 4 rounds, but rounds is 3"),
        (["--messages", "2", "--cohorts", "3", "--rounds", "5"], "which takes 6 rounds, but rounds is 5"),
        (["--factors", "31"], "factors is 31, but there are only 30 items"),
        (["--factors", "0"], "factors is 0"),
        (["--delta", "1e-5"], "--delta has no effect here"),
        (["--messages", "2000", "--epsilon", "4"], "messages is 2,000, but"),
        (["--alpha", "-1"], "alpha is -1.0; a number 0 or more is needed."),
        (["--alpha", "nan"], "alpha is nan"),
        (["--regulariser", "-0.5"], "regulariser is -0.5; a number 0 or more is needed."),
        (["--regulariser", "nan"], "regulariser is nan"),
        (["--regulariser", "inf"], "regulariser is inf"),
        (["--cohorts", "81"], "cohorts is 81, but only 80 people can take part"),
        (["--clip", "0"], "clip is 0"),
        (["--pi", "0"], "No one can take part"),
        (["--pi", "1.5"], "pi is 1.5"),
        (["--damping", "0"], "damping is 0"),
        (["--shrinkage", "nan"], "shrinkage is nan"),
        (
            ["--regulariser", "1e9", "--min-support", "1"],
            "every item vector would be zero. A smaller regulariser is needed",
        ),
        (["--epsilon", "2", "--cohorts", "2"], "leave cohorts out"),
        (["--epsilon", "0"], "epsilon is 0"),
        (["--sharing", "all"], "Invalid value for '--sharing'"),
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
