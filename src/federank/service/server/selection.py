"""Selection: clients wait in a long poll, a round opens, and the selected clients get its tickets.

Waiting clients are drawn in a random order. With a quota of uploads, clients that were invited least often come first,
whichever worker they wait at: each worker notes in the store how many clients wait there, and leaves tickets for those
of other workers that were invited less often. One transaction serves all clients that wait at a moment. A client that
has uploaded in a round waits for the next one. A client without quota is refused.

Dropouts: more clients are invited by the share of recent tickets that were not answered. A ticket that is three times
as old as a usual answer is given to another client too; whichever answers first counts. A client that missed rounds in
a row is invited last. All of this is in a worker's memory, under random names, and is gone when it ends.
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

from federank.federation.server import Published
from federank.service.server.logs import Log
from federank.service.server.store.database import Connection, StoreAway
from federank.service.server.store.grants import Granted, grant, note_waiting
from federank.service.server.store.writer import Writer
from federank.service.server.tickets import Ticket, make_ticket
from federank.service.server.worker_cache import Latest

PATIENCE_SHARE, LEAST_PATIENCE = 0.25, 0.5
"""A ticket is given to someone else after a share of the deadline at most, and this many seconds at least."""
SILENT_AFTER = 2
"""A client that has missed this many rounds in a row is invited last: when a round has waited and no other is there."""
MOST_MISSING, MISSING_RATE = 0.5, 0.02
"""At most half of all tickets are expected to be missed; the weight of one ticket in the moving average."""
LOOK_SECONDS, REMEMBERED_ANSWERS, MOST_MISSED = 0.25, 200, 100_000
GATHER_SECONDS, NOTE_SECONDS = 0.3, 1.0
"""With a quota: seconds between the opening of a round and its first ticket, so that every worker has noted its waiting
clients; and between two notes."""
LEAST_WAVE, MOST_WAVE = 64, 1024
"""Waiting clients that one transaction serves."""


class QuotaSpent(NamedTuple):
    """The answer to a client that has no quota left."""

    invitations: int


Answer = Ticket | QuotaSpent | None
"""The answer to a waiting client; None if there was no ticket in its time."""


class Selection:
    """Clients that wait for a task, and clients that have the open round's ticket."""

    def __init__(
        self,
        latest: Latest,
        writer: Writer,
        ticket_key: bytes,
        log: Log,
        invitations: int | None = None,
        invitations_now: Callable[[Published], int | None] = lambda _model: None,
    ) -> None:
        self._latest, self._writer, self._key, self._log = latest, writer, ticket_key, log
        self.invitations, self._invitations_now = invitations, invitations_now
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._news = asyncio.Event()
        self._candidates: set[str] = set()  # waiting clients that this round may still be for
        self._round, self._version = -1, -1
        self._given: dict[str, Ticket] = {}
        self._uploaded: set[str] = set()
        self._is_full = False
        self._chance = random.Random()
        self._began = 0.0  # when this worker first saw the round
        self._given_at: dict[str, float] = {}
        self._expired = 0  # tickets of this round that are given to others too
        self._answer_seconds: deque[float] = deque(maxlen=REMEMBERED_ANSWERS)
        self._unanswered: OrderedDict[str, float] = OrderedDict()  # tickets of any round, and when they were given
        self._worker = secrets.token_hex(8)
        self._asked: dict[str, int] = {}  # invitations of the clients that wait here
        self._noted: tuple[float, set[str]] = 0.0, set()  # when waiting clients were noted, and which
        self._missing = 0.0  # share of recent tickets that were not answered
        self._missed: OrderedDict[str, int] = OrderedDict()  # rounds in a row that a client missed

    @property
    def waiting(self) -> int:
        """Number of waiting clients."""
        return len(self._waiting)

    def wake(self) -> None:
        """Something is new: look again. To be called in the event loop."""
        self._news.set()

    def has_uploaded(self, client: str, round_number: int) -> None:
        """A client has uploaded in a round."""
        if round_number == self._round:
            self._uploaded.add(client)
            given = self._given_at.get(client)
            if given is not None:
                self._answer_seconds.append(time.monotonic() - given)
        self.has_answered(client)

    def has_answered(self, client: str) -> None:
        """A client has sent something, in time or not."""
        if self._unanswered.pop(client, None) is not None:
            self._missing -= MISSING_RATE * self._missing
        self._missed.pop(client, None)

    def _patience(self) -> float:
        """Seconds after which a ticket is given to someone else: three times what an answer usually takes."""
        longest = PATIENCE_SHARE * self._latest.rounds.deadline
        if not self._answer_seconds:
            return longest
        return min(max(3 * statistics.median(self._answer_seconds), LEAST_PATIENCE), longest)

    def _late(self) -> list[str]:
        """Clients whose ticket of this round is too old."""
        too_old = time.monotonic() - self._patience()
        return [client for client, at in self._given_at.items() if at < too_old and client not in self._uploaded]

    def _note_missed(self) -> None:
        """Remember clients whose ticket is too old."""
        too_old = time.monotonic() - self._patience()
        while self._unanswered and next(iter(self._unanswered.values())) < too_old:
            client, _ = self._unanswered.popitem(last=False)
            self._missing += MISSING_RATE * (1 - self._missing)
            self._missed[client] = self._missed.get(client, 0) + 1
            self._missed.move_to_end(client)
        while len(self._missed) > MOST_MISSED:
            self._missed.popitem(last=False)

    def _most_tickets(self) -> int:
        """How many tickets a round gives out: enough for its uploads if as many are missing as lately.

        With a quota, a late upload is lost, so a few tickets less are given out: one standard deviation of the answers.
        """
        wanted, missing = self._latest.rounds.most_tickets, min(self._missing, MOST_MISSING)
        spare = 0.0 if self.invitations is None else math.sqrt(wanted * missing)
        expected = max(wanted, round((wanted - spare) / (1 - missing)))
        return max(expected, wanted + self._expired)

    def _begin(self, number: int, version: int) -> None:
        """Another round."""
        self._round, self._version = number, version
        self._given, self._uploaded, self._is_full = {}, set(), False
        self._given_at, self._expired, self._began = {}, 0, time.monotonic()
        self._candidates = set(self._waiting)

    async def wait(self, client: str, seconds: float, gone: Callable[[], Awaitable[None]]) -> Answer:
        """A ticket for this client, or that its quota is spent; None if there is none in this time or it has gone."""
        earlier = self._waiting.pop(client, None)
        if earlier is not None and not earlier.done():
            earlier.set_result(None)  # the same client asks again: the newer request counts
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[client] = answer
        self._candidates.add(client)
        self._news.set()
        leaving = asyncio.ensure_future(gone())
        try:
            await asyncio.wait((answer, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            leaving.cancel()
            if self._waiting.get(client) is answer:
                del self._waiting[client]
                self._candidates.discard(client)

    def end(self) -> None:
        """Answer all waiting clients: the server is about to end."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)

    async def hand_out(self) -> None:
        """Serve waiting clients, for as long as the server runs."""
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
                self._candidates = set(self._waiting)  # no one was served
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
        self._note_missed()
        late = len(self._late())
        if late > self._expired:
            self._expired, self._is_full, self._candidates = late, False, set(self._waiting)
        most = self._most_tickets()
        clients = self._next_clients(most - now.granted)
        tickets = {make_ticket(self._key, client, now.number, now.version): client for client in clients}
        if not tickets:
            return
        again = {ticket for ticket, client in tickets.items() if self._given.get(client) == ticket}
        invitations = self._quota(now.version)

        def take(connection: Connection) -> Granted:
            return grant(connection, now.number, tickets, again, most, invitations, now.version, self._worker)

        given, used, spent, held = await self._writer.write(take)
        if invitations is not None and invitations == self.invitations:  # else they are asked again on a later model
            for ticket in spent:
                self._answer(tickets[ticket], QuotaSpent(invitations))
        if began != (self._round, self._version):
            return
        reported = {client for ticket, client in tickets.items() if ticket.use in used}
        if held:  # tickets are left for clients of other workers: look again when these had the time to take them
            self._candidates |= set(self._waiting) & (set(tickets.values()) - reported)
            self._later()
        else:
            self._is_full = self._is_full or len(given) + len(reported) + len(spent) < len(tickets)
        self._uploaded |= reported
        for ticket in given:
            client = tickets[ticket]
            self._given[client] = ticket
            self._given_at.setdefault(client, time.monotonic())
            self._unanswered.setdefault(client, self._given_at[client])
            self._answer(client, ticket)
        if not held and any(self._missed.get(client, 0) < SILENT_AFTER for client in self._candidates):
            self._news.set()

    def _quota(self, version: int) -> int | None:
        """How often a client is invited to rounds on this version at most."""
        model = self._latest.models.get(version)
        now = None if model is None else self._invitations_now(model)
        return self.invitations if self.invitations is None or now is None else min(self.invitations, now)

    def _later(self) -> None:
        """Look again soon, without any news."""
        asyncio.get_running_loop().call_later(min(GATHER_SECONDS, LOOK_SECONDS), self._news.set)

    async def _note_waiting(self) -> None:
        """Note for other workers which clients wait here, when that has changed or was long ago."""
        at, before = self._noted
        is_known = self._given.keys() | self._uploaded
        clients = {one for one in self._waiting if one not in is_known and self._missed.get(one, 0) < SILENT_AFTER}
        if clients == before and (not clients or time.monotonic() - at < NOTE_SECONDS):
            return
        self._noted = time.monotonic(), clients
        self._asked = await self._writer.write(lambda connection: note_waiting(connection, self._worker, clients))

    def _answer(self, client: str, given: Answer) -> None:
        answer = self._waiting.pop(client, None)
        if answer is not None and not answer.done():
            answer.set_result(given)

    def _next_clients(self, tickets_left: int) -> list[str]:
        """The next clients, in a random order; a few more than there are tickets, as some may have uploaded."""
        self._candidates -= self._uploaded
        if self._is_full:  # only clients that ask for their own ticket again
            clients = [client for client in self._candidates if client in self._given]
            self._candidates.clear()
            return clients
        wave = max(LEAST_WAVE, min(tickets_left + LEAST_WAVE, MOST_WAVE))
        asked = [client for client in self._candidates if self._missed.get(client, 0) < SILENT_AFTER]
        if not asked and time.monotonic() - self._began >= self._patience():
            asked = list(self._candidates)  # no other client waits
        self._chance.shuffle(asked)
        clients = sorted(asked, key=lambda client: self._asked.get(client, 0))[:wave]
        self._candidates.difference_update(clients)
        return clients
