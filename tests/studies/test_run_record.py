"""Lines of runs.jsonl: what is written is read back, and an unknown key is refused."""

import json
from dataclasses import replace

import pytest
from tests.studies.small_results import line as told

from federank.studies.results import (
    Label,
    Point,
    RunRecord,
    Traffic,
    read_record,
    record_as_json,
)

WHOLE = RunRecord(
    id="a",
    group="FPL",
    data="city",
    model="fpl",
    settings={"pi": 0.5},
    swept={"pi": 0.5},
    seed=1,
    at=(5, 10),
    metrics={"precision@10": 0.25, "bias@10/Food": None},
    curve=(Point(1, {"precision@10": 0.1}), Point(2, {"precision@10": 0.25})),
    bytes=Traffic(up=3, down=5),
    versions={"federank": "0.1.0"},
    extra={"cce": 7.0},
)


def through_json(line):
    return read_record(json.loads(json.dumps(record_as_json(line))))


def test_a_line_survives_its_file():
    assert through_json(WHOLE) == WHOLE
    failed = replace(WHOLE, status="failed", reason="It diverged.", bytes=None, extra={}, curve=(), metrics={})
    assert through_json(failed) == failed


def test_a_line_has_the_keys_it_always_had():
    written = record_as_json(WHOLE)
    assert written["curve"] == [{"epoch": 1, "precision@10": 0.1}, {"epoch": 2, "precision@10": 0.25}]
    assert written["bytes"] == {"up": 3, "down": 5}
    assert written["at"] == [5, 10]
    assert written["extra"] == {"cce": 7.0}
    assert "extra" not in record_as_json(replace(WHOLE, extra={}))
    assert told("Popular").keys() <= written.keys()


def test_missing_keys_have_their_defaults():
    assert read_record({"id": "a", "bytes": None}) == RunRecord(id="a")


def test_an_unknown_key_is_refused():
    with pytest.raises(TypeError):
        read_record({"id": "a", "unknown": 1})


def test_a_label_is_put_on_a_line_and_survives_its_file():
    label = Label("a", "FPL, best pi", "city", {"pi": 0.5}, {}, "validation", best=True)
    assert Label(**json.loads(json.dumps(label._asdict()))) == label
    labels_of = label.applied_to(WHOLE)
    assert (labels_of.group, labels_of.best, labels_of.metrics) == ("FPL, best pi", True, WHOLE.metrics)
