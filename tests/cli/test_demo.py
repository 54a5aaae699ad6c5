"""`federank demo`: the first thing that a new user sees."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from federank.cli import federank


def story(*words: str) -> str:
    result = CliRunner().invoke(federank, ["demo", *words])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def test_the_demo_says_first_that_its_city_is_synthetic():
    assert "synthetic" in story().splitlines()[0]


def test_the_demo_shows_the_city_in_numbers_and_splits_it():
    told = story()
    for number in ("1,000", "1,500", "40,000"):
        assert number in told
    parts = {line.split()[0]: int(line.split()[1].replace(",", "")) for line in told.splitlines() if _is_part(line)}
    assert list(parts) == ["train", "test"]
    assert parts["train"] > parts["test"] > 0
    assert sum(parts.values()) <= 40_000


def test_in_the_demo_a_federation_learns_more_than_what_is_popular():
    told = {line.strip()[:26].strip(): line.split() for line in story().splitlines()}
    precision = {name: float(words[-3]) for name, words in told.items() if name.startswith(("FPL", "Most popular"))}
    assert precision["FPL, 30 % of the time"] > 1.5 * precision["Most popular (centralised)"]
    assert precision["FPL, never"] < precision["FPL, 10 % of the time"]


@pytest.mark.slow
def test_the_demo_tells_the_same_story_twice_and_another_with_another_seed():
    assert story() == story()
    assert story("--seed", "2") != story()


def test_the_demo_fits_a_terminal_of_80_columns():
    assert max(map(len, story().splitlines())) <= 80


@pytest.mark.slow
def test_the_demo_runs_on_its_own_and_writes_nothing(tmp_path):
    command = [sys.executable, "-m", "federank", "demo"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert list(Path(tmp_path).iterdir()) == []


def _is_part(line: str) -> bool:
    return line.split()[:1] in (["train"], ["test"])
