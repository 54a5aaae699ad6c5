"""No flag of `federank train` is taken and then does nothing."""

import errno
import json

import pytest
from tests.cli.program import program
from tests.commands import run
from tests.studies.worlds import small_data

from federank.errors import ModelError, SettingError


@pytest.fixture
def visits(tmp_path):
    return small_data(tmp_path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--resume",), "leave out --resume"),
        (("--split", "none", "--test", 0.3), "leave out --test"),
        (("--split-seed", 3), "leave out --split-seed"),
        (("--split", "leave-last-out", "--test", 0.2), "leave out --test"),
        (("--folds", 2, "--test", 0.2), "leave out --test"),
        (("--folds", 2, "--validation", 0.2), "leave out --validation"),
    ],
)
def test_a_flag_without_effect_is_refused(words, sentence, visits, tmp_path):
    answer = run("train", "popular", "--data", visits, "--out", tmp_path / "run", *words)
    assert isinstance(answer.exception, SettingError)
    assert sentence in str(answer.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [("--threads", 1), ("--engine", "compiled"), ("--patience", 3), ("--no-count",)])
def test_a_flag_that_a_method_has_no_use_for_is_no_flag_of_it(words, visits, tmp_path):
    answer = run("train", "popular", "--data", visits, "--out", tmp_path / "run", *words)
    assert answer.exit_code == 2
    assert words[0] in answer.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "flag", "beside"),
    [
        ("frugal", ("--learning-rate", 0.3), ()),
        ("frugal", ("--beta1", 0.9), ()),
        ("frugal", ("--delta", 1e-6), ()),
        ("frugal", ("--shrinkage", 0.8), ("--regulariser", 2)),
        ("fpl", ("--beta2", 0.999), ()),
        ("fpl", ("--delta", 1e-5), ()),
        ("fpl", ("--noise-on", "sums"), ()),
        ("pmf", ("--filling", "average"), ()),
        ("pmf", ("--sampling", "fixed"), ("--rho", 0)),
        ("pmf", ("--t-local", 4), ("--rho", 1, "--filling", "average")),
        ("pmf", ("--client-rate", "iteration"), ("--style", "batch")),
    ],
)
def test_a_setting_without_effect_is_refused(method, flag, beside, visits, tmp_path):
    answer = run("train", method, "--data", visits, "--out", tmp_path / "run", *beside, *flag)
    assert isinstance(answer.exception, SettingError)
    assert flag[0][2:].replace("-", "_") in str(answer.exception).replace("-", "_")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("frugal", "--learning-rate", 0.3, "--server", "adam", "--min-support", 1),
        ("pmf", "--rho", 1, "--filling", "hybrid", "--t-local", 2),
        ("pmf", "--filling", "none"),
    ],
)
def test_a_setting_with_an_effect_is_taken(words, visits, tmp_path):
    answer = run("train", *words, "--data", visits, "--out", tmp_path / "run", "--quiet")
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize("flag", ["--test", "--validation", "--split-seed"])
def test_a_folder_of_parts_is_not_split_again(flag, visits, tmp_path):
    assert run("data", "split", visits, "--random", 0.2, "--out", tmp_path / "parts").exit_code == 0
    words = ("train", "popular", "--split", tmp_path / "parts", "--out", tmp_path / "run", "--quiet")
    answer = run(*words, flag, "1")
    assert f"leave out {flag}." in str(answer.exception)
    assert run(*words).exit_code == 0


def test_a_changed_folder_of_parts_is_refused(visits, tmp_path):
    run("data", "split", visits, "--random", 0.2, "--out", tmp_path / "parts")
    with (tmp_path / "parts" / "train.tsv").open("a") as file:
        file.write("1\t999\t5.0\t2000\n")
    answer = run("train", "popular", "--split", tmp_path / "parts", "--out", tmp_path / "run", "--quiet")
    assert "train.tsv" in str(answer.exception)


def test_patience_stops_a_run_and_keeps_its_best_epoch(visits, tmp_path):
    words = ("--factors", 4, "--iterations", 20, "--patience", 2, "--validation", 0.2)
    told = run("train", "ials", "--data", visits, "--out", tmp_path / "run", "--quiet", "--json", *words)
    assert told.exit_code == 0, told.output
    stop = json.loads(told.stdout)["early_stopping"]
    assert f"iterations {stop['epoch']} of {len(stop['curve'])}" in told.stderr
    assert json.loads((tmp_path / "run" / "model.json").read_text())["settings"]["iterations"] == stop["epoch"]


def test_help_offers_what_a_method_can_use():
    in_one_go, in_rounds = (run("train", method, "--help-all").output for method in ("itemknn", "fpl"))
    for flag in ("--threads", "--engine", "--patience", "--count"):
        assert flag not in in_one_go
        assert flag in in_rounds
    assert "--split" in in_one_go


def test_folds_of_any_method_can_be_resumed(visits, tmp_path):
    answer = run("train", "popular", "--data", visits, "--folds", 2, "--resume", "--out", tmp_path / "run")
    assert isinstance(answer.exception, ModelError)


def test_repeats_are_reported_wherever_data_are_reported(tmp_path):
    rows = [f"{user},{item},{time}" for time in (1, 2, 3) for user in range(5) for item in range(user, user + 6)]
    path = tmp_path / "checkins.csv"
    path.write_text("\n".join(["user,item,time", *rows]) + "\n")
    assert "60" in next(line for line in run("data", "stats", path).output.splitlines() if "Repeats" in line)
    assert '"repeats_left_out": 60' in run("data", "stats", path, "--json").output
    told = run("data", "split", path, "--random", 0.4, "--out", tmp_path / "parts").output
    assert "60" in told
    assert '"repeats_left_out": 60' in (tmp_path / "parts" / "split.json").read_text()
    trained = run("train", "popular", "--data", path, "--out", tmp_path / "run").output
    assert "60" in trained
    from_parts = run("train", "popular", "--split", tmp_path / "parts", "--out", tmp_path / "from_parts").output
    assert "60" in from_parts
    assert '"repeats_left_out": 60' in (tmp_path / "run" / "model.json").read_text()


def test_a_file_of_another_user_ends_a_command_with_code_2(monkeypatch):
    def stat(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "theirs/table.csv")

    monkeypatch.setattr("federank.data.loading.load", stat)
    answer = program("data", "stats", "theirs/table.csv")
    assert answer.returncode == 2
    assert "theirs/table.csv" in answer.stderr
