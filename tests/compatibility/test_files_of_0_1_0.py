"""What version 0.1.0 wrote still opens, means the same, and goes on (0.1.0/README.md says how it was written)."""

import json
import shutil
import sqlite3
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load as load_tensors
from safetensors.numpy import load_file
from tests.service.device.worlds import served

import federank as fr
from federank.cli import federank
from federank.data.stored.split_folder import read_split_folder
from federank.evaluation.prediction import prediction_errors
from federank.recommenders.stored.recommendation_files import read_recommendations

FILES = Path(__file__).parent / "0.1.0"
MEASURED = json.loads((FILES / "measured.json").read_text())
PREDICTION = ("mae", "rmse", "ratings", "unrated_items", "unknown_users")


def told(*words):
    result = CliRunner().invoke(federank, [str(word) for word in words])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "vae" else ()) for name in sorted(MEASURED)]
)
def test_a_model_is_measured_as_the_version_that_wrote_it_measured_it(name):
    if name == "vae":
        pytest.importorskip("jax", reason="the extra `vae` is needed to score with a stored Mult-VAE")
    model, split = fr.load_model(FILES / "models" / name), fr.load_split(FILES / "models" / name)
    found = dict(fr.evaluate(model, split, at=5).means)
    if "mae" in MEASURED[name]:
        found |= {key: getattr(prediction_errors(model, split.test), key) for key in PREDICTION}
    assert found == pytest.approx(MEASURED[name], rel=1e-6)


def test_every_method_that_there_was_is_among_the_files():
    kinds = {json.loads(path.read_text())["kind"] for path in FILES.glob("models/*/model.json")}
    assert kinds == {"fpl", "bpr", "pmf", "svdpp", "popular", "random", "userknn", "itemknn", "vae", "fcf"}


def test_peoples_policies_come_back_with_their_model():
    model = fr.load_model(FILES / "models" / "fpl-policies")
    names = [policy.sharing for policy in model.choices.kinds]
    assert {"as-published", "sticky", "deniable"} == set(names)
    assert model.choices.kinds[model.choices.of_user[3]].never_items == {1, 3}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("fpl", ("--factors", "3", "--epochs", "4", "--pi", "0.5")),
        ("pmf", ("--factors", "3", "--iterations", "4")),
    ],
)
def test_a_stopped_run_goes_on_to_the_bits_of_one_that_was_not_stopped(method, settings, tmp_path):
    command = ("train", method, "--data", FILES / "visits.csv", *settings, "--quiet", "--out")
    shutil.copy(FILES / "checkpoints" / method, tmp_path / "resumed.checkpoint")
    told(*command, tmp_path / "resumed", "--resume")
    told(*command, tmp_path / "whole")
    for part in ("model.safetensors", "devices.safetensors"):
        resumed, whole = load_file(tmp_path / "resumed" / part), load_file(tmp_path / "whole" / part)
        assert resumed.keys() == whole.keys()
        for table in whole:
            np.testing.assert_array_equal(resumed[table], whole[table])


def test_recommendations_are_read_and_are_still_what_the_model_recommends():
    written = read_recommendations(FILES / "recommended.tsv")
    now = fr.load_model(FILES / "models" / "fpl").recommend(written.users, n=3)
    assert written.table()["user", "item"].rows() == now.table()["user", "item"].rows()


def test_a_split_has_its_parts():
    split = read_split_folder(FILES / "split")
    assert (len(split.train), len(split.validation), len(split.test)) == (112, 16, 32)


@pytest.mark.slow
def test_a_study_has_nothing_left_to_do_and_another_seed_adds_to_it(tmp_path, monkeypatch):
    shutil.copytree(FILES / "results", tmp_path / "results")
    for name in ("study.toml", "visits.csv"):
        shutil.copy(FILES / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    before = Path("results/runs.jsonl").read_bytes()
    command = ("study", "run", "study.toml", "--out", "results", "--workers", "1", "--quiet")
    assert "9 runs, 9 done, 0 failed, 0 under way, 0 missing" in told(*command)
    assert Path("results/runs.jsonl").read_bytes() == before
    assert "11 runs, 11 done, 0 failed" in told(*command, "--seeds", "1,2,3")
    assert Path("results/runs.jsonl").read_bytes().startswith(before)


@pytest.mark.slow
def test_results_are_reported(tmp_path):
    shutil.copytree(FILES / "results", tmp_path / "results")
    told("study", "report", tmp_path / "results", "--markdown", tmp_path / "report.md", "--csv", tmp_path / "csv")
    report = (tmp_path / "report.md").read_text()
    assert "Accuracy" in report
    assert "| FPL, pi = 0 | **0.13750 ± 0.03750** |" in report


@pytest.fixture
def federation(tmp_path):
    """The store and its devices, as their owners would take them along."""
    shutil.copy(FILES / "federation" / "store.sqlite", tmp_path / "federation.sqlite")
    for name in ("ada", "ben"):
        shutil.copy(FILES / "federation" / f"{name}.sqlite", tmp_path)
        (tmp_path / f"{name}.sqlite").chmod(0o600)
    return tmp_path


def model_of(address, version):
    """The model as devices get it, once it has this version."""
    for _ in range(1200):
        if httpx.get(f"{address}/api/v1/status").json()["version"] == version:
            return load_tensors(httpx.get(f"{address}/api/v1/model").content)
        time.sleep(0.05)
    raise AssertionError(f"version {version} has not come")


@pytest.mark.slow
def test_a_federation_folds_the_round_that_was_open_and_plays_another_with_its_devices(federation):
    with served(federation) as address:
        for name in ("ada", "ben"):
            with sqlite3.connect(federation / f"{name}.sqlite") as sql:  # the port of that day is not free for ever
                sql.execute("UPDATE identity SET server = ?", (address,))
            sql.close()
        told("device", "--state", federation / "ben.sqlite", "--rounds", "0")
        folded = model_of(address, 3)
        for name, table in load_file(FILES / "federation" / "version-3.safetensors").items():
            np.testing.assert_array_equal(folded[name], table)
        for name in ("ada", "ben"):
            assert "1 Update was sent and stored" in told(
                "device", "--state", federation / f"{name}.sqlite", "--rounds", "1"
            )
        played = model_of(address, 4)
        assert not np.array_equal(played["vectors"], folded["vectors"])


def test_a_device_shows_its_ledger_policy_and_recommendations_without_its_server(federation):
    state = ("--state", federation / "ben.sqlite")
    assert told("device", "ledger", *state, "--out", federation / "ledger.csv")
    assert (federation / "ledger.csv").read_text() == (FILES / "federation" / "ben-ledger.csv").read_text()
    assert "deniable" in told("device", "policy", *state)
    assert len(json.loads(told("device", "recommend", *state, "-n", "4", "--json"))) == 4
