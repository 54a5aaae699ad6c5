"""Watched processes and the simulated clients of the demo."""

import queue
import subprocess
import sys
import tempfile

import psutil
import pytest

from federank.service import demo
from federank.service.demo import CLIENTS, GENERATION_SECONDS, PEOPLE, REQUESTS_PER_SECOND, WORLDS, Watched
from federank.service.local_helper import MEMORY

ENDS = "print('running', flush=True); raise SystemExit(3)"
STAYS = "import time; print('running', flush=True); time.sleep(600)"


@pytest.fixture
def watch(monkeypatch):
    """Watch a process whose program depends on how often it was started; its states, and what was said."""
    monkeypatch.setattr(demo, "FIRST_PAUSE", 0.01)
    watched = []

    def watch(*programs):
        states, said = queue.Queue(), []
        last = len(programs) - 1
        watched.append(
            Watched(lambda starts: [sys.executable, "-c", programs[min(starts, last)]], states.put, said.append)
        )
        watched[-1].start()
        return states, said

    yield watch
    for one in watched:
        one.stop()


def next_of(states, count):
    return [states.get(timeout=600) for _ in range(count)]


def test_a_process_that_ends_is_started_again(watch):
    states, said = watch(ENDS, ENDS, STAYS)
    assert next_of(states, 8) == [*["starting", "running", "stopped"] * 2, "starting", "running"]
    assert len(said) == 2
    assert all("exit code 3" in sentence for sentence in said)


def test_stopping_ends_the_process():
    states, said = queue.Queue(), []
    watched = Watched(lambda _: [sys.executable, "-c", STAYS], states.put, said.append)
    watched.start()
    assert next_of(states, 2) == ["starting", "running"]
    watched.stop()
    assert watched._process.poll() is not None
    assert states.empty()
    assert said == []


LEADER = """
import sys, time
from pathlib import Path
from federank.service.local_helper import running_helper
with running_helper(Path(sys.argv[1]), keys=sys.argv[2]) as address:
    print(address, flush=True)
    time.sleep(600)
"""


def test_sigterm_before_the_leader_serves_ends_its_helper_too(tmp_path):
    keys = tempfile.TemporaryDirectory(dir=MEMORY)
    words = [sys.executable, "-c", LEADER, str(tmp_path / "helper.sqlite"), keys.name]
    with keys, subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as leader:
        assert leader.stdout.readline().startswith("http://")
        [helper] = psutil.Process(leader.pid).children()
        leader.terminate()
        assert leader.wait() == 143
    assert not helper.is_running()


MESSAGES = 5


@pytest.mark.parametrize("world", WORLDS)
def test_later_clients_have_other_histories(world):
    draw, draw_others, *_ = WORLDS[world]
    first, later, last = draw(seed=3), draw_others(200, 3, 4), draw_others(200, 3, 5)
    title_of = dict(zip(first.item_ids.tolist(), first.titles.tolist(), strict=True))
    for others in (later, last):
        assert others.n_users == 200
        assert dict(zip(others.item_ids.tolist(), others.titles.tolist(), strict=True)).items() <= title_of.items()
    assert later.items.tolist() != last.items.tolist()


def test_enough_users_are_drawn():
    assert PEOPLE > CLIENTS + GENERATION_SECONDS * REQUESTS_PER_SECOND / MESSAGES
