"""A watched process: its states are reported, and it is started again when it ends."""

import queue
import sys

import pytest

from federank.service import watching
from federank.service.watching import Watched

ENDS = "print('running', flush=True); raise SystemExit(3)"
STAYS = "import time; print('running', flush=True); time.sleep(600)"


@pytest.fixture
def watch(monkeypatch):
    """Watch a process whose program depends on how often it was started; its states, and what was said."""
    monkeypatch.setattr(watching, "FIRST_PAUSE", 0.01)
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
    return [states.get(timeout=60) for _ in range(count)]


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
