"""Work: devices wait, a round opens, and as many as are wanted are handed its tickets.

Those who wait are taken in a random order, so that who takes part depends on nothing but being there. All that wait at
a moment are served by one transaction. A device that has reported in a round waits for the next one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from federank.service.database import Connection, StoreAway
from federank.service.logs import Log
from federank.service.store import grant
from federank.service.tickets import Ticket, make_ticket
from federank.service.view import View
from federank.service.writer import Writer


class Work:
    """Who waits for a task, and who has been given the open round's."""

    def __init__(self, view: View, writer: Writer, ticket_key: bytes, log: Log) -> None:
        self._view, self._writer, self._key, self._log = view, writer, ticket_key, log
        self._waiting: dict[str, asyncio.Future[Ticket | None]] = {}
        self._news = asyncio.Event()
        self._round = -1
        self._given: set[Ticket] = set()
        self._reported: set[str] = set()
        self._no_room = False
        self._shuffled = random.SystemRandom()

    @property
    def waiting(self) -> int:
        """How many devices wait."""
        return len(self._waiting)

    def wake(self) -> None:
        """Something is new: look again. To be called in the event loop."""
        self._news.set()

    def has_reported(self, device: str, round_number: int) -> None:
        """A device has done its part of a round."""
        if round_number == self._round:
            self._reported.add(device)

    async def wait(self, device: str, seconds: float, gone: Callable[[], Awaitable[None]]) -> Ticket | None:
        """A ticket for this device, or None if there is none in this time or the device has gone."""
        earlier = self._waiting.pop(device, None)
        if earlier is not None and not earlier.done():
            earlier.set_result(None)  # the same device asks again: the newer request counts
        answer: asyncio.Future[Ticket | None] = asyncio.get_running_loop().create_future()
        self._waiting[device] = answer
        self._news.set()
        leaving = asyncio.ensure_future(gone())
        try:
            await asyncio.wait((answer, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            leaving.cancel()
            if self._waiting.get(device) is answer:
                del self._waiting[device]

    def end(self) -> None:
        """Send everybody home: the server is about to end."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    async def hand_out(self) -> None:
        """Serve those who wait, for as long as the server runs."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._serve_all()
            except StoreAway:
                await asyncio.sleep(0.3)
                self._news.set()
            except Exception as fault:
                self._log.fault("work", fault)
                await asyncio.sleep(0.3)
                self._news.set()

    async def _serve_all(self) -> None:
        now = self._view.round
        if now is None or now.state != "open":
            return
        if self._view.paused and self._view.rounds.mode == "buffered":
            return  # a buffer's next round is open already: the pause is kept here
        if now.number != self._round:
            self._round, self._given, self._reported, self._no_room = now.number, set(), set(), False
        devices = [device for device in self._waiting if device not in self._reported]
        self._shuffled.shuffle(devices)
        tickets = {make_ticket(self._key, device, now.number, now.version): device for device in devices}
        again = self._given & tickets.keys()
        wanted = list(again) if self._no_room else list(tickets)
        if not wanted:
            return
        most = self._view.rounds.most_tickets

        def take(connection: Connection) -> tuple[list[Ticket], set[bytes]]:
            return grant(connection, now.number, wanted, again, most)

        given, used = await self._writer.write(take)
        if now.number != self._round:
            return
        self._no_room = self._no_room or len(given) + len(used) < len(wanted)
        self._reported |= {tickets[ticket] for ticket in wanted if ticket.use in used}
        for ticket in given:
            self._given.add(ticket)
            answer = self._waiting.pop(tickets[ticket], None)
            if answer is not None and not answer.done():
                answer.set_result(ticket)
