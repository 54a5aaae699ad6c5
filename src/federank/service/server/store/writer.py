"""Group commit: one thread writes for everyone, as many jobs at a time as have gathered.

A commit that has reached the disk costs the same for one upload as for fifty. So requests hand their jobs to this
thread and wait; it takes all that are there, carries them out in one transaction, and answers when that is durable.
While it waits for the disk, the next jobs gather. If the transaction fails, none of them has happened, and each is
informed of it.

Rows that the writers of all workers change (counts, above all) are changed last, and in one order: so no two of them
ever wait for each other in a circle.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from federank.service.server.store.database import Connection, Database, StoreAway

MOST_TOGETHER = 256
ROUNDS, REFUSALS, METADATA, TALLIES = range(4)
"""What a job changes, in the order in which a transaction comes to it."""
Answer = TypeVar("Answer")


class _Job(NamedTuple):
    act: Callable[[Connection], Any]
    answer: asyncio.Future[Any]
    changes: int


class Writer:
    """The thread that writes."""

    def __init__(
        self,
        database: Database,
        after: Callable[[], None] = lambda: None,
        on_fault: Callable[[StoreAway], None] = lambda _: None,
    ) -> None:
        self._database = database
        self._after, self._on_fault = after, on_fault
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self.fault: StoreAway | None = None  # why the last transaction failed; None once one has succeeded

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._jobs.put(None)
        self._thread.join()

    async def write(self, act: Callable[[Connection], Answer], changes: int = ROUNDS) -> Answer:
        """Carry something out in the next transaction; the answer comes once it is durable."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(act, answer, changes))
        return await answer

    def _write(self) -> None:
        ending = False
        while not ending:
            jobs: list[_Job] = []
            first = self._jobs.get()
            while first is not None:
                jobs.append(first)
                if len(jobs) == MOST_TOGETHER or self._jobs.empty():
                    break
                first = self._jobs.get()
            ending = first is None
            if jobs:
                self._write_together(jobs)
        self._database.release()

    def _write_together(self, jobs: list[_Job]) -> None:
        jobs.sort(key=lambda job: job.changes)
        try:
            with self._database.connection() as connection, connection.transaction():
                answers = [job.act(connection) for job in jobs]
            self.fault = None
            outcomes: list[tuple[_Job, Any, Exception | None]] = [
                (job, answer, None) for job, answer in zip(jobs, answers, strict=True)
            ]
            self._after()
        except StoreAway as reason:
            self._note(reason)
            outcomes = [(job, None, reason) for job in jobs]
        except Exception as fault:  # a fault of ours in one job must not end the thread
            self._database.release()
            outcomes = [(job, None, fault) for job in jobs]
        _report(outcomes)

    def _note(self, reason: StoreAway) -> None:
        if self.fault is None or self.fault.is_full != reason.is_full:
            self._on_fault(reason)
        self.fault = reason


def _report(outcomes: list[tuple[_Job, Any, Exception | None]]) -> None:
    loop = outcomes[0][0].answer.get_loop()

    def settle() -> None:
        for job, answer, fault in outcomes:
            if job.answer.done():
                continue  # anyone who asked has gone
            if fault is None:
                job.answer.set_result(answer)
            else:
                job.answer.set_exception(fault)

    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)


# The operator's log: what was done to the federation, by anyone who had the operator's token, in order.


NOTHING_BEFORE = b""


class Action(NamedTuple):
    """One line of the log."""

    number: int
    time: str
    action: str
    detail: dict[str, Any]
    digest: bytes


def note_action(connection: Connection, action: str, **detail: Any) -> None:
    """Add a line, within the caller's transaction."""
    if connection.dialect == "postgresql":
        connection.run("LOCK TABLE actions IN EXCLUSIVE MODE")
    row = connection.one("SELECT number, digest FROM actions ORDER BY number DESC LIMIT 1")
    number, before = (0, NOTHING_BEFORE) if row is None else (int(row[0]) + 1, bytes(row[1]))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps(detail, sort_keys=True)
    connection.run(
        "INSERT INTO actions (number, time, action, detail, digest) VALUES (?, ?, ?, ?, ?)",
        number,
        now,
        action,
        text,
        _digest(before, number, now, action, text),
    )


def all_actions(connection: Connection) -> list[Action]:
    """The full log, oldest first."""
    rows = connection.all("SELECT number, time, action, detail, digest FROM actions ORDER BY number")
    return [Action(int(row[0]), str(row[1]), str(row[2]), json.loads(row[3]), bytes(row[4])) for row in rows]


def is_unbroken(actions: list[Action]) -> bool:
    """Whether every line is as it was written, after the line that it was written after."""
    before = NOTHING_BEFORE
    for expected, (number, when, action, detail, digest) in enumerate(actions):
        if number != expected or digest != _digest(before, number, when, action, json.dumps(detail, sort_keys=True)):
            return False
        before = digest
    return True


def _digest(before: bytes, number: int, when: str, action: str, detail: str) -> bytes:
    return hashlib.sha256(before + json.dumps([number, when, action, detail]).encode()).digest()
