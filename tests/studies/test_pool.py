"""Worker processes, killed processes and several processes at once: all real."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import tomli_w
from tests.studies.worlds import carried_out, content, small_data, small_study, with_pool

from federank.studies.plan import plan_study, run_that_tests
from federank.studies.pool import Pool
from federank.studies.results import Results

pytestmark = pytest.mark.slow

LONG = {"group": "Long", "method": "fpl", "settings": {"epochs": 200_000, "factors": 4}}


def long_run(folder):
    """A run that takes until it is killed, or half a minute."""
    study = small_study(folder, choose={"best_epoch": False}, model=[LONG])
    return run_that_tests(plan_study(study).cases[0], {}, None, 1)


def kill_when_busy(pool, times):
    """Kill the workers of a pool one after the other, as a system without memory would."""
    for _ in range(times):
        os.kill(pool.processes[0], signal.SIGKILL)
        answer = pool.next(timeout=600)
    return answer


def started(folder, document, *flags):
    """`federank study run` in a process of its own."""
    path = folder / "small.toml"
    path.write_text(tomli_w.dumps(document))
    command = [sys.executable, "-m", "federank", "study", "run", str(path), "--out", str(folder / "r"), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished_lines(folder):
    path = folder / "r" / "runs.jsonl"
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def test_the_results_are_the_same_for_any_number_of_workers(tmp_path):
    study = small_study(tmp_path)
    here, _ = carried_out(study, tmp_path / "here")
    one, two = (with_pool(study, tmp_path / str(workers), workers) for workers in (1, 2))
    assert content(one) == content(two) == content(here)


def test_the_run_of_a_worker_that_dies_is_given_out_once_more(tmp_path):
    quick = plan_study(small_study(tmp_path)).cases[0]
    with Pool(1) as pool:
        pool.submit(long_run(tmp_path))
        first = pool.processes[0]
        assert kill_when_busy(pool, times=1) is None
        assert pool.processes != [first]
        failed = kill_when_busy(pool, times=1)
        assert failed.record.status == "failed"
        assert failed.record.transient
        assert "2 times" in failed.record.reason
        assert "9 (SIGKILL)" in failed.record.reason
        pool.submit(run_that_tests(quick, {}, None, 1))
        assert pool.next(timeout=600).record.status == "done"


def test_closing_a_pool_leaves_no_process_behind(tmp_path):
    pool = Pool(1)
    pool.submit(long_run(tmp_path))
    number = pool.processes[0]
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_study_killed_without_warning_goes_on_where_it_was(tmp_path):
    study = small_study(tmp_path)
    whole = content(carried_out(study, tmp_path / "whole")[0])
    process = started(tmp_path, study.document, "--workers", "1")
    while len(finished_lines(tmp_path)) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    kept = finished_lines(tmp_path)
    with (tmp_path / "r" / "runs.jsonl").open("ab") as file:
        file.write(b'{"id": "half a li')  # as if it had died while it wrote
    again = started(tmp_path, study.document, "--workers", "2")
    out, complaints = again.communicate()
    assert again.returncode == 0, complaints
    assert "0 missing" in out
    lines = finished_lines(tmp_path)
    assert lines[: len(kept)] == kept
    assert len({line["id"] for line in lines}) == len(lines)  # nothing was done twice
    assert content(Results.open(tmp_path / "r")) == whole


def test_workers_end_when_their_parent_is_killed(tmp_path):
    document = small_study(tmp_path).document | {"model": [LONG], "choose": {"best_epoch": False}, "seeds": [1]}
    process = started(tmp_path, document, "--workers", "1")
    children = []
    while not children:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
        children = workers_of(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while any(alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(child) for child in children)


def workers_of(number):
    import psutil

    return [child.pid for child in psutil.Process(number).children() if "spawn_main" in " ".join(child.cmdline())]


def alive(number):
    import psutil

    return psutil.pid_exists(number) and psutil.Process(number).status() != psutil.STATUS_ZOMBIE


def test_two_processes_share_the_work_of_one_folder(tmp_path):
    study = small_study(tmp_path, seeds=[1, 2, 3])
    whole = content(carried_out(study, tmp_path / "whole")[0])
    both = [started(tmp_path, study.document, "--workers", "1") for _ in range(2)]
    for process in both:
        _, complaints = process.communicate()
        assert process.returncode == 0, complaints
    lines = finished_lines(tmp_path)
    assert len({line["id"] for line in lines}) == len(lines)  # nothing was done twice
    assert content(Results.open(tmp_path / "r")) == whole


def test_what_a_dead_process_had_claimed_is_taken_over(tmp_path):
    study = small_study(tmp_path, data=[{"name": "visits", "source": small_data(tmp_path)}], model=[LONG])
    document = study.document | {"choose": {"best_epoch": False}, "seeds": [1]}
    process = started(tmp_path, document, "--workers", "1")
    while not (tmp_path / "r" / "VERSION").is_file() or not Results.open(tmp_path / "r").under_way():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    assert len(Results.open(tmp_path / "r").under_way()) == 1
    process.kill()
    process.communicate()
    assert Results.open(tmp_path / "r").under_way() == []
