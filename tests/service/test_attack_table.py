"""The table of attacks in the docs names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs/sums.md").read_text().partition("## Attacks\n")[2]


def test_every_attack_has_its_six_cells_and_names_tests_that_exist():
    rows = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    assert {line.count("|") for line in rows} == {7}
    files = list(TESTS.rglob("test_*.py"))
    names, code = {path.name for path in files}, "".join(path.read_text() for path in files)
    named = [name for line in rows for name in re.findall(r"`(test_\w+(?:\.py)?)`", line)]
    missing = [name for name in named if name not in names and f"def {name}(" not in code]
    assert not missing
    for line in rows:
        assert "`test_" in line or "**limit**" in line, line
