"""Simulated clients against a real server: a rehearsal before users come, and a load test.

Each client behaves as a user's does: it enrols, waits for work, fetches the rows that changed, plays its part, sends
its Update, waits until its round has ended, and keeps nothing on disk. A share of them may vanish in each round after
they have learnt, as phones do. The fleet ends after a number of the server's rounds or of seconds, or when no one has a
message left. A fleet with successors does not run out: a client that has sent its uploads leaves, and the next user's
joins. The report has how many interactions (task, changed rows, upload, receipt) there were in a second, how long
requests took, and what crossed the wire.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from federank.errors import BadAnswer, FedeRankError, NoAnswer
from federank.federation.client import Model, Terms
from federank.secagg.round_config import Offer
from federank.service.client.federation import (
    FederationInfo,
    Ticket,
    read_catalogue,
    read_enrolment,
    read_info,
    read_outcome,
    read_receipt,
    read_rows,
    read_ticket,
    refuse_another_round,
)
from federank.service.client.http import read_refusal
from federank.service.client.rules import LONG_POLL, LONGEST_RETRY_AFTER, MOST_CATALOGUE_BYTES, MOST_OLDER_OFFERS
from federank.service.client.secure import Pinned, checked_offer, shows_no_sum
from federank.service.client.state import ABANDONED, RELEASED, UNKNOWN, WAITING
from federank.service.simulated_clients.connection import Connection, Reply
from federank.service.simulated_clients.methods import (
    Charge,
    Era,
    Models,
    Plan,
    Sent,
    SimulatedClients,
    Tally,
    vanishes,
)

ENROLLING_AT_ONCE = 32
SECONDS_TO_FINISH = 20
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 7.0
"""A fleet's backoff begins sooner than that of users' clients: someone waits for its figures."""
FIRST_LOOK, LONGEST_LOOK = 0.05, 0.4
"""Seconds between two questions about a round that has not ended."""
MOST_RELEASED = 3
"""Uploads in a row that are given back with discarded rounds: anyone who is left over in a fleet would go on for
ever.
"""
SECONDS_UNTIL_ANOTHER = 0.4
"""After a round that is not for a client, because its model is older than the client's, the next is asked for."""


class Fleet:
    """Clients of one process, and the server they talk to.

    `made` makes the same users' clients for another season, and `repin` checks its config.
    With `successors`, a client that has sent all its uploads leaves and the next of these users' clients joins; all
    leave at the end. `note` is called once if the server's rate limits slow the fleet down.
    """

    def __init__(
        self,
        plan: Plan,
        clients: SimulatedClients,
        models: Models,
        users: list[int],
        pinned: Pinned | None = None,
        made: Callable[[FederationInfo, list[str]], SimulatedClients] | None = None,
        successors: Iterable[int] | None = None,
        note: Callable[[str], object] = lambda _: None,
        repin: Callable[[Pinned, FederationInfo], Pinned] | None = None,
    ) -> None:
        self._repin = repin
        self.plan, self.users, self._made = plan, users, made
        self.era, self._growing = Era(models.info, clients, models), asyncio.Lock()
        self._pinned = pinned
        self._offers: dict[int, Offer] = {}  # of the newest round: every client is offered the same
        self._sent: dict[int, Sent] = {}  # by user: one upload each
        self._rounds: dict[int, asyncio.Task[str]] = {}  # what became of a round's uploads: asked once for all clients
        self._discarded: dict[int, int] = {}  # by user: uploads in a row that were discarded
        self.charged: dict[int, list[Charge]] = {}  # by user: the uploads of all seasons that are charged
        self.tally = Tally()
        self._turn = 0.0
        self._round = self._busy = self._reports = 0
        self._living = len(users)
        self._ending = False
        self._gate = asyncio.Semaphore(ENROLLING_AT_ONCE)
        self._connections: dict[int, Connection] = {}  # one for each place, by its first user
        self._successors, self._note = None if successors is None else iter(successors), note
        self._enrolled = 0
        self._is_limited = self._is_periodic = False

    async def play(self) -> Tally:
        """Enrol everyone, then take part until the plan's end."""
        await self.enrol()
        return await self.take_part()

    async def enrol(self) -> None:
        """Enrol everyone, as fast as the server allows."""
        self._connections = {user: self._connection() for user in self.users}
        try:
            await self._all(self._enrol(connection) for connection in self._connections.values())
        except BaseException:
            self._hang_up()
            raise

    async def exchange(self, leaving: Iterable[int], joining: Iterable[int]) -> None:
        """Between two seasons: some clients leave the federation, and those of other users join."""
        gone = {user: self._connections.pop(user) for user in leaving}
        await self._all(self._leave(connection) for connection in gone.values())
        new = {user: self._connection() for user in joining}
        await self._all(self._enrol(connection) for connection in new.values())
        self._connections |= new
        self.users = list(self._connections)

    def _hang_up(self) -> None:
        for connection in self._connections.values():
            connection.close()

    async def take_part(self) -> Tally:
        """Take part until the plan's end."""
        connections, self._living, self._ending = self._connections, len(self._connections), False
        for connection in connections.values():
            connection.sent = connection.received = 0
        began = self._turn = time.monotonic()
        places = [asyncio.create_task(self._keep_place(user, connection)) for user, connection in connections.items()]
        ending = asyncio.create_task(self._end())
        try:
            # These tasks end only by a fault, or once the end has come.
            done, _ = await asyncio.wait((ending, *places), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a client that has met a broken protocol ends the rehearsal
            await self._finish()
        finally:
            running: list[asyncio.Task[Any]] = [ending, *places, *self._rounds.values()]
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self.tally.seconds = time.monotonic() - began
            self.tally.bytes_up = sum(connection.sent for connection in connections.values())
            self.tally.bytes_down = sum(connection.received for connection in connections.values())
            self._hang_up()
        if self._successors is not None:
            await self._all(self._leave(connection) for connection in connections.values() if connection.token)
        return self.tally

    async def _finish(self) -> None:
        """No one begins any more; who holds a ticket may use it, so that no round waits in vain."""
        self._ending = True
        for _ in range(SECONDS_TO_FINISH * 20):
            if not self._busy:
                return
            await asyncio.sleep(0.05)

    def _connection(self) -> Connection:
        connection = Connection(self.plan.address, self.plan.trusted)
        connection.most_bytes = self.era.info.rules.model_bytes
        return connection

    async def follow_season(self, number: int) -> None:
        """Go on in this season, if it is a later one: the catalogue, config and quota are others."""
        connection = self._connection()
        try:
            async with self._growing:
                await self._follow_season(connection, number)
        finally:
            connection.close()

    async def _follow_season(self, connection: Connection, number: int) -> None:
        for _ in range(MOST_OLDER_OFFERS):  # a worker of the server may not know it yet
            if self.era.info.season >= number or self._made is None:
                return
            info = read_info((await self._request(connection, "GET", "/federation")).content)
            if info.season < number:
                await asyncio.sleep(SECONDS_UNTIL_ANOTHER)
                continue
            connection.most_bytes = max(connection.most_bytes, MOST_CATALOGUE_BYTES)
            listed = await self._request(connection, "GET", "/catalogue")
            try:
                ids = read_catalogue(listed.content, info).live_ids()
            except BadAnswer:
                await asyncio.sleep(SECONDS_UNTIL_ANOTHER)
                continue
            if self._pinned is not None:
                assert self._repin is not None, "a fleet that follows seasons of sums checks their configs"
                self._pinned = await asyncio.to_thread(self._repin, self._pinned, info)
            clients = self._made(info, ids)
            clients.take_over(self.era.clients)
            self.era, self._offers = Era(info, clients, Models(info)), {}
            self.tally.counts["season"] += 1
            return
        raise BadAnswer("The server says that another season has begun, and its catalogue is still the old one.")

    async def _all(self, works: Any) -> None:
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _enrol(self, connection: Connection) -> None:
        async with self._gate:
            reply = await self._request(connection, "POST", "/clients", b"{}")
        if reply.status != 201:
            raise _broken(reply, "an enrolment")
        _, connection.token = read_enrolment(reply.content)
        self._enrolled += 1

    async def _leave(self, connection: Connection) -> None:
        """Leave the federation: the server forgets the client."""
        async with self._gate:
            reply = await self._request(connection, "DELETE", "/clients/me")
        if reply.status not in (204, 401):
            raise _broken(reply, "a departure")
        connection.token = None
        connection.close()

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
                    return  # everyone has sent all their messages, and they are in the model
        finally:
            connection.close()

    async def _version(self, connection: Connection) -> int:
        reply = await self._request(connection, "GET", "/status")
        if reply.status != 200:
            raise _broken(reply, "its status")
        status = json.loads(reply.content)
        self._round, self._reports = int(status["round"]), int(status.get("reports", 0))
        return int(status["version"])

    async def _keep_place(self, user: int, connection: Connection) -> None:
        """Live as one client after the other, as long as there are successors.

        A client that leaves has no upload in an open round, which would be withdrawn with it: each was waited for.
        """
        while True:
            await self._live(user, connection)
            successor = None if self._successors is None else next(self._successors, None)
            if successor is None:
                break
            await self._leave(connection)
            await self._enrol(connection)
            user = successor
        self._living -= 1
        await asyncio.Event().wait()  # the end comes from elsewhere

    async def _live(self, user: int, connection: Connection) -> None:
        """Take part until no upload is left."""
        have: Model | None = None
        older = 0
        while not self._ending and self.era.clients.may_take_part(user):
            if self.plan.rate is not None:
                await self._wait_for_turn()
            reply = await self._request(connection, "GET", f"/work?wait={LONG_POLL}", timeout=LONG_POLL + 30)
            if reply.status == 200:
                ticket = read_ticket(reply.content)
                if self.plan.last_version is not None and ticket.version >= self.plan.last_version:
                    await asyncio.Event().wait()  # the plan is fulfilled; its end comes from elsewhere
                if ticket.season > self.era.info.season:
                    await self.follow_season(ticket.season)
                    connection.most_bytes = self.era.info.rules.model_bytes
                older = older + 1 if have is not None and ticket.version < have.version else 0
                if older:
                    await self._pass_over(ticket, older)
                    continue
                if have is not None and have.n_items != self.era.info.n_items:
                    have = None  # of a season before
                self._busy += 1
                began = time.monotonic()
                try:
                    have = await self._interact(user, connection, ticket, have)
                finally:
                    self._busy -= 1
                if await self._settle(user, connection):
                    await self._wait_for_period(began)
            elif _slug(reply) == "spent 409":
                break  # invited as often as it can be
            elif reply.status != 204:
                raise _broken(reply, "work")

    async def _pass_over(self, ticket: Ticket, times: int) -> None:
        """A round from before the model that a client has is not for it; a server that offers no other is broken."""
        if times == MOST_OLDER_OFFERS:
            raise BadAnswer(
                f"The server has offered a client work on version {ticket.version} of its model {times} times in a "
                "row, and the client has a newer one: versions never go back. Was a backup restored without --restored?"
            )
        self.tally.counts["older round"] += 1
        await asyncio.sleep(SECONDS_UNTIL_ANOTHER)

    async def _wait_for_turn(self) -> None:
        assert self.plan.rate is not None
        now = time.monotonic()
        self._turn = max(self._turn, now - 1.0) + 1.0 / self.plan.rate
        await asyncio.sleep(max(0.0, self._turn - now))

    async def _interact(self, user: int, connection: Connection, ticket: Ticket, have: Model | None) -> Model | None:
        """One interaction; the model that the client has afterwards."""
        began, era = time.monotonic(), self.era
        path = f"/tasks/{ticket.ticket}"
        reply = await self._request(connection, "GET", path if have is None else f"{path}?have={have.version}")
        if reply.status != 200:
            self.tally.counts[_slug(reply)] += 1
            return have
        fetched = time.monotonic()
        model = era.models.known(have, ticket.version)
        if model is None:
            rows = read_rows(reply.content, era.info)
            refuse_another_round(rows, ticket)
            model = era.models.receive(have, rows)
        body = await self._body(era, user, connection, ticket, model)
        if body is None:
            await asyncio.sleep(SECONDS_UNTIL_ANOTHER)
            return model
        if vanishes(era.clients.seed, user, ticket.round_number, self.plan.vanish):
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
        taken_by = int(json.loads(reply.content)["round"])
        self._sent[user] = Sent(ticket.ticket, taken_by, self._offers.get(ticket.round_number))
        noise = 0 if self._sent[user].offer is None else self._offers[ticket.round_number].noise
        self.charged.setdefault(user, []).append(Charge(era.info.season, noise))
        self.tally.interactions += 1
        self.tally.took["task"].append(fetched - began)
        self.tally.took["upload"].append(now - sending)
        self.tally.took["interaction"].append(now - began)
        return model

    async def _body(self, era: Era, user: int, connection: Connection, ticket: Ticket, model: Model) -> bytes | None:
        """What a client sends; nothing where a round is over, or would disclose more than was guaranteed."""
        if self._pinned is None:
            return era.clients.message(user, ticket.round_number, model)
        offer = await self._offer(connection, self._pinned, ticket.round_number, model)
        if offer is None:
            return None
        body = era.clients.upload(user, model, Terms(self._pinned.config, offer))
        if body is None:
            self.tally.counts["beyond the guarantee"] += 1
        return body

    async def _offer(self, connection: Connection, pinned: Pinned, number: int, model: Model) -> Offer | None:
        """A round's offer, checked as a person's client checks it; nothing where the round is over."""
        if number not in self._offers:
            reply = await self._request(connection, "GET", f"/sums/offer?round={number}")
            if reply.status != 200:
                self.tally.counts[_slug(reply)] += 1
                return None
            self._offers = {number: checked_offer(reply.content, self.era.info, pinned, model, number)}
        return self._offers[number]

    async def _settle(self, user: int, connection: Connection) -> bool:
        """Wait until the round of a client's upload has ended, after discarded ones longer each time; whether there
        was one.
        """
        sent = self._sent.pop(user, None)
        if sent is None:
            return False
        if sent.round_number not in self._rounds:
            asking = asyncio.create_task(self._outcome(connection, sent))
            self._rounds = {sent.round_number: asking} | dict(list(self._rounds.items())[:MOST_OLDER_OFFERS])
        word = await self._rounds[sent.round_number]
        if word not in (ABANDONED, RELEASED):
            self._discarded.pop(user, None)
            return True
        self.tally.counts["discarded"] += 1
        before = self._discarded.get(user, 0)
        self._discarded[user] = before + 1
        if word == RELEASED and before < MOST_RELEASED and sent.offer is not None:
            self.era.clients.release(user, sent.offer.noise)
            self.charged[user].pop()
        await asyncio.sleep(min(FIRST_PAUSE * 2 ** min(before, 10), LONGEST_PAUSE))
        return True

    async def _wait_for_period(self, sent: float) -> None:
        """Until the federation takes another upload of the same client."""
        period = self.era.info.upload_period
        if period and not self._is_periodic:
            self._is_periodic = True
            self._note(
                f"This federation takes one upload of a client per {period:,.0f} s, and the clients keep to it. A "
                "server started with --rehearsal has no period."
            )
        while not self._ending and (left := sent + period - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.5))

    async def _outcome(self, connection: Connection, sent: Sent) -> str:
        """What became of a round that has ended, in the client's words."""
        for look in itertools.count():
            reply = await self._request(connection, "GET", f"/tasks/{sent.ticket}/outcome")
            if reply.status != 200:
                self.tally.counts[_slug(reply)] += 1
                return UNKNOWN
            found = read_outcome(reply.content)
            if found.word != WAITING:
                break
            await asyncio.sleep(min(FIRST_LOOK * 2 ** min(look, 10), LONGEST_LOOK))
        if found.word != ABANDONED or self._pinned is None or sent.offer is None:
            return found.word
        offer = sent.offer.digest().hex()
        is_proven = await asyncio.to_thread(shows_no_sum, found.record, self._pinned, offer, sent.round_number)
        return RELEASED if is_proven else ABANDONED

    async def _stay_away(self, round_number: int) -> None:
        """Until a round is over: asked again before, the server would hand out the same ticket."""
        while self._round <= round_number and not self._ending:
            await asyncio.sleep(0.05)

    async def _request(
        self, connection: Connection, method: str, path: str, body: bytes | None = None, timeout: float = 60.0
    ) -> Reply:
        """A reply, retried a few times with backoff where the server is away or busy.

        A rate limit (429) that says when to retry is waited for as long as it takes: the server is there.
        """
        failed = 0
        while True:
            asked, is_limit = 0.0, False
            try:
                reply = await connection.request(method, path, body, timeout=timeout)
                if reply.status != 429 and reply.status < 500:
                    return reply
                self.tally.counts[f"busy {reply.status}"] += 1
                asked = min(reply.retry_after, LONGEST_RETRY_AFTER)
                is_limit = reply.status == 429 and asked > 0
                if failed == self.plan.attempts - 1 and not is_limit:
                    return reply
            except NoAnswer:
                self.tally.counts["cut"] += 1
                if failed == self.plan.attempts - 1:
                    raise
            if is_limit:
                self._note_limit()
            await asyncio.sleep(max(asked, min(FIRST_PAUSE * 2**failed, LONGEST_PAUSE)))
            failed += not is_limit

    def _note_limit(self) -> None:
        if not self._is_limited:
            self._is_limited = True
            self._note(
                f"The server's rate limits slow this fleet down: {self._enrolled:,} of {len(self.users):,} clients "
                "are enrolled, the others follow as it allows. A server started with --rehearsal has no limits."
            )


def _slug(reply: Reply) -> str:
    return f"{read_refusal(reply.content)[0]} {reply.status}"


def _broken(reply: Reply, what: str) -> FedeRankError:
    return BadAnswer(f"The server answered {reply.status} when asked for {what}: {read_refusal(reply.content)[1]}")
