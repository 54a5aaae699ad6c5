"""Worker processes on one machine: each carries out one run at a time.

Runs are spread over processes, not over threads inside a run: with one client a round the order of the steps *is* the
algorithm. So every worker has one thread, for Numba, BLAS, Polars and XLA alike, also where there is one worker only:
the result is the same bits for any number of workers. A worker keeps the data it has read for its next run.

A worker that dies (the system kills the largest process when memory runs out) is replaced, and its run given out once
more; if that worker dies too, the run has failed. When the parent dies, even by `kill -9`, its workers end as well.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

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
from federank.studies.plan import Run, Source, provide, source_of
from federank.studies.task import Finished, execute, failed

Worker = TypeVar("Worker")
Key = TypeVar("Key")


class Executor(ABC, Generic[Worker, Key]):
    """Where runs are carried out, by workers that are idle or busy; a run whose worker is lost gets another one."""

    slots: int
    """How many runs can be carried out at a time."""
    attempts: ClassVar[int]
    """How many workers a run may cost before it has failed."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._busy: dict[Key, tuple[Worker, Run]] = {}
        self._losses: Counter[str] = Counter()

    def submit(self, run: Run) -> None:
        """Give a run to an idle worker, or to a new one; at most `slots` runs are given out at a time."""
        worker = self._idle.pop() if self._idle else self._started()
        self._busy[self._begin(worker, run)] = (worker, run)

    @abstractmethod
    def next(self, timeout: float | None) -> Finished | None:
        """Wait for a run to be finished; None where none was in this time, in seconds."""

    @abstractmethod
    def close(self) -> None:
        """End all workers; runs that are not finished are given up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _started(self) -> Worker:
        """A new worker."""

    @abstractmethod
    def _begin(self, worker: Worker, run: Run) -> Key:
        """Have a worker carry a run out; what its answer will be known by."""

    def _retried(self, run: Run, loss: str) -> Finished | None:
        """Give out again a run whose worker was lost; None unless it has failed for good."""
        self._losses[run.id] += 1
        if self._losses[run.id] < self.attempts:
            self.submit(run)
            return None
        advice = "Perhaps there was not enough memory for it; try fewer workers."
        reason = f"Its worker was lost {self.attempts} times, the last time so: {loss} {advice}"
        return failed(run, reason, transient=True)

    def _everyone(self) -> list[Worker]:
        return [*self._idle, *(worker for worker, _ in self._busy.values())]


ONE_THREAD = {
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class Pool(Executor[_Worker, int]):
    """An executor of worker processes on this machine; busy ones are known by the numbers of their processes."""

    attempts = 2

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.slots = workers

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that carry out a run now."""
        return list(self._busy)

    def next(self, timeout: float | None = None) -> Finished | None:
        """Wait for a run to be finished."""
        if not self._busy:
            return None
        pipes = {worker.pipe: worker for worker, _ in self._busy.values()}
        ready = wait(list(pipes), timeout)  # a pipe that has closed is ready too: its worker has died
        if not ready:
            return None
        worker = pipes[ready[0]]  # type: ignore[index]
        assert worker.process.pid is not None
        _, run = self._busy.pop(worker.process.pid)
        try:
            record, users = worker.pipe.recv()
        except (EOFError, OSError):
            return self._lost(worker, run)
        self._idle.append(worker)
        return Finished(run, record, users)

    def close(self) -> None:
        """End all workers."""
        workers = self._everyone()
        for worker in workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in workers:
            worker.process.join(timeout=5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()
        self._idle, self._busy = [], {}

    def _started(self) -> _Worker:
        # A fresh interpreter, so that nothing of this process comes along but its environment.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _environment(ONE_THREAD):
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _begin(self, worker: _Worker, run: Run) -> int:
        with suppress(OSError):  # it died while it was idle: `next` finds its pipe closed
            worker.pipe.send(run)
        assert worker.process.pid is not None
        return worker.process.pid

    def _lost(self, worker: _Worker, run: Run) -> Finished | None:
        worker.pipe.close()
        worker.process.join()
        code = worker.process.exitcode or 0
        worker.process.close()
        names = {number.value: number.name for number in signal.Signals}
        how = f"it was ended by signal {-code} ({names.get(-code, 'unknown')})" if code < 0 else f"it ended with {code}"
        return self._retried(run, f"{how}.")


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """These variables while a process is started; libraries read them when they are first imported."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(pipe: Connection) -> None:
    """What a worker does: take a run, carry it out, answer, until the parent closes the pipe or ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    try:
        while True:
            run = pipe.recv()
            finished = execute(run)
            pipe.send((finished.record, finished.users))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# Runs on a Ray cluster: another executor, with the same results bit for bit as worker processes here.
#
# A worker is a Ray actor with one core and one thread. The data is read and divided once, where the study is started,
# and put into Ray's store: it travels once to each machine, and no machine needs the files. A cluster that goes away
# ends the study with an error; finished runs are in the results folder, and the same command goes on.


_STORE_BYTES = 512 * 2**20
_GO_ON = "What is finished is kept; the same command goes on from there."


class RayWorker:
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
        for worker in self._everyone():
            self._ray.kill(worker)
        self._idle, self._busy, self._sources = [], {}, {}
        self._connection.close()

    def _begin(self, worker: Any, run: Run) -> Any:
        if run.data.key not in self._sources:  # put into Ray's store with the first run that needs it
            self._sources[run.data.key] = self._ray.put(source_of(run.data))
        return worker.execute.remote(run, self._sources[run.data.key])

    def _started(self) -> Any:
        where = {
            # In the place of one that is lost: waiting for a core of its own could mean waiting for ever.
            "num_cpus": 0 if self._lost else 1,
            "max_restarts": 0,
            "scheduling_strategy": "SPREAD",
            "runtime_env": self._environment,
        }
        return self._ray.remote(RayWorker).options(**where).remote()

    def _answer(self, reference: Any) -> Finished | None:
        worker, run = self._busy.pop(reference)
        try:
            finished: Finished = self._ray.get(reference)
        except losses(self._ray) as loss:
            self._ray.kill(worker)
            self._lost += 1
            return self._retried(run, first_line(loss))
        self._idle.append(worker)
        _refuse_other_versions(finished)
        return finished


def _refuse_other_versions(finished: Finished) -> None:
    """Other versions of what computes give other results: then they are not kept."""
    ours, theirs = failed(finished.run, "").record.versions, finished.record.versions
    other = [
        f"{name} {theirs.get(name)} and not {version}" for name, version in ours.items() if theirs.get(name) != version
    ]
    if other:
        raise ClusterGone(f"The cluster's machines have {', '.join(other)}; the same versions are needed. {_GO_ON}")
