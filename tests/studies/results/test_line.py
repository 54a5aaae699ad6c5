"""Lines of runs.jsonl: what is written is read back, and what other versions wrote can be read."""

import json
from dataclasses import replace

from tests.studies.small_results import line as told

from federank.studies.results.line import (
    Label,
    Line,
    Point,
    Traffic,
    label_as_json,
    line_as_json,
    read_label,
    read_line,
)

WHOLE = Line(
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
    return read_line(json.loads(json.dumps(line_as_json(line))))


def test_a_line_survives_its_file():
    assert through_json(WHOLE) == WHOLE
    failed = replace(WHOLE, status="failed", reason="It diverged.", bytes=None, extra={}, curve=(), metrics={})
    assert through_json(failed) == failed


def test_a_line_has_the_keys_it_always_had():
    written = line_as_json(WHOLE)
    assert written["curve"] == [{"epoch": 1, "precision@10": 0.1}, {"epoch": 2, "precision@10": 0.25}]
    assert written["bytes"] == {"up": 3, "down": 5}
    assert written["at"] == [5, 10]
    assert written["extra"] == {"cce": 7.0}
    assert "extra" not in line_as_json(replace(WHOLE, extra={}))
    assert told("Popular").keys() <= written.keys()


def test_what_another_version_leaves_out_or_adds_does_no_harm():
    read = read_line({"id": "a", "swept": None, "curve": None, "bytes": None, "of_tomorrow": 1})
    assert read == Line(id="a")
    assert read.done


def test_a_label_is_put_on_a_line_and_survives_its_file():
    label = Label("a", "FPL, best pi", "city", {"pi": 0.5}, {}, "validation", best=True)
    assert read_label(json.loads(json.dumps(label_as_json(label)))) == label
    labelled = label.put_on(WHOLE)
    assert (labelled.group, labelled.best, labelled.metrics) == ("FPL, best pi", True, WHOLE.metrics)
    assert "best" not in label_as_json(label._replace(best=False))
