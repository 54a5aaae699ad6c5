"""Group commit: one thread writes for everybody, as many wishes at a time as have gathered.

A commit that has reached the disk costs the same for one upload as for fifty. So requests hand their wishes to this
thread and wait; it takes all that are there, carries them out in one transaction, and answers when that is durable.
While it waits for the disk, the next wishes gather. If the transaction fails, none of them has happened, and each is
told so.

Rows that the writers of all workers change (counts, above all) are changed last, and in one order: so no two of them
ever wait for each other in a circle.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from federank.service.server.store.database import Connection, Database, StoreAway

MOST_TOGETHER = 256
ROUNDS, REFUSALS, FACTS, TALLIES = range(4)
"""What a wish changes, in the order in which a transaction comes to it."""
Answer = TypeVar("Answer")


class _Wish(NamedTuple):
    act: Callable[[Connection], Any]
    answer: asyncio.Future[Any]
    changes: int


class Writer:
    """The thread that writes."""

    def __init__(self, database: Database, after: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._after = after
        self._wishes: queue.SimpleQueue[_Wish | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self.commits = 0

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._wishes.put(None)
        self._thread.join()

    async def write(self, act: Callable[[Connection], Answer], changes: int = ROUNDS) -> Answer:
        """Carry something out in the next transaction; the answer comes once it is durable."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._wishes.put(_Wish(act, answer, changes))
        return await answer

    def _write(self) -> None:
        ending = False
        while not ending:
            wishes: list[_Wish] = []
            first = self._wishes.get()
            while first is not None:
                wishes.append(first)
                if len(wishes) == MOST_TOGETHER or self._wishes.empty():
                    break
                first = self._wishes.get()
            ending = first is None
            if wishes:
                self._write_together(wishes)
        self._database.let_go()

    def _write_together(self, wishes: list[_Wish]) -> None:
        wishes.sort(key=lambda wish: wish.changes)
        try:
            with self._database.connection() as connection, connection.transaction():
                answers = [wish.act(connection) for wish in wishes]
            self.commits += 1
            told: list[tuple[_Wish, Any, Exception | None]] = [
                (wish, answer, None) for wish, answer in zip(wishes, answers, strict=True)
            ]
            self._after()
        except StoreAway as reason:
            told = [(wish, None, reason) for wish in wishes]
        except Exception as fault:  # a fault of ours in one wish must not end the thread
            self._database.let_go()
            told = [(wish, None, fault) for wish in wishes]
        _tell(told)


def _tell(told: list[tuple[_Wish, Any, Exception | None]]) -> None:
    loop = told[0][0].answer.get_loop()

    def settle() -> None:
        for wish, answer, fault in told:
            if wish.answer.done():
                continue  # whoever asked has gone
            if fault is None:
                wish.answer.set_result(answer)
            else:
                wish.answer.set_exception(fault)

    if not loop.is_closed():
        loop.call_soon_threadsafe(settle)
