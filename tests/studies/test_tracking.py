"""Runs that trackers and records receive: read back from a folder, once each, with their curves."""

import json
import struct
from dataclasses import replace

import pytest
from tests.cli.program import program as run
from tests.studies.worlds import small_data

from federank.errors import SettingError
from federank.studies.results import (
    Point,
    RunRecord,
    Traffic,
    read_record,
    record_as_json,
)
from federank.studies.tracking import open_tracker, tracked_record

LINE = RunRecord(
    id="4f2a",
    group="FPL",
    data="city",
    model="fpl",
    settings={"pi": 0.3},
    chosen={"learning_rate": 0.05},
    seed=1,
    metrics={"ndcg@10": 0.25, "bias@10/Food & drink": None},
    curve=(Point(1, {"precision@10": 0.1}), Point(2, {"precision@10": 0.2})),
    epoch=2,
    seconds=1.5,
)
FAILED = RunRecord(id="77b0", group="FPL", data="city", model="fpl", seed=2, status="failed", reason="It diverged.")


@pytest.fixture(scope="module")
def mlflow():
    return pytest.importorskip(
        "mlflow", reason="runs are told to MLflow by its own package: install federank[tracking]"
    )


@pytest.mark.slow  # MLflow takes seconds to wake up
def test_mlflow_gets_a_run_once(mlflow, tmp_path):
    for _ in range(2):
        tracker = open_tracker(f"mlflow:{tmp_path / 'mlruns'}", "Small: a study")
        for line in (LINE, FAILED):
            tracker.log(tracked_record(line))
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("Small: a study")
    kept = {one.data.tags["federank.run"]: one for one in client.search_runs([experiment.experiment_id])}
    assert set(kept) == {"4f2a", "77b0"}
    good, bad = kept["4f2a"], kept["77b0"]
    assert good.data.params == {"method": "fpl", "data": "city", "seed": "1", "pi": "0.3"}
    assert (good.data.metrics["ndcg_at_10"], good.info.status) == (0.25, "FINISHED")
    curve = client.get_metric_history(good.info.run_id, "precision_at_10")
    assert [(point.step, point.value) for point in curve] == [(1, 0.1), (2, 0.2)]
    assert (bad.info.status, bad.data.tags["federank.reason"]) == ("FAILED", "It diverged.")


@pytest.mark.slow
def test_a_trained_model_and_a_study_are_reported_to_a_folder_of_mlflow(mlflow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = small_data(tmp_path)
    train = ["train", "itemknn", "--data", source, "--out", "runs/one", "--quiet", "--track", "mlflow:mlruns"]
    assert run(*train).returncode == 0
    (tmp_path / "own.toml").write_text(
        f'title = "Own"\nseeds = [1]\n[[data]]\nname = "visits"\nsource = "{source}"\n[[model]]\nmethod = "popular"\n'
    )
    study = ["study", "run", "own.toml", "--workers", "1", "--quiet"]
    assert run(*study).returncode == 0
    assert run(*study, "--track", "mlflow:mlruns").returncode == 0  # finished before anyone asked to be told
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    [model], [popular] = (
        client.search_runs([client.get_experiment_by_name(name).experiment_id]) for name in ("federank train", "Own")
    )
    assert model.data.params["method"] == "itemknn"
    assert 0 <= model.data.metrics["ndcg_at_10"] <= 1
    assert popular.data.metrics["users"] > 0


def events_in(folder):
    """The payloads of TensorBoard's records: length, check, bytes, check."""
    [path] = folder.glob("**/events.*")
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        found.append(content[at + 12 : at + 12 + length])
        at += 12 + length + 4
    return found


def test_tensorboard_gets_a_run_once(tmp_path):
    proto = pytest.importorskip("tensorboardX.proto.event_pb2", reason="install federank[tracking]")
    for _ in range(2):
        open_tracker(f"tensorboard:{tmp_path}", "Small: a study").log(tracked_record(LINE))
    values = [
        (one.tag, event.step, one.simple_value)
        for event in map(proto.Event.FromString, events_in(tmp_path))
        for one in event.summary.value
    ]
    scalars = {(tag, step): value for tag, step, value in values}
    assert scalars["precision_at_10", 1] == pytest.approx(0.1)
    assert scalars["ndcg_at_10", 2] == 0.25


@pytest.mark.parametrize(
    ("where", "sentence"),
    [("mlfow", "Did you mean 'mlflow'?"), ("wandb:x", "It can be mlflow or tensorboard, with a place after a colon")],
)
def test_an_unknown_tracker_is_an_error(where, sentence):
    with pytest.raises(SettingError, match=sentence.replace("?", r"\?")):
        open_tracker(where, "Small")


def test_folds_are_not_tracked(tmp_path):
    asked = ["train", "popular", "--data", small_data(tmp_path), "--folds", "2", "--out", str(tmp_path / "f")]
    answer = run(*asked, "--track", "tensorboard")
    assert answer.returncode == 2
    assert "--track" in answer.stderr


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


def test_missing_keys_have_their_defaults():
    assert read_record({"id": "a", "bytes": None}) == RunRecord(id="a")


def test_an_unknown_key_is_refused():
    with pytest.raises(TypeError):
        read_record({"id": "a", "unknown": 1})
