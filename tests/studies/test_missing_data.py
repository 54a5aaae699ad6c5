"""Sets that cannot be fetched: a user who has the file gets the papers' study on it. The data here is synthetic."""

import numpy as np
import pytest
from tests.commands import refused, told

from federank.studies.documents import packaged
from federank.studies.results import Results


def check_ins():
    """Lines in the format of the country files."""
    rng = np.random.default_rng(1)
    lines = ["user_id\tvenue_id\ttype\tutc"]
    for user in range(30):
        for day, venue in enumerate(rng.choice(60, 25, replace=False)):
            lines.append(f"{user}\tv{venue}\tBar\tTue Apr 03 18:{day:02}:06 +0000 2012")
    return lines


def ratings():
    """Lines in LibraryThing's format, without times."""
    rng = np.random.default_rng(1)
    rows = [(user, book) for user in range(30) for book in rng.choice(60, 25, replace=False)]
    return ["user_id\titem_id\trating", *(f"{user}\t{book}\t{1 + (user + book) % 10}" for user, book in rows)]


CASES = [
    ("foursquare-brazil", "fpl-table2", check_ins, ("Top-Pop", "sFPL, BPR-MF's rate")),
    ("foursquare-canada", "fpl-table2", check_ins, ("Top-Pop",)),
    ("librarything", "federank-table2", ratings, ("Most Popular", "FedeRank as printed, T = 1, rate .05")),
]


@pytest.mark.parametrize(("name", "study", "lines", "groups"), CASES, ids=[case[0] for case in CASES])
def test_papers_study_runs_on_a_file_in_that_format(name, study, lines, groups, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path / "data"))
    (tmp_path / "mine.tsv").write_text("\n".join(lines()))
    _, *steps = str(refused("data", "get", name)).splitlines()
    assert len(steps) == 3
    assert f"federank data get {name} --from FILE" in steps[1]
    assert f"federank study run {study}" in steps[2]

    told("data", "get", name, "--from", tmp_path / "mine.tsv")
    left_out = {model["group"] for model in packaged()[study]["model"]} - set(groups)
    skipped = [word for group in sorted(left_out) for word in ("--set", f'model."{group}".skip=true')]
    small = [word for group in groups[1:] for word in ("--set", f'model."{group}".sweep.pi=[0.5,1.0]')]
    options = [*skipped, *small, "--set", "choose.epochs=1", "--seeds", "1", "--workers", "1", "--quiet"]
    told("study", "run", study, *options, "--out", tmp_path / "results")
    lines = Results.open(tmp_path / "results").records()
    assert {line.data for line in lines} == {name}
    assert {line.group for line in lines if line.done and line.task == "test"} >= set(groups)
