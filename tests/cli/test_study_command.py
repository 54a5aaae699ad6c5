"""`federank study`: list, run, status and report, as a person types them."""

import json
from pathlib import Path

import pytest
import tomli_w
from click.testing import CliRunner
from tests.studies.worlds import Here, small_data, small_study

from federank.cli import federank
from federank.errors import FedeRankError
from federank.studies.plan import _sources
from federank.studies.results import Results


def asked(*words):
    return CliRunner().invoke(federank, ["study", *map(str, words)])


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(small_study(tmp_path).document))
    return path


@pytest.fixture
def in_this_process(monkeypatch):
    """Runs are carried out here: no processes of their own for what is not about them."""
    monkeypatch.setattr("federank.cli.study.Pool", lambda _: Here())


def test_the_list_names_the_packaged_studies_and_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path))
    answer = asked("list", "--json")
    assert answer.exit_code == 0
    told = json.loads(answer.output)
    assert told["federank-table2"]["data"] == {"amazon-digital-music": False, "librarything": False, "ml-1m": False}
    assert "fedrec-table2" in asked("list").output


def test_a_dry_run_lists_what_there_is_to_do_and_writes_nothing(study_file, tmp_path):
    answer = asked("run", study_file, "--dry-run", "--out", tmp_path / "r")
    assert answer.exit_code == 0
    assert "9 runs" in answer.output
    assert not (tmp_path / "r").exists()


def test_a_study_is_run_and_its_status_reported(study_file, tmp_path, in_this_process):
    answer = asked("run", study_file, "--out", tmp_path / "r", "--quiet")
    assert answer.exit_code == 0, answer.output
    assert f"Next: federank study report {tmp_path / 'r'}" in answer.output
    status = json.loads(asked("status", tmp_path / "r", "--json").output)
    assert status == {"runs": 9, "done": 9, "failed": 0, "under_way": 0, "missing": 0, "failures": []}
    assert "9 runs, 9 done, 0 failed" in asked("status", tmp_path / "r").output


def test_a_report_without_a_file_is_printed(tmp_path, in_this_process):
    (tmp_path / "tiny.toml").write_text(
        f'title = "Tiny"\ndata = ["{small_data(tmp_path)}"]\nat = [5]\nmodel = [{{ method = "popular" }}]\n'
    )
    asked("run", tmp_path / "tiny.toml", "--out", tmp_path / "r", "--quiet")
    told = asked("report", tmp_path / "r")
    assert told.exit_code == 0, told.output
    assert told.output.startswith("# Tiny\n")
    assert "| popular |" in told.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "tiny.toml", "visits.csv"]


def test_what_the_command_line_changes_is_in_the_study_that_is_kept(study_file, tmp_path, in_this_process):
    changes = ["--seeds", "7", "--set", "choose.epochs=2", "--set", "model.FPL.sweep.pi=[0.5, 1.0]"]
    answer = asked("run", study_file, "--out", tmp_path / "r", "--quiet", *changes)
    assert answer.exit_code == 0, answer.output
    lines = Results.open(tmp_path / "r").records()
    fpl = [line for line in lines if line.model == "fpl"]
    assert {line.seed for line in fpl} == {7}
    assert {line.epochs for line in fpl} == {2}
    assert {line.swept["pi"] for line in fpl} == {0.5, 1.0}
    assert "epochs = 2" in (tmp_path / "r" / "study.toml").read_text()


def test_a_failed_run_is_reported_and_is_no_failure_of_the_command(tmp_path, in_this_process):
    document = small_study(tmp_path).document | {"seeds": [1]}
    document["model"] = [{"group": "Wild", "method": "fpl", "settings": {"learning_rate": 1e6}}, {"method": "popular"}]
    (tmp_path / "wild.toml").write_text(tomli_w.dumps(document))
    answer = asked("run", tmp_path / "wild.toml", "--out", tmp_path / "r", "--quiet")
    assert answer.exit_code == 0
    assert "2 failed" in answer.output
    assert "learning_rate 1e+06" in answer.output
    status = json.loads(asked("status", tmp_path / "r", "--json").output)
    assert [failure["group"] for failure in status["failures"]] == ["Wild", "Wild"]


def test_a_study_in_which_every_run_failed_ends_with_exit_code_1(tmp_path, in_this_process):
    document = small_study(tmp_path).document | {"seeds": [1]}
    document["model"] = [{"group": "Wild", "method": "fpl", "settings": {"learning_rate": 1e6}}]
    (tmp_path / "wild.toml").write_text(tomli_w.dumps(document))
    answer = asked("run", tmp_path / "wild.toml", "--out", tmp_path / "r", "--quiet")
    assert answer.exit_code == 1
    assert "Every run failed" in answer.output
    assert asked("status", tmp_path / "r").exit_code == 0


def test_status_counts_what_is_planned_before_a_run_has_finished(study_file, tmp_path, monkeypatch):
    seen = []

    class Looking(Here):
        def submit(self, run):
            seen.append(json.loads(asked("status", tmp_path / "r", "--json").output))
            super().submit(run)

    monkeypatch.setattr("federank.cli.study.Pool", lambda _: Looking())
    small = ("--set", "model.FPL.grid.learning_rate=[0.05]", "--set", "choose.best_epoch=true")
    answer = asked("run", study_file, "--out", tmp_path / "r", "--quiet", "--set", "model.Popular.skip=true", *small)
    assert answer.exit_code == 0, answer.output
    assert seen[0]["runs"] == 6
    assert seen[0]["done"] == 0
    assert seen[0]["under_way"] == 1
    assert seen[0]["missing"] == 5


def test_a_study_whose_data_changed_says_so(study_file, tmp_path, in_this_process):
    only = ("--set", "model.FPL.skip=true", "--quiet", "--out", tmp_path / "r")
    assert "is not the data" not in asked("run", study_file, *only).output
    small_data(tmp_path, seed=1)
    _sources.clear()
    expected = "visits is not the data that 1 finished runs have learnt from: its content"
    assert expected in asked("run", study_file, *only[:2], "--dry-run", *only[3:]).output
    assert expected in asked("run", study_file, *only).output
    assert "is not the data" not in asked("run", study_file, *only).output


def test_a_report_tells_the_rows_that_were_left_out(tmp_path, in_this_process):
    source = Path(small_data(tmp_path))
    source.write_text(source.read_text() + source.read_text().partition("\n")[2])
    (tmp_path / "twice.toml").write_text(f'data = ["{source}"]\nat = [5]\nmodel = [{{ method = "popular" }}]\n')
    assert asked("run", tmp_path / "twice.toml", "--out", tmp_path / "r", "--quiet").exit_code == 0
    asked("report", tmp_path / "r", "--markdown", tmp_path / "report.md")
    assert "visits.csv" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "federank-tabel2"], "Did you mean 'federank-table2'?"),
        (["run", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["run", "{study}", "--set", "choose.epoch=2"], "Did you mean 'epochs'?"),
        (["run", "{study}", "--set", "rubbish"], "path.key=value is needed"),
        (["run", "{study}", "--seeds", "one"], "integers are needed"),
        (["run", "{study}", "--quick"], "no quick form"),
        (["run", "{study}", "--set", "split.test=1.0"], "1.0"),
        (["run", "{study}", "--set", "data.visits.source=nothing.csv"], "nothing.csv"),
        (["status", "nowhere"], "holds no results of a study"),
        (["report", "nowhere"], "nowhere has no study.toml"),
    ],
)
def test_a_mistake_is_an_error(study_file, words, told, monkeypatch):
    monkeypatch.chdir(study_file.parent)
    answer = asked(*[study_file if word == "{study}" else word for word in words])
    assert isinstance(answer.exception, FedeRankError)
    assert told in str(answer.exception)
