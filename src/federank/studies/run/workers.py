"""What every executor does with its workers: runs wait for one that is idle, and get another where theirs is lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar, Generic, Self, TypeVar

from federank.studies.plan.plan import Run

Worker = TypeVar("Worker")
Key = TypeVar("Key")


class Workers(ABC, Generic[Worker, Key]):
    """Workers that are idle, workers that are busy, and the runs that wait for one."""

    slots: int
    """How many runs can be carried out at a time."""
    attempts: ClassVar[int]
    """How many workers a run may cost before it has failed."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._busy: dict[Key, tuple[Worker, Run]] = {}
        self._waiting: deque[Run] = deque()
        self._losses: dict[str, int] = {}

    def submit(self, run: Run) -> None:
        """Give out a run, at once or when a worker is free."""
        self._waiting.append(run)
        self._give_out()

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

    def _give_out(self) -> None:
        while self._waiting and len(self._busy) < self.slots:
            worker = self._idle.pop() if self._idle else self._started()
            run = self._waiting.popleft()
            self._busy[self._begin(worker, run)] = (worker, run)

    def _freed(self, worker: Worker) -> None:
        """This worker has answered and can have the next run."""
        self._idle.append(worker)
        self._give_out()

    def _retried(self, run: Run) -> bool:
        """Whether a run whose worker was lost is given out once more; else it has failed for good."""
        self._losses[run.id] = self._losses.get(run.id, 0) + 1
        again = self._losses[run.id] < self.attempts
        if again:
            self._waiting.appendleft(run)
        self._give_out()
        return again

    def _everyone(self) -> list[Worker]:
        return [*self._idle, *(worker for worker, _ in self._busy.values())]
