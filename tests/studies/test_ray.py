"""Studies on a Ray cluster: the same results as worker processes here, whatever happens to workers and machines.

One cluster of two nodes inside this machine for the module; its processes are real, and so is their end.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
from tests.studies.worlds import carried_out, content, small_study
from tests.two_nodes import TwoNodes

from federank.errors import SettingError
from federank.simulation.cluster import LOCAL
from federank.studies.pool import RayExecutor, environment

ROOT = Path(__file__).parents[2]


def test_the_path_of_this_python_is_quoted_for_the_shell_of_ray_and_that_of_other_machines_is_theirs():
    python = "/home/someone/my programs/bin/python"
    assert environment(LOCAL, python)["py_executable"] == f"'{python}'"
    assert "py_executable" not in environment("ray://head:10001", python)


@pytest.fixture(scope="module")
def two_nodes():
    nodes = TwoNodes(cores=2)
    yield nodes
    nodes.close()


@pytest.fixture
def nodes(two_nodes):
    return two_nodes.with_both()


MODELS = [
    {"group": "Popular", "method": "popular"},
    {"group": "Neighbours", "method": "itemknn", "settings": {"k": 5}},
    {"group": "PMF", "method": "pmf", "settings": {"factors": 4, "iterations": 3}},
    {"group": "FPL", "method": "fpl", "settings": {"factors": 4}, "grid": {"learning_rate": [0.05, 0.5]}},
]


@pytest.mark.slow
def test_results_are_the_same_bits_as_here_and_no_machine_needs_the_files(nodes, tmp_path):
    study = small_study(tmp_path, model=MODELS)
    here, _ = carried_out(study, tmp_path / "here")
    (tmp_path / "visits.csv").unlink()  # read already by this process, and by no worker
    with RayExecutor("local", 2) as executor:
        there, heard = carried_out(study, tmp_path / "there", executor)
        assert len(executor._sources) == 1
    assert content(there) == content(here)
    assert len(heard.heard) == len(content(here))
    assert {line.status for line in there.records()} == {"done"}
    for line in here.records():
        if line.task == "test":
            assert there.users(line.id).equals(here.users(line.id))


class Deadly(RayExecutor):
    """Its first workers die of the run they are given, as when memory runs out."""

    def __init__(self, deaths):
        super().__init__("local", 2)
        self.deaths = deaths

    def _begin(self, worker, run):
        if not self.deaths:
            return super()._begin(worker, run)
        self.deaths -= 1
        return worker.__ray_call__.remote(die)


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_the_runs_of_a_killed_worker_are_given_out_again(nodes, tmp_path):
    study = small_study(tmp_path, model=MODELS[-1:])
    here, _ = carried_out(study, tmp_path / "here")
    with Deadly(deaths=2) as executor:
        there, _ = carried_out(study, tmp_path / "there", executor)
        assert executor._lost == 2
    assert content(there) == content(here)


@pytest.mark.slow
def test_a_run_that_costs_every_worker_its_life_has_failed_with_a_reason(nodes, tmp_path):
    with Deadly(deaths=3) as executor:
        results, _ = carried_out(small_study(tmp_path, model=MODELS[:1]), tmp_path / "there", executor)
    (line,) = results.records()
    assert line.status == "failed"
    assert line.transient
    assert line.reason.startswith("Its worker was lost 3 times")


class Unplugged(RayExecutor):
    """Loses the second machine once every core of both has been given a run, while workers are getting ready."""

    def __init__(self, nodes):
        super().__init__("local", 4)
        self.nodes = nodes

    def next(self, timeout=None):
        if self.nodes.second is not None and len(self._busy) == 4:
            self.nodes.lose_second()
        return super().next(timeout)


@pytest.mark.slow
def test_the_runs_of_a_lost_machine_are_given_out_again(nodes, tmp_path):
    model = [MODELS[-1] | {"grid": {"learning_rate": [0.01, 0.05, 0.1, 0.5, 1.0, 2.0]}}]
    study = small_study(tmp_path, model=model)
    here, _ = carried_out(study, tmp_path / "here")
    with Unplugged(nodes) as executor:
        there, _ = carried_out(study, tmp_path / "there", executor)
        assert executor._lost >= 1
    assert nodes.second is None
    assert content(there) == content(here)


@pytest.mark.slow
def test_more_workers_than_cores_are_refused(nodes):
    with pytest.raises(SettingError, match=r"99.*4"):
        RayExecutor("local", 99)
    assert nodes.ray.is_initialized()  # a connection that was there is left alone


HEAD_LOST = """
import sys
from pathlib import Path

from ray.cluster_utils import Cluster
from tests.studies.test_ray import MODELS
from tests.studies.worlds import Silent, small_study
from tests.two_nodes import STORE

from federank.simulation.cluster import LOCAL, ray_module
from federank.errors import ClusterGone
from federank.studies.pool import RayExecutor
from federank.studies.results import Results
from federank.studies.run import run_study

class Unlucky(Silent):
    def finished(self, line, *, ours):
        super().finished(line, ours=ours)
        if len(self.heard) == 3:
            nodes.head_node.kill_gcs_server()

head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": STORE}
nodes = Cluster(initialize_head=True, head_node_args=head)
ray_module().init(address=nodes.address, log_to_driver=False, logging_level="error")
folder, heard = Path(sys.argv[1]), Unlucky()
# More runs than could be carried out before the loss is noticed.
study = small_study(folder, model=MODELS[-1:], seeds=list(range(1, 5000)))
try:
    with RayExecutor(LOCAL, 2) as executor:  # the nodes are of this machine and this Python
        run_study(study, folder / "results", executor, heard)
except ClusterGone as gone:
    print(gone)
ray_module().shutdown()
nodes.shutdown()
kept = {line.id for line in Results.open(folder / "results").records(every=True)}
assert len(kept) >= 3
assert {line.id for line, _ in heard.heard} == kept
print("nothing finished is lost")
"""


@pytest.mark.slow
def test_a_cluster_that_goes_away_is_an_error_and_nothing_finished_is_lost(tmp_path):
    # In a process of its own: Ray ends the process of a driver that goes on without its head.
    command = [sys.executable, "-c", HEAD_LOST, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert "nothing finished is lost" in answer.stdout


@pytest.mark.slow
def test_a_study_is_carried_out_on_a_cluster_by_one_option(tmp_path):
    models = [{"method": "popular"}, {"method": "fpl", "settings": {"factors": 4}}]
    (tmp_path / "two.toml").write_text(tomli_w.dumps(small_study(tmp_path, model=models, seeds=[1]).document))
    run = [sys.executable, "-m", "federank", "study", "run", "two.toml", "--cluster", "local", "--workers", "2"]
    answer = subprocess.run([*run, "--out", "there"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "3 done" in answer.stdout
    missing = subprocess.run(
        [*run[:-3], "nowhere", "--out", "other"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert missing.returncode == 2
    assert "'nowhere'" in missing.stderr
