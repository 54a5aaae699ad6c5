"""A package that is installed beside federank brings methods, a metric, an attack and more: everything finds them."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.studies.worlds import small_data

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A folder on Python's path with the package as an installer leaves it: its modules, and its entry points."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE / "federank_recent", site / "federank_recent")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    about = site / f"federank_recent-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in points.items())
        for group, points in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))
    return site


@pytest.fixture
def python(beside, tmp_path):
    """Python with that package, asked as a person asks it."""
    path = os.pathsep.join([str(beside), *sys.path])

    def ask(*words):
        command = [sys.executable, *map(str, words)]
        asked = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=False
        )
        assert asked.returncode == 0, asked.stderr
        return asked.stdout

    return ask


@pytest.mark.slow
def test_the_command_line_the_library_and_studies_find_them(python, tmp_path):
    data = small_data(tmp_path)
    assert "recent" in python("-m", "federank", "train", "--help")
    assert "--days" in python("-m", "federank", "train", "recent", "--help")
    python("-m", "federank", "train", "recent", "--data", data, "--days", 2, "--out", "runs/recent")
    found = json.loads(python("-m", "federank", "evaluate", "runs/recent", "--at", 5, "--json"))
    assert 0 <= found["first_place@5"] <= found["hit_rate@5"]
    assert "first place" in python("-m", "federank", "evaluate", "runs/recent", "--at", 5)
    program = (
        "import federank as fr; print(fr.load_model('runs/recent'), len(fr.load_model('runs/recent').recommend(1)))"
    )
    assert python("-c", program) == "Recent(days=2.0) 10\n"
    (tmp_path / "mine.toml").write_text(
        f'data = ["{data}"]\nat = [5]\nmetrics = ["first_place@5", "ndcg@5"]\nchoose = {{ metric = "first_place@5" }}\n'
        'model = [{ method = "recent", grid = { days = [1.0, 30.0] } }]\n'
    )
    told = python("-m", "federank", "study", "run", "mine.toml", "--workers", 1, "--quiet", "--out", "results")
    assert "3 runs, 3 done" in told


PROGRAM = """
import federank as fr
data = fr.load("shop.orders")
split = fr.split_random(data, 0.2)
model = fr.fit("ballots", split, rounds=2, sharing="three_at_most")
assert model.communication()["up"]["rows"] <= 2 * 3 * data.n_users
model.save("runs/few", split)
assert fr.load_model("runs/few").recommend(1) == model.recommend(1)
found = fr.audit_model(fr.load_model("runs/few")).findings[-1]
print(found.attacks["named_items"]["precision"], found.disclosed_share < 0.5)
"""


@pytest.mark.slow
def test_a_federated_method_an_attack_a_policy_and_a_reader_from_outside(python, tmp_path):
    orders = [f"{user}: {' '.join(str(user * k % 23) for k in range(1, 12))}" for user in range(1, 20)]
    (tmp_path / "shop.orders").write_text("\n".join(orders))
    assert python("-c", PROGRAM) == "1.0 True\n"
    assert "--patience-of-votes" in python("-m", "federank", "train", "ballots", "--help")
    trained = python(
        *("-m", "federank", "train", "ballots", "--data", "shop.orders", "--split", "random", "--rounds", 3),
        *("--pi", 0.5, "--out", "runs/ballots", "--quiet"),
    )
    assert "57 downloads and 57" in trained
    audited = python("-m", "federank", "audit", "runs/ballots")
    assert "named_items" in audited
    again = ("ballots", "--data", "shop.orders", "--split", "random", "--rounds", 2, "--sees", "sums", "--json")
    assert json.loads(python("-m", "federank", "audit", *again))["sees"] == "sums"
    (tmp_path / "mine.toml").write_text(
        'data = ["shop.orders"]\nat = [5]\nmodel = [{ method = "ballots", settings = { rounds = 2 }, seeds = [1], '
        'audit = { sees = ["updates"] } }]\n[split]\nway = "random"\n'
    )
    told = python("-m", "federank", "study", "run", "mine.toml", "--workers", 1, "--quiet", "--out", "results")
    assert "0 failed" in told
