"""`federank bench`: benchmarks, published figures, one method on one of them."""

import json

import numpy as np
import pytest
from tests.commands import run

from federank.cli.bench import benchmark
from federank.data.datasets import data_folder, find_parts
from federank.data.loading import load
from federank.data.splits import Division, divide, split_given
from federank.errors import DataError, SettingError
from federank.studies.spec import as_study


@pytest.fixture
def gowalla(tmp_path, monkeypatch):
    """Adjacency lists of two tastes, installed as Gowalla."""
    rng = np.random.default_rng(1)
    (tmp_path / "gowalla").mkdir()
    parts = {"train": [], "test": []}
    for user in range(40):
        items = 60 * (user % 2) + rng.permutation(60)[: 20 + user % 5]
        parts["train"].append(" ".join(map(str, (user, *items[:-3]))))
        parts["test"].append(" ".join(map(str, (user, *items[-3:]))))
    for part, lines in parts.items():
        (tmp_path / "gowalla" / f"{part}.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path))
    return tmp_path


def test_the_list_has_published_figures_with_their_source():
    content = json.loads(run("bench", "list", "--json").output)
    published = content["gowalla"]["published"]
    assert {"group": "RP3beta", "recall@20": 0.1829} in [
        {"group": one["group"], "recall@20": one["metrics"]["recall@20"]} for one in published
    ]
    assert all(one["source"] for one in published)
    assert content["gowalla"]["split"]["gowalla"]["way"] == "given"


def test_a_method_runs_beside_the_published_figure(gowalla, tmp_path):
    result = run("bench", "run", "gowalla", "--method", "rp3beta", "--out", str(tmp_path / "out"), "--quiet")
    assert result.exit_code == 0
    assert "0.1829" in result.output or ".18290" in result.output


def test_a_method_without_a_row_runs_with_its_defaults():
    study = as_study(benchmark("gowalla", "random"), "gowalla-random")
    assert [(model.method, model.grid) for model in study.models] == [("random", {})]


@pytest.mark.parametrize(
    ("name", "method", "data"), [("x", "ease", None), ("gowalla", "x", None), ("gowalla", "ease", "x")]
)
def test_unknown_names_are_refused(name, method, data):
    with pytest.raises(SettingError):
        benchmark(name, method, data)


def test_a_published_split_is_read_by_its_name(gowalla):
    split = split_given("gowalla")
    assert len(split.test) == 120
    assert len(load("gowalla")) == len(split.train) + len(split.test)
    [tuned] = divide(load("gowalla"), Division(way="given", validation=0.1))
    assert len(tuned.validation) + len(tuned.train) == len(split.train)
    assert np.array_equal(tuned.test.items, split.test.items)


def test_a_missing_part_is_named(gowalla):
    (data_folder() / "gowalla" / "test.txt").unlink()
    with pytest.raises(DataError, match=r"test\.txt"):
        find_parts("gowalla")
    with pytest.raises(DataError):
        split_given("city")
