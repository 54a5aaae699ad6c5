"""`federank bench`: benchmarks, published figures, one method on one of them."""

import json

import numpy as np
import pytest
from tests.commands import run

from federank.cli.bench import benchmark
from federank.data.datasets import data_folder, find_parts
from federank.data.loading import load
from federank.data.splits import Division, divide, split_given
from federank.errors import BadFile, DataError, SettingError
from federank.evaluation.evaluate import evaluate
from federank.methods.registry import recommender_class
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


def add(folder, part, line):
    with (folder / "gowalla" / f"{part}.txt").open("a") as file:
        file.write(line + "\n")


@pytest.mark.parametrize(("part", "line"), [("train", "99 1 2 cafe"), ("test", "3 1 2.5 7"), ("train", "x 1 2")])
def test_a_line_with_a_word_is_refused_with_its_number(gowalla, part, line):
    add(gowalla, part, line)
    with pytest.raises(BadFile, match=rf"Line 41 .*{part}\.txt"):
        split_given("gowalla")


def test_repeated_pairs_are_counted_once(gowalla):
    pairs = len(split_given("gowalla").train)
    add(gowalla, "train", "99 1 1 2 1")
    split = split_given("gowalla")
    assert (len(split.train), split.train.repeats_left_out) == (pairs + 2, 2)


def test_users_without_training_data_and_items_only_in_the_test_part_count_as_misses(gowalla):
    add(gowalla, "test", "99 1 2")
    add(gowalla, "test", "98 500")
    add(gowalla, "train", "98 1 2")
    split = split_given("gowalla")
    found = evaluate(recommender_class("itemknn")().fit(split.train), split, at=20)
    rows = {row["user"]: row for row in found.per_user.iter_rows(named=True)}
    assert found.means["users"] == 42
    assert (rows[99]["recommended"], rows[99]["recall@20"]) == (0, 0)
    assert (rows[98]["recommended"] > 0, rows[98]["recall@20"]) == (True, 0)


def test_a_missing_part_is_named(gowalla):
    (data_folder() / "gowalla" / "test.txt").unlink()
    with pytest.raises(DataError, match=r"test\.txt"):
        find_parts("gowalla")
    with pytest.raises(DataError):
        split_given("city")
