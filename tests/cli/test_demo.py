"""`federank demo`: the first thing that a new user sees."""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from federank.cli import federank
from federank.cli.demo import MARK
from federank.errors import FedeRankError
from federank.studies.results import Results


def run_demo(out, *words):
    return CliRunner().invoke(federank, ["demo", "--out", str(out), *words])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "out"


@pytest.fixture(scope="module")
def story(place):
    result = run_demo(place)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def numbers(story, start):
    """The numbers of a table's rows that begin with these words, by the row's first words."""
    lines = [line.strip() for line in story.splitlines() if line.strip().startswith(start)]
    return {re.split(r"\s{2,}", line)[0]: re.split(r"\s{2,}", line)[1:] for line in lines}


@pytest.mark.slow
def test_the_demo_starts_with_the_papers(story):
    learning = story.split("\n3. ")[1].split("\n4. ")[0]
    rows = numbers(learning, ("Random", "Most", "Item", "BPR", "FPL"))
    methods = {name: float(row[0]) for name, row in rows.items()}
    assert list(methods)[:4] == [
        *("Random", "Most popular (centralised)", "Item-kNN (centralised)", "BPR-MF (centralised)"),
    ]
    assert list(methods)[4:] == [f"FPL, pi = {pi}" for pi in ("0", "0.1", "0.3", "0.5", "1")]
    assert methods["FPL, pi = 0.1"] > 1.5 * methods["Most popular (centralised)"] > methods["Random"]
    assert methods["FPL, pi = 0"] < methods["FPL, pi = 0.1"]


def configurations(story):
    """Of each row of act 5: uploads, megabytes, precision, what the server ranks right, and what popularity does."""
    rows = numbers(story.split("\n5. ")[1], ("FPL, pi", "Frugal, plain", "Frugal, helper"))
    return {name: (row[0], [float(cell.replace(",", "")) for cell in row[1:]]) for name, row in rows.items()}


@pytest.mark.slow
def test_cost_and_leakage_are_of_the_same_mode(story):
    found = configurations(story)
    assert list(found) == ["FPL, pi = 1", "FPL, pi = 0.1", "Frugal, plain", "Frugal, helper"]
    for name in ("FPL, pi = 1", "FPL, pi = 0.1", "Frugal, plain"):
        reader, (_, _, _, guessed, _) = found[name]
        assert reader == "operator"
        assert guessed > 0.95
    reader, (uploads, megabytes, precision, guessed, popular) = found["Frugal, helper"]
    assert (reader, uploads) == ("neither", 5)
    assert megabytes > found["Frugal, plain"][1][1]
    assert guessed <= popular + 0.02
    assert precision > found["FPL, pi = 1"][1][2]


@pytest.mark.slow
def test_a_packaged_study_reproduces_the_demo(story, place, tmp_path):
    result = CliRunner().invoke(federank, ["study", "run", "demo", "--quiet", "--out", str(tmp_path / "again")])
    assert result.exit_code == 0, result.output
    again = {line.id: line.metrics for line in Results.open(tmp_path / "again").records()}
    demo = {line.id: line.metrics for line in Results.open(place / "results").records()}
    assert demo == again
    shown = {f"{line['precision@10']:.4f}" for line in again.values() if "lifetime_messages" in line}
    assert {row[0] for name, row in numbers(story, ("FPL, ",)).items() if len(row) == 3} <= shown


@pytest.mark.slow
def test_the_demo_replaces_its_own_folder_tells_the_same_story_and_runs_on_its_own(story, place):
    (place / "report.html").write_text("old")
    command = [sys.executable, "-m", "federank", "demo", "--out", place.name]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place.parent)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[:-1] == story.splitlines()[:-1]
    assert "<svg" in (place / "report.html").read_text(encoding="utf-8")
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_another_users_folder_is_refused_before_anything_is_done(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    result = run_demo(tmp_path / "mine")
    assert result.exit_code == 1
    assert isinstance(result.exception, FedeRankError)
    assert result.stdout == ""
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "letter.txt"]


def test_a_demo_that_breaks_off_leaves_the_old_report_and_nothing_else(tmp_path, monkeypatch):
    place = tmp_path / "out"
    place.mkdir()
    (place / MARK).write_text("")
    (place / "report.html").write_text("old")

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("federank.cli.demo._report_story", stopped)
    assert run_demo(place).exit_code != 0
    assert (place / "report.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
