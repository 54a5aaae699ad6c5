import json
import shutil

import polars as pl
import pytest

from federank.errors import BadFile
from federank.studies.results import Label, Results, RunRecord


def line(identity, **info):
    return RunRecord(id=identity, group="G", data="d", **info)


def parquet(tmp_path):
    pl.DataFrame({"user": [1, 2], "precision@10": [0.1, 0.2]}).write_parquet(tmp_path / "x.parquet")
    return (tmp_path / "x.parquet").read_bytes()


def test_what_is_appended_is_read_back(tmp_path):
    results = Results.create(tmp_path / "r")
    results.append(line("a", metrics={"precision@10": 0.5}), parquet(tmp_path))
    again = Results.open(tmp_path / "r")
    assert again.records() == [line("a", metrics={"precision@10": 0.5})]
    assert again.users("a")["precision@10"].to_list() == [0.1, 0.2]
    with pytest.raises(BadFile):
        again.users("b")


def test_a_torn_last_line_is_passed_over_and_cut_off_by_the_next_writer(tmp_path):
    results = Results.create(tmp_path / "r")
    results.append(line("a"))
    with (tmp_path / "r" / "runs.jsonl").open("ab") as file:
        file.write(b'{"id": "torn", "group"')
    again = Results.open(tmp_path / "r")
    assert [one.id for one in again.records()] == ["a"]
    again.append(line("b"))
    assert [one.id for one in Results.open(tmp_path / "r").records()] == ["a", "b"]
    assert [one.id for one in again.records()] == ["a", "b"]
    for text in (tmp_path / "r" / "runs.jsonl").read_text().splitlines():
        json.loads(text)


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    results = Results.create(tmp_path / "r")
    results.append(line("a"))
    with (tmp_path / "r" / "runs.jsonl").open("ab") as file:
        file.write(b"garbage\n")
    with pytest.raises(BadFile, match="2"):
        Results.open(tmp_path / "r").records()


@pytest.mark.parametrize("content", ["{broken", "[]", '{"rows": []}', '{"count": 1, "rows": ["a"]}'])
def test_a_damaged_list_of_current_runs_is_named(tmp_path, content):
    Results.create(tmp_path / "r").append(line("a"))
    (tmp_path / "r" / "current.json").write_text(content)
    for ask in (Results.records, Results.count):
        with pytest.raises(BadFile, match=r"current\.json"):
            ask(Results.open(tmp_path / "r"))


def test_a_copy_without_locks_has_no_run_under_way(tmp_path):
    Results.create(tmp_path / "r").append(line("a"))
    shutil.rmtree(tmp_path / "r" / "claims")
    assert Results.open(tmp_path / "r").under_way() == []


def test_only_the_current_runs_are_reported_under_their_current_labels(tmp_path):
    results = Results.create(tmp_path / "r")
    for identity in "abc":
        results.append(line(identity))
    labels = [
        Label(identity, group, "d", {}, {}, None) for identity, group in (("c", "New"), ("a", "G"), ("c", "Best"))
    ]
    results.keep_current(labels, 3)
    assert [(one.id, one.group) for one in results.records()] == [("c", "New"), ("a", "G"), ("c", "Best")]
    assert len(results.records(every=True)) == 3


def test_of_a_run_that_was_done_twice_the_last_line_counts(tmp_path):
    results = Results.create(tmp_path / "r")
    results.append(line("a", status="failed"))
    results.append(line("a"))
    assert [one.status for one in results.records()] == ["done"]


def test_results_of_another_version_are_refused(tmp_path):
    Results.create(tmp_path / "r")
    (tmp_path / "r" / "VERSION").write_text("99\n")
    for opened in (Results.open, Results.create):
        with pytest.raises(BadFile, match=r"'99'.*1"):
            opened(tmp_path / "r")


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(BadFile, match="something else"):
        Results.create(tmp_path)
    with pytest.raises(BadFile):
        Results.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_folder_that_another_process_is_just_making_is_no_obstacle(tmp_path):
    for name in ("users", "claims"):
        (tmp_path / "r" / name).mkdir(parents=True)
    (tmp_path / "r" / ".VERSION.123").write_text("1\n")
    Results.create(tmp_path / "r")
    assert Results.open(tmp_path / "r").records() == []


def test_a_full_disk_is_an_error(tmp_path):
    results = Results.create(tmp_path / "r")
    (tmp_path / "r" / "runs.jsonl").symlink_to("/dev/full")
    with pytest.raises(BadFile):
        results.append(line("a"))


def test_a_run_can_be_claimed_once_until_it_is_let_go(tmp_path):
    one, other = Results.create(tmp_path / "r"), Results.create(tmp_path / "r")
    with one.claim("a"), other.claim("b"):
        assert other.claim("a") is None
        assert one.claim("b") is None
        assert one.under_way() == ["a", "b"]
    with other.claim("a"):
        assert one.under_way() == ["a"]
    assert one.under_way() == []
