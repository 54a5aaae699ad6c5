"""The command line with core dependencies only: what needs an extra says which, and everything else works."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.cli.program import program

from federank.cli import COMMANDS
from federank.errors import MissingExtra
from federank.extras import PACKAGES, is_installed, need

ROOT = Path(__file__).parents[2]
SERVICE = {
    "serve": "serve --plain --data table.csv --port 0",
    "serve (help)": "serve --help",
    "helper": "helper --port 0",
    "client (simulate)": "client simulate --server http://127.0.0.1:9 --rounds 1",
    "client": "client --server http://127.0.0.1:9 --profile me.csv",
    "client (ledger)": "client ledger",
    "audit (verify)": "audit verify http://127.0.0.1:9 --helper http://127.0.0.1:9",
    "admin": "admin versions",
    "demo": "demo --serve --port 0",
}
OTHERS = {
    "train (vae)": ("train vae --data table.csv --out runs/vae --quiet", "vae"),
    "train (cluster)": ("train fpl --data table.csv --engine cluster --out runs/cluster --quiet", "cluster"),
    "train (noise)": (
        "train fpl --data table.csv --epochs 1 --clip 1 --noise 20 --noise-on sums --clients-per-round all "
        "--out runs/noise --quiet",
        "privacy",
    ),
    "study (cluster)": ("study run study.toml --cluster local --out results/cluster", "cluster"),
    "study (mlflow)": ("study run study.toml --track mlflow --out results/mlflow", "tracking"),
    "study (tensorboard)": ("study run study.toml --track tensorboard --out results/board", "tracking"),
}
CORE = {
    "data": "data stats table.csv",
    "data (split)": "data split table.csv --temporal 0.2 --out parts",
    "train": "train fpl --data table.csv --epochs 2 --out runs/fpl --quiet",
    "train (frugal)": "train frugal --data table.csv --min-support 1 --out runs/frugal --quiet",
    "train (epsilon)": "train frugal --data table.csv --min-support 1 --epsilon 8 --out runs/epsilon --quiet",
    "train (pmf)": "train pmf --data table.csv --iterations 2 --out runs/pmf --quiet",
    "recommend": "recommend runs/fpl --user 1",
    "recommend (rating)": "recommend runs/pmf --user 1 --item 3",
    "evaluate": "evaluate runs/frugal",
    "evaluate (card)": "evaluate runs/frugal --card card.md",
    "compare": "compare runs/frugal runs/fpl",
    "audit": "audit runs/fpl",
    "audit (leader)": "audit runs/epsilon --sees leader",
    "audit (plan)": "audit plan --users 5000 --items 300 --epsilon 4",
    "audit (poison)": "audit poison --data table.csv --rounds 5 --reports 5",
    "study": "study run study.toml --out results/study",
    "study (report)": "study report results/study --html report.html",
    "bench": "bench list",
    "demo (help)": "demo --help",
}

STUDY = """
seeds = [1]
data = ["table.csv"]
[[model]]
group = "Most popular"
method = "popular"
"""

BLOCKED = """
import json, sys
from click.testing import CliRunner

class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing)
from federank.cli import federank
for name, line in json.load(sys.stdin).items():
    result = CliRunner().invoke(federank, line.split())
    fault = result.exception
    kind = None if result.exit_code == 0 else type(fault).__name__
    print(json.dumps([name, kind, getattr(fault, "extra", None), result.output[-500:] + repr(fault)]))
"""


def answers_of(python, folder, blocked=(), **options):
    """What every command line comes to, in one process of a Python, in which some packages cannot be imported."""
    rows = [
        f"{user},{item},{1 + (user * item) % 5},{user + item}"
        for user in range(48)
        for item in range(90)
        if (7 * user + 3 * item) % 4
    ]
    (folder / "table.csv").write_text("\n".join(["user,item,rating,time", *rows]))
    (folder / "me.csv").write_text("item\n3\n")
    (folder / "study.toml").write_text(STUDY)
    lines = SERVICE | {name: line for name, (line, _) in OTHERS.items()} | CORE
    command = [python, "-c", BLOCKED.format(blocked=sorted(blocked))]
    done = subprocess.run(
        command, cwd=folder, input=json.dumps(lines), capture_output=True, text=True, check=True, **options
    )
    return {name: (kind, extra, output) for name, kind, extra, output in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answers of this Python, without the packages of every extra."""
    blocked = {name.partition(".")[0] for packages in PACKAGES.values() for name in packages}
    return answers_of(sys.executable, tmp_path_factory.mktemp("core"), blocked)


EXTRA_OF = dict.fromkeys(SERVICE, "service") | {name: extra for name, (_, extra) in OTHERS.items()}


@pytest.mark.parametrize("name", EXTRA_OF)
def test_what_needs_an_extra_names_it(answers, name):
    kind, extra, output = answers[name]
    assert (kind, extra) == ("MissingExtra", EXTRA_OF[name]), output


@pytest.mark.parametrize("name", CORE)
def test_what_needs_no_extra_works_without(answers, name):
    kind, _, output = answers[name]
    assert kind is None, output


def test_every_command_is_tried_without_extras():
    assert {name.partition(" ")[0] for name in (*SERVICE, *OTHERS, *CORE)} == set(COMMANDS)


def test_a_missing_extra_ends_a_command_with_code_2_and_the_words_to_type(monkeypatch):
    monkeypatch.setitem(PACKAGES, "service", ("no_such_package", "click"))
    answer = program("serve")
    assert answer.returncode == 2
    assert f'{shlex.quote(sys.executable)} -m pip install "federank[service]"' in answer.stderr
    assert "no_such_package" in answer.stderr
    assert "click" not in answer.stderr


def test_a_module_of_a_package_can_be_needed():
    assert is_installed("click.testing")
    assert not is_installed("click.no_such_module")
    assert not is_installed("no_such_package.module")
    need("service", "This", "click")
    with pytest.raises(MissingExtra):
        need("service", "This", "click", "no_such_package")


def test_extras_bring_the_packages_that_are_asked_for():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    imported_as = {"mlflow-skinny": "mlflow"}
    for extra, packages in PACKAGES.items():
        names = [re.match(r"[\w.-]+", requirement)[0] for requirement in declared[extra]]
        expected = {imported_as.get(name, name).replace("-", "_") for name in names}
        assert {package.partition(".")[0] for package in packages} == expected
