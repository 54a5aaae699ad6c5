"""The scorecard of the papers' numbers is what the reports say, and each of its tests is there."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_site"))

import figures  # noqa: E402
import scorecard  # noqa: E402

RESULTS = ROOT / "docs" / "results" / "README.md"


@pytest.mark.parametrize("name", scorecard.SHOWN_IN)
def test_tables_are_current(name):
    assert scorecard.current(name) == (ROOT / name).read_text()


@pytest.mark.parametrize("name", figures.DRAWN)
def test_figures_are_current(name):
    assert figures.DRAWN[name]() == (figures.FIGURES / name).read_text()


def test_every_row_has_one_of_six_verdicts():
    rows = scorecard.verdict_rows()
    assert {paper for paper, _, _ in rows} == set(scorecard.PAPERS)
    for paper, what, verdict in rows:
        assert verdict.startswith(scorecard.VERDICTS), (paper, what, verdict)


def test_named_tests_are_there():
    named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", RESULTS.read_text())
    assert len(named) > 20
    for path, function in named:
        assert (ROOT / path).exists(), path
        assert not function or f"def {function}(" in (ROOT / path).read_text(), function


def test_numbers_are_classified_by_digits_and_by_the_list_of_differences(tmp_path, monkeypatch):
    report = tmp_path / "small.md"
    report.write_text(
        "## Table 2: north\n\n"
        "| Method | P@10 ours | P@10 paper | P@10 diff. |\n|---|---:|---:|---:|\n"
        "| A | **0.1234 ± 0.0010** | 0.123 | +0.3 % |\n| B | 0.110 | 0.105 | +4.8 % |\n"
        "| C, best pi = 0.3 | 0.20 | 0.10 | **+100.0 %** |\n| D | 0.20 | 0.10 | **+100.0 %** |\n\n"
        "## Differences over 10 % from the paper\n\n"
        "| Data | Method | Metric | Ours | Paper | Difference | Why |\n|---|---|---|---:|---:|---:|---|\n"
        "| north | C, best pi = 0.3 | P@10 | 0.20 | 0.10 | +100.0 % | Other rates. Shown by D. |\n"
        "| north | D | P@10 | 0.20 | 0.10 | +100.0 % | unexplained |\n"
    )
    monkeypatch.setattr(scorecard, "RESULTS", tmp_path)
    verdicts = []
    for label in ("A", "B", "C, best pi", "D"):
        row = scorecard.row_of("small.md", "north", label, "P@10")
        verdicts.append(scorecard.verdict_of("small.md", "north", row, "P@10"))
    assert verdicts == ["same digits", "within 10 %", "explained", "unexplained"]
    assert scorecard.row_of("small.md", "south", "A", "P@10") is None
