"""The dispatcher: devices wait in a long poll, a round opens, and as many as are wanted are handed its tickets.

Those who wait are taken in a random order, so that who takes part depends on nothing but being there. Where uploads are
counted, those come first who were invited least often, whichever worker they wait at: each worker notes in the store
how many wait there, and leaves room for those of others that were invited less often. So everyone is heard before
anyone is heard twice, and a new user is heard soon. All that wait at a moment are served by one transaction. A client
that has reported in a round waits for the next one; one that has been invited as often as the federation's method
allows is told so, and waits for nothing.

Some never answer. As many more are asked as lately did not: with three of ten missing, ten are asked for seven reports.
A ticket that has had three times what an answer usually takes is given to someone else, so that a round does not wait
for its deadline; anyone who answers first counts. A device that misses rounds in a row is asked last. All of this is a
worker's own memory of devices' random names, and is gone when it ends.
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import statistics
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from federank.service.server.logs import Log
from federank.service.server.store.database import Connection, StoreAway
from federank.service.server.store.grants import Granted, grant, note_waiting
from federank.service.server.store.writer import Writer
from federank.service.server.tickets import Ticket, make_ticket
from federank.service.server.worker_cache import Latest

PATIENCE_SHARE, LEAST_PATIENCE = 0.25, 0.5
"""A ticket is given to someone else after a share of the deadline at most, and this many seconds at least."""
SILENT_AFTER = 2
"""Who has missed this many rounds in a row is asked last: when a round has waited and no one else is there."""
MOST_MISSING, MISSING_RATE = 0.5, 0.02
"""No more than half of all are expected to be missing; how much one ticket counts in what is expected."""
LOOK_SECONDS, REMEMBERED_ANSWERS, MOST_MISSED = 0.25, 200, 100_000
GATHER_SECONDS, NOTE_SECONDS = 0.3, 1.0
"""Where uploads are counted: how long a round is open before tickets are given out, so that every worker has noted who
waits; and how often it does so at least."""
LEAST_WAVE, MOST_WAVE = 64, 1024
"""How many of those who wait are served by one transaction."""


class Spent(NamedTuple):
    """The answer to a device that has been invited as often as can be."""

    invitations: int


Answer = Ticket | Spent | None
"""What a device that waits is given; None if there was nothing in its time."""


class Dispatcher:
    """Who waits for a task, and who has been given the open round's."""

    def __init__(
        self, latest: Latest, writer: Writer, ticket_key: bytes, log: Log, invitations: int | None = None
    ) -> None:
        self._latest, self._writer, self._key, self._log = latest, writer, ticket_key, log
        self.invitations = invitations
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._news = asyncio.Event()
        self._hoping: set[str] = set()  # those who wait and have not been told that this round is not for them
        self._round, self._version = -1, -1
        self._given: dict[str, Ticket] = {}
        self._reported: set[str] = set()
        self._no_room = False
        self._chance = random.Random()
        self._began = 0.0  # when this worker first saw the round
        self._given_at: dict[str, float] = {}
        self._expired = 0  # tickets of this round that are given to others too, as nothing has come of them
        self._answer_seconds: deque[float] = deque(maxlen=REMEMBERED_ANSWERS)
        self._unanswered: OrderedDict[str, float] = OrderedDict()  # tickets of any round, and when they were given
        self._worker = secrets.token_hex(8)
        self._asked: dict[str, int] = {}  # how often those who wait here were invited
        self._noted: tuple[float, set[str]] = 0.0, set()  # when it was noted who waits, and who did
        self._missing = 0.0  # the share of tickets that nothing came of, lately
        self._missed: OrderedDict[str, int] = OrderedDict()  # rounds in a row that a device took a ticket of and missed

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
            given = self._given_at.get(device)
            if given is not None:
                self._answer_seconds.append(time.monotonic() - given)
        self.has_answered(device)

    def has_answered(self, device: str) -> None:
        """A device has sent something, in time or not: it is there."""
        if self._unanswered.pop(device, None) is not None:
            self._missing -= MISSING_RATE * self._missing
        self._missed.pop(device, None)

    def _patience(self) -> float:
        """Seconds after which a ticket is given to someone else: three times what an answer usually takes."""
        longest = PATIENCE_SHARE * self._latest.rounds.deadline
        if not self._answer_seconds:
            return longest
        return min(max(3 * statistics.median(self._answer_seconds), LEAST_PATIENCE), longest)

    def _late(self) -> list[str]:
        """Who has had a ticket of this round for too long."""
        too_old = time.monotonic() - self._patience()
        return [device for device, at in self._given_at.items() if at < too_old and device not in self._reported]

    def _give_up_on_the_late(self) -> None:
        """Who took a ticket and has not answered for so long is remembered as silent."""
        too_old = time.monotonic() - self._patience()
        while self._unanswered and next(iter(self._unanswered.values())) < too_old:
            device, _ = self._unanswered.popitem(last=False)
            self._missing += MISSING_RATE * (1 - self._missing)
            self._missed[device] = self._missed.get(device, 0) + 1
            self._missed.move_to_end(device)
        while len(self._missed) > MOST_MISSED:
            self._missed.popitem(last=False)

    def _most_tickets(self) -> int:
        """How many a round gives out: enough for its reports if as many are missing as lately.

        Where devices have few messages in a lifetime, one that comes too late is a message lost: there it is rather a
        few
        tickets less, by what chance may add to the answers.
        """
        wanted, missing = self._latest.rounds.most_tickets, min(self._missing, MOST_MISSING)
        spare = 0.0 if self.invitations is None else math.sqrt(wanted * missing)
        expected = max(wanted, round((wanted - spare) / (1 - missing)))
        return max(expected, wanted + self._expired)

    def _begin(self, number: int, version: int) -> None:
        """Another round."""
        self._round, self._version = number, version
        self._given, self._reported, self._no_room = {}, set(), False
        self._given_at, self._expired, self._began = {}, 0, time.monotonic()
        self._hoping = set(self._waiting)

    async def wait(self, device: str, seconds: float, gone: Callable[[], Awaitable[None]]) -> Answer:
        """A ticket for this device, or that it is spent; None if there is none in this time or the device has gone."""
        earlier = self._waiting.pop(device, None)
        if earlier is not None and not earlier.done():
            earlier.set_result(None)  # the same device asks again: the newer request counts
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[device] = answer
        self._hoping.add(device)
        self._news.set()
        leaving = asyncio.ensure_future(gone())
        try:
            await asyncio.wait((answer, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            leaving.cancel()
            if self._waiting.get(device) is answer:
                del self._waiting[device]
                self._hoping.discard(device)

    def end(self) -> None:
        """Send everyone home: the server is about to end."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    async def hand_out(self) -> None:
        """Serve those who wait, for as long as the server runs."""
        while True:
            with suppress(TimeoutError):  # tickets grow old without any news
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._news.wait()
            self._news.clear()
            try:
                await self._serve_all()
            except Exception as reason:
                if not isinstance(reason, StoreAway):
                    self._log.fault("work", reason)
                self._hoping = set(self._waiting)  # no one was served: all may hope again
                await asyncio.sleep(0.3)
                self._news.set()

    async def _serve_all(self) -> None:
        now = self._latest.round
        if now is not None and now.state == "open" and (now.number, now.version) != (self._round, self._version):
            self._begin(now.number, now.version)
        if self.invitations is not None:
            await self._note_waiting()
        if now is None or now.state != "open":
            return
        if self.invitations is not None and time.monotonic() - self._began < GATHER_SECONDS:
            self._later()
            return
        began = self._round, self._version
        self._give_up_on_the_late()
        late = len(self._late())
        if late > self._expired:
            self._expired, self._no_room, self._hoping = late, False, set(self._waiting)
        most = self._most_tickets()
        devices = self._next_devices(most - now.granted)
        tickets = {make_ticket(self._key, device, now.number, now.version): device for device in devices}
        if not tickets:
            return
        again = {ticket for ticket, device in tickets.items() if self._given.get(device) == ticket}
        invitations = self.invitations

        def take(connection: Connection) -> Granted:
            return grant(connection, now.number, tickets, again, most, invitations, now.version, self._worker)

        given, used, spent, held = await self._writer.write(take)
        if invitations is not None:
            for ticket in spent:
                self._answer(tickets[ticket], Spent(invitations))
        if began != (self._round, self._version):
            return
        reported = {device for ticket, device in tickets.items() if ticket.use in used}
        if held:  # room is left for clients of other workers: look again when these had the time to take it
            self._hoping |= set(self._waiting) & (set(tickets.values()) - reported)
            self._later()
        else:
            self._no_room = self._no_room or len(given) + len(reported) + len(spent) < len(tickets)
        self._reported |= reported
        for ticket in given:
            device = tickets[ticket]
            self._given[device] = ticket
            self._given_at.setdefault(device, time.monotonic())
            self._unanswered.setdefault(device, self._given_at[device])
            self._answer(device, ticket)
        if not held and any(self._missed.get(device, 0) < SILENT_AFTER for device in self._hoping):
            self._news.set()

    def _later(self) -> None:
        """Look again soon, without any news."""
        asyncio.get_running_loop().call_later(min(GATHER_SECONDS, LOOK_SECONDS), self._news.set)

    async def _note_waiting(self) -> None:
        """Note for other workers who waits here for this round's ticket, when that has changed or was long ago."""
        at, before = self._noted
        is_known = self._given.keys() | self._reported
        devices = {one for one in self._waiting if one not in is_known and self._missed.get(one, 0) < SILENT_AFTER}
        if devices == before and (not devices or time.monotonic() - at < NOTE_SECONDS):
            return
        self._noted = time.monotonic(), devices
        self._asked = await self._writer.write(lambda connection: note_waiting(connection, self._worker, devices))

    def _answer(self, device: str, told: Answer) -> None:
        answer = self._waiting.pop(device, None)
        if answer is not None and not answer.done():
            answer.set_result(told)

    def _next_devices(self, workspace: int) -> list[str]:
        """Who is asked about next, in a random order; a few more than there is room for, as some may have reported."""
        self._hoping -= self._reported
        if self._no_room:  # only for those who have lost the ticket that they were given
            devices = [device for device in self._hoping if device in self._given]
            self._hoping.clear()
            return devices
        wave = max(LEAST_WAVE, min(workspace + LEAST_WAVE, MOST_WAVE))
        asked = [device for device in self._hoping if self._missed.get(device, 0) < SILENT_AFTER]
        if not asked and time.monotonic() - self._began >= self._patience():
            asked = list(self._hoping)  # no one else has come
        self._chance.shuffle(asked)
        devices = sorted(asked, key=lambda device: self._asked.get(device, 0))[:wave]
        self._hoping.difference_update(devices)
        return devices
