"""Runs on a Ray cluster: another executor, with the same results bit for bit as worker processes here.

A worker is a Ray actor with one core, and carries out one run at a time with one thread, as a worker of `pool.py` does.
The data is read and divided once, by anyone who starts the study, and put into Ray's store: it travels once to each
machine, where all workers see the same copy, and no machine needs the files.

A worker that dies, alone or with its machine, is replaced and its run given out again, three times in all. A cluster
that goes away ends the study with a sentence; what is finished is in the results folder, and the same command goes on.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import ExitStack
from typing import Any

from federank.errors import SettingError
from federank.simulation.cluster import (
    LOCAL,
    SECONDS_BETWEEN_KNOCKS,
    ClusterGone,
    cluster_cpus,
    connected,
    first_line,
    losses,
    watch_head,
)
from federank.studies.plan import Run
from federank.studies.pool import ONE_THREAD, Executor
from federank.studies.sources import Source, provide, source_of
from federank.studies.task import Finished, execute, failed

_STORE_BYTES = 512 * 2**20
_GO_ON = "What is finished is kept; the same command goes on from there."


class Worker:
    """An actor that carries out runs."""

    def execute(self, run: Run, source: Source) -> Finished:
        """Train and judge, on the data that came with the run."""
        provide(run.data, source)
        return execute(run)


def environment(address: str, python: str) -> dict[str, Any]:
    """What Ray starts a worker with: one thread; on this machine also this Python, its path quoted.

    Ray hands that path to a shell as it is, which would take one with a space in it for two words and try for ever. On
    another cluster the machines have a Python of their own.
    """
    quoted = {"py_executable": shlex.quote(python)} if address == LOCAL else {}
    return {"env_vars": ONE_THREAD, **quoted}


class RayExecutor(Executor[Any, Any]):
    """An executor on a Ray cluster: `local` for this machine, or an address (see simulation/cluster.py).

    A busy worker is known by the reference to what it will answer.
    """

    attempts = 3

    def __init__(self, address: str = LOCAL, workers: int | None = None) -> None:
        super().__init__()
        self._environment = environment(address, sys.executable)
        self._sources: dict[str, Any] = {}  # references to data in Ray's store
        self._lost = 0
        self._looked_at = time.monotonic()
        self._connection = ExitStack()
        self._ray = self._connection.enter_context(connected(address, workers or os.cpu_count() or 1, _STORE_BYTES))
        cores = cluster_cpus(self._ray)
        if workers is not None and workers > cores:
            self.close()
            raise SettingError(f"{workers} workers were asked for, but the cluster has {cores} cores; ask for fewer.")
        self.slots = workers or cores

    def next(self, timeout: float | None = None) -> Finished | None:
        """Wait for a run to be finished; while waiting, the head of the cluster is watched."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while self._busy:
            patience = min(SECONDS_BETWEEN_KNOCKS, max(0.0, end - time.monotonic()))
            try:
                ready, _ = self._ray.wait(list(self._busy), timeout=patience)
                if time.monotonic() - self._looked_at > SECONDS_BETWEEN_KNOCKS:
                    self._looked_at = time.monotonic()
                    watch_head(self._ray)
                if ready:
                    return self._answer(ready[0])
            except (ClusterGone, ConnectionError, self._ray.exceptions.RaySystemError) as gone:
                raise ClusterGone(f"The cluster went away: {first_line(gone)} {_GO_ON}") from gone
            if time.monotonic() >= end:
                return None
        return None

    def close(self) -> None:
        """End all workers, and the cluster where it was started here."""
        self._waiting.clear()
        for worker in self._everyone():
            self._ray.kill(worker)
        self._idle, self._busy, self._sources = [], {}, {}
        self._connection.close()

    def _begin(self, worker: Any, run: Run) -> Any:
        return worker.execute.remote(run, self._shipped(run))

    def _started(self) -> Any:
        where = {
            # In the place of one that is lost: waiting for a core of its own could mean waiting for ever.
            "num_cpus": 0 if self._lost else 1,
            "max_restarts": 0,
            "scheduling_strategy": "SPREAD",
            "runtime_env": self._environment,
        }
        return self._ray.remote(Worker).options(**where).remote()

    def _shipped(self, run: Run) -> Any:
        """A reference to the run's data; put into Ray's store with the first run that needs it."""
        name = repr((run.data.source, run.data.reading, run.data.filters, run.data.split))
        if name not in self._sources:
            self._sources[name] = self._ray.put(source_of(run.data))
        return self._sources[name]

    def _answer(self, reference: Any) -> Finished | None:
        worker, run = self._busy.pop(reference)
        try:
            finished: Finished = self._ray.get(reference)
        except losses(self._ray) as loss:
            return self._given_out_again(worker, run, loss)
        self._freed(worker)
        _refuse_other_versions(finished)
        return finished

    def _given_out_again(self, worker: Any, run: Run, loss: Exception) -> Finished | None:
        self._ray.kill(worker)
        self._lost += 1
        if self._retried(run):
            return None
        return failed(
            run,
            f"Its worker was lost {self.attempts} times, the last time so: {first_line(loss)} Perhaps there was not "
            "enough memory for it; try fewer workers.",
            transient=True,
        )


def _refuse_other_versions(finished: Finished) -> None:
    """Other versions of what computes give other results: then they are not kept."""
    ours, theirs = failed(finished.run, "").record.versions, finished.record.versions
    other = [
        f"{name} {theirs.get(name)} and not {version}" for name, version in ours.items() if theirs.get(name) != version
    ]
    if other:
        raise ClusterGone(f"The cluster's machines have {', '.join(other)}; the same versions are needed. {_GO_ON}")
