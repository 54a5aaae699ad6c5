"""A fleet of virtual devices against a real server: a rehearsal before people come, and a load test.

Each device lives as a person's does: it enrols, waits for work, fetches the rows that changed, plays its part, sends
its Update, and keeps nothing on disk. A share of them may vanish in each round after they have learnt, as phones do.
The fleet ends after a number of the server's rounds or of seconds, or when nobody has a message left. It tells how many
interactions (task, changed rows, upload, receipt) there were in a second, how long requests took, and what crossed the
wire.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from federank.errors import BadAnswer, FedeRankError, NoAnswer
from federank.protocol.sums.offer import Offer
from federank.service.device.methods.method import Model
from federank.service.device.methods.summed import Terms
from federank.service.device.requests.client import read_refusal
from federank.service.device.requests.federation import (
    Facts,
    Ticket,
    read_catalogue,
    read_enrolment,
    read_facts,
    read_receipt,
    read_rows,
    read_ticket,
    refuse_another_round,
)
from federank.service.device.requests.sums import Pinned, checked_offer
from federank.service.device.rules import LONG_POLL, MOST_CATALOGUE_BYTES, MOST_OLDER_OFFERS
from federank.service.fleet.connection import Connection, Reply
from federank.service.fleet.devices import Devices, Models
from federank.service.fleet.tally import Tally

ENROLLING_AT_ONCE = 32
SECONDS_TO_FINISH = 20
ATTEMPTS = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 7.0
"""A fleet's backoff begins sooner than that of people's devices: somebody waits for its figures."""
SECONDS_UNTIL_ANOTHER = 0.4
"""After a round that is not for a device, because its model is older than the device's, the next is asked for."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a fleet goes about it."""

    address: str
    trusted: ssl.SSLContext | None = None
    last_version: int | None = None
    """End when the server has published this version; no device takes part in a round beyond it."""
    seconds: float | None = None
    """End after this long."""
    vanish: float = 0.0
    """Share of devices that vanish in a round before they reply."""
    rate: float | None = None
    """Ask for work at most so many times a second, all devices together."""
    attempts: int = ATTEMPTS
    """How often a request is tried while the server is away or busy: 6 times are twelve seconds."""


class Era(NamedTuple):
    """What goes together for as long as the catalogue stays as it is."""

    facts: Facts
    devices: Devices
    models: Models


class Fleet:
    """Devices of one process, and the server they talk to.

    `made` makes the same people's devices for a catalogue that has grown; without it a fleet cannot follow one.
    """

    def __init__(
        self,
        plan: Plan,
        devices: Devices,
        models: Models,
        users: list[int],
        pinned: Pinned | None = None,
        made: Callable[[Facts, list[str]], Devices] | None = None,
    ) -> None:
        self.plan, self.users, self._made = plan, users, made
        self.era, self._growing = Era(models.facts, devices, models), asyncio.Lock()
        self._pinned = pinned
        self._offers: dict[int, Offer] = {}  # of the newest round: every device is offered the same
        self.tally = Tally()
        self._turn = 0.0
        self._round = self._busy = self._reports = 0
        self._living = len(users)
        self._ending = False
        self._gate = asyncio.Semaphore(ENROLLING_AT_ONCE)

    async def play(self) -> Tally:
        """Enrol everybody, then take part until the plan's end."""
        connections = {user: self._connection() for user in self.users}
        await self._all(self._enrol(connection) for connection in connections.values())
        for connection in connections.values():
            connection.sent = connection.received = 0
        began = self._turn = time.monotonic()
        lives = [asyncio.create_task(self._live(user, connection)) for user, connection in connections.items()]
        ending = asyncio.create_task(self._end())
        try:
            # Lives end only by a fault, or once the end has come.
            done, _ = await asyncio.wait((ending, *lives), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a device that has met a broken protocol ends the rehearsal
            await self._finish()
        finally:
            for task in (ending, *lives):
                task.cancel()
            await asyncio.gather(ending, *lives, return_exceptions=True)
            self.tally.seconds = time.monotonic() - began
            self.tally.bytes_up = sum(connection.sent for connection in connections.values())
            self.tally.bytes_down = sum(connection.received for connection in connections.values())
            for connection in connections.values():
                connection.close()
        return self.tally

    async def _finish(self) -> None:
        """Nobody begins any more; who holds a ticket may use it, so that no round waits in vain."""
        self._ending = True
        for _ in range(SECONDS_TO_FINISH * 20):
            if not self._busy:
                return
            await asyncio.sleep(0.05)

    def _connection(self) -> Connection:
        connection = Connection(self.plan.address, self.plan.trusted)
        connection.most_bytes = self.era.facts.most_model_bytes
        return connection

    async def _follow_growth(self, connection: Connection, items: int) -> None:
        """The catalogue has grown to so many items: everybody's device learns of them."""
        async with self._growing:
            for _ in range(MOST_OLDER_OFFERS):  # a worker of the server may not have heard of it yet
                if self.era.facts.n_items >= items or self._made is None:
                    return
                facts = read_facts((await self._request(connection, "GET", "/federation")).content)
                connection.most_bytes = max(connection.most_bytes, MOST_CATALOGUE_BYTES)
                listed = await self._request(connection, "GET", "/catalogue")
                try:
                    ids = read_catalogue(listed.content, facts).ids
                except BadAnswer:
                    ids = []
                if len(ids) >= items:
                    devices = self._made(facts, ids)
                    devices.take_over(self.era.devices)
                    self.era = Era(facts, devices, Models(facts))
                    self.tally.counts["catalogue has grown"] += 1
                    return
                await asyncio.sleep(SECONDS_UNTIL_ANOTHER)
            raise BadAnswer(f"The server has work on {items:,} items, and its catalogue has fewer.")

    async def _all(self, works: Any) -> None:
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _enrol(self, connection: Connection) -> None:
        async with self._gate:
            reply = await self._request(connection, "POST", "/devices", b"{}")
        if reply.status != 201:
            raise _broken(reply, "an enrolment")
        _, connection.token = read_enrolment(reply.content)

    async def _end(self) -> None:
        """Return when the plan is fulfilled."""
        connection = self._connection()
        first = await self._version(connection)
        began = time.monotonic()
        try:
            while True:
                await asyncio.sleep(0.1)
                all_sent = not self._living
                version = await self._version(connection)
                self.tally.rounds = version - first
                if self.plan.last_version is not None and version >= self.plan.last_version:
                    return
                if self.plan.seconds is not None and time.monotonic() - began >= self.plan.seconds:
                    return
                if all_sent and not self._reports:
                    return  # everybody has sent all their messages, and they are in the model
        finally:
            connection.close()

    async def _version(self, connection: Connection) -> int:
        reply = await self._request(connection, "GET", "/status")
        if reply.status != 200:
            raise _broken(reply, "its status")
        status = json.loads(reply.content)
        self._round, self._reports = int(status["round"]), int(status.get("reports", 0))
        return int(status["version"])

    async def _live(self, user: int, connection: Connection) -> None:
        have: Model | None = None
        older = 0
        while not self._ending and self.era.devices.may_take_part(user):
            if self.plan.rate is not None:
                await self._wait_for_turn()
            reply = await self._request(connection, "GET", f"/work?wait={LONG_POLL}", timeout=LONG_POLL + 30)
            if reply.status == 200:
                ticket = read_ticket(reply.content)
                if self.plan.last_version is not None and ticket.version >= self.plan.last_version:
                    await asyncio.Event().wait()  # the plan is fulfilled; its end comes from elsewhere
                if ticket.items is not None and ticket.items > self.era.facts.n_items:
                    await self._follow_growth(connection, ticket.items)
                    connection.most_bytes = self.era.facts.most_model_bytes
                older = older + 1 if have is not None and ticket.version < have.version else 0
                if older:
                    await self._pass_over(ticket, older)
                    continue
                if have is not None and len(have.vectors) != self.era.facts.n_items:
                    have = None  # of a smaller catalogue
                self._busy += 1
                try:
                    have = await self._interact(user, connection, ticket, have)
                finally:
                    self._busy -= 1
            elif _slug(reply) == "spent 409":
                break  # invited as often as it can be
            elif reply.status != 204:
                raise _broken(reply, "work")
        self._living -= 1
        await asyncio.Event().wait()  # the end comes from elsewhere

    async def _pass_over(self, ticket: Ticket, times: int) -> None:
        """A round from before the model that a device has is not for it; a server that offers no other is broken."""
        if times == MOST_OLDER_OFFERS:
            raise BadAnswer(
                f"The server has offered a device work on version {ticket.version} of its model {times} times in a "
                "row, and the device has a newer one: versions never go back. Was a backup restored without --restored?"
            )
        self.tally.counts["older round"] += 1
        await asyncio.sleep(SECONDS_UNTIL_ANOTHER)

    async def _wait_for_turn(self) -> None:
        assert self.plan.rate is not None
        now = time.monotonic()
        self._turn = max(self._turn, now - 1.0) + 1.0 / self.plan.rate
        await asyncio.sleep(max(0.0, self._turn - now))

    async def _interact(self, user: int, connection: Connection, ticket: Ticket, have: Model | None) -> Model | None:
        """One interaction; the model that the device has afterwards."""
        began, era = time.monotonic(), self.era
        path = f"/tasks/{ticket.ticket}"
        reply = await self._request(connection, "GET", path if have is None else f"{path}?have={have.version}")
        if reply.status != 200:
            self.tally.counts[_slug(reply)] += 1
            return have
        fetched = time.monotonic()
        model = era.models.known(have, ticket.version)
        if model is None:
            rows = read_rows(reply.content, era.facts)
            refuse_another_round(rows, ticket)
            model = era.models.receive(have, rows)
        body = await self._body(era, user, connection, ticket, model)
        if body is None:
            await asyncio.sleep(SECONDS_UNTIL_ANOTHER)
            return model
        if era.devices.vanishes(user, ticket.round_number, self.plan.vanish):
            self.tally.counts["vanished"] += 1
            await self._stay_away(ticket.round_number)
            return model
        sending = time.monotonic()
        reply = await self._request(connection, "POST", f"{path}/update", body)
        now = time.monotonic()
        if reply.status not in (200, 201):
            self.tally.counts[_slug(reply)] += 1
            return model
        if read_receipt(reply.content) != hashlib.sha256(body).hexdigest():
            raise BadAnswer("The server's receipt is not for what was sent.")
        self.tally.interactions += 1
        self.tally.took["task"].append(fetched - began)
        self.tally.took["upload"].append(now - sending)
        self.tally.took["interaction"].append(now - began)
        return model

    async def _body(self, era: Era, user: int, connection: Connection, ticket: Ticket, model: Model) -> bytes | None:
        """What a device sends; nothing where a round is over, or would tell more than was promised."""
        if self._pinned is None:
            return era.devices.message(user, ticket.round_number, model)
        offer = await self._offer(connection, self._pinned, ticket.round_number, model)
        if offer is None:
            return None
        body = era.devices.upload(user, model, Terms(self._pinned.charter, offer))
        if body is None:
            self.tally.counts["beyond the promise"] += 1
        return body

    async def _offer(self, connection: Connection, pinned: Pinned, number: int, model: Model) -> Offer | None:
        """A round's offer, checked as a person's device checks it; nothing where the round is over."""
        if number not in self._offers:
            reply = await self._request(connection, "GET", f"/sums/offer?round={number}")
            if reply.status != 200:
                self.tally.counts[_slug(reply)] += 1
                return None
            own = model._replace(vectors=model.vectors[:, : self.era.facts.factors])
            self._offers = {number: checked_offer(reply.content, self.era.facts, pinned, own, number)}
        return self._offers[number]

    async def _stay_away(self, round_number: int) -> None:
        """Until a round is over: asked again before, the server would hand out the same ticket."""
        while self._round <= round_number and not self._ending:
            await asyncio.sleep(0.05)

    async def _request(
        self, connection: Connection, method: str, path: str, body: bytes | None = None, timeout: float = 60.0
    ) -> Reply:
        """A reply, retried a few times with backoff where the server is away or busy."""
        attempts = self.plan.attempts
        for failed in range(attempts):
            try:
                reply = await connection.request(method, path, body, timeout=timeout)
                if reply.status != 429 and reply.status < 500:
                    return reply
                self.tally.counts[f"busy {reply.status}"] += 1
                if failed == attempts - 1:
                    return reply
            except NoAnswer:
                self.tally.counts["cut"] += 1
                if failed == attempts - 1:
                    raise
            await asyncio.sleep(min(FIRST_PAUSE * 2**failed, LONGEST_PAUSE))
        raise AssertionError("every attempt returns or raises")


def _slug(reply: Reply) -> str:
    return f"{read_refusal(reply.content)[0]} {reply.status}"


def _broken(reply: Reply, what: str) -> FedeRankError:
    return BadAnswer(f"The server answered {reply.status} when asked for {what}: {read_refusal(reply.content)[1]}")
