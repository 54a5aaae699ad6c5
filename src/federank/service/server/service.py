"""One worker of the service: everything that its requests need, made, started and stopped together."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Thread
from typing import Any

from federank.federation.server import Form
from federank.service.server.config import FederationConfig, read_config
from federank.service.server.http.limits import Ranges, TokenBuckets
from federank.service.server.logs import Log
from federank.service.server.metrics import Health, HealthInputs, Metrics, health_of, round_due
from federank.service.server.model_versions import EncodedRows
from federank.service.server.rounds import Leader, form_of
from federank.service.server.selection import Selection
from federank.service.server.settings import TrustSettings
from federank.service.server.store.database import Connection, Database, StoreAway
from federank.service.server.store.queries import Owner, count_refusals, owner_of
from federank.service.server.store.seasons import current_season
from federank.service.server.store.writer import REFUSALS, Writer
from federank.service.server.worker_cache import Latest

MOST_KNOWN = 200_000
REFUSALS_SECONDS = 0.5


class Service:
    """A worker: its view of the federation, its writer, and its part in the rounds."""

    def __init__(self, database: Database, config: FederationConfig, trust: TrustSettings, log: Log) -> None:
        self.database, self.config, self.trust, self.log = database, config, trust, log
        self.form = form_of(config, trust)
        self.metrics = Metrics()
        self.encoded = EncodedRows(config.encode)
        self.latest = Latest(database, log, on_version=self._follow_season)
        self.leader = Leader(
            database, config, trust, log, self.latest.wake, self.metrics.upload, invited_only=self.invited_only
        )
        self.writer = Writer(database, after=self.leader.wake, on_fault=log.store_away)
        invitations = config.served.uploads_of(config.settings)
        self.selection = Selection(self.latest, self.writer, config.ticket_key, log, invitations, config.uploads_now)
        self.client_limit = TokenBuckets(trust.client_rate)
        self.address_limit = TokenBuckets(trust.address_rate)
        self.enrolment_limit = TokenBuckets(trust.enrolment_rate, least_burst=20.0)
        self.range_limit = TokenBuckets(trust.range_rate, least_burst=200.0)
        self.ranges = Ranges()
        self.admin_hash = config.admin_hash
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="reader")
        self._known: OrderedDict[bytes, Owner] = OrderedDict()
        self._departures = 0
        self._began = time.time()
        self._refusals: Counter[str] = Counter()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def invited_only(self) -> bool:
        """Whether only invited clients are let in and counted: as the operator says, else where sums have no noise."""
        if self.trust.invited_only is not None:
            return self.trust.invited_only
        return self.config.sums is not None and not self.config.sums.config.has_noise

    async def start(self) -> None:
        """Begin: threads that write, follow the store and lead; tasks that serve those who wait."""
        self.latest.on_news = partial(asyncio.get_running_loop().call_soon_threadsafe, self.selection.wake)
        self.latest.start()
        self._departures = self.latest.departures
        self.writer.start()
        self.leader.start()
        self._tasks = [asyncio.create_task(self.selection.hand_out()), asyncio.create_task(self._report_refusals())]

    async def stop(self) -> None:
        """End; an open round stays open in the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in (self.leader, self.latest, self.writer):
            await asyncio.to_thread(part.stop)
        self._readers.shutdown(wait=True)
        self.database.close()

    def _follow_season(self, connection: Connection) -> None:
        """Another version has been published: read the config again where another season has begun with it."""
        if current_season(connection) == self.config.season:
            return
        self.config = _config(connection)
        self.form = form_of(self.config, self.trust)
        self.encoded = EncodedRows(self.config.encode)
        self.selection.invitations = self.config.served.uploads_of(self.config.settings)

    async def read(self, query: Any) -> Any:
        """Ask the store something, in a thread of its own."""

        def ask() -> Any:
            with self.database.connection() as connection:
                return query(connection)

        return await asyncio.get_running_loop().run_in_executor(self._readers, ask)

    async def read_apart(self, query: Any) -> Any:
        """The same for what also waits for the helper: the end of the process does not wait for it."""
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()

        def ask() -> None:
            try:
                with self.database.connection() as connection:
                    give = partial(answer.set_result, query(connection))
            except Exception as reason:
                give = partial(answer.set_exception, reason)
            self.database.release()
            give()

        Thread(target=ask, name="apart", daemon=True).start()
        return await asyncio.wrap_future(answer)

    async def client_of_token(self, token_hash: bytes) -> Owner | None:
        """Whose token this is; remembered while no one has left."""
        if self.latest.departures != self._departures:
            self._departures = self.latest.departures
            self._known.clear()
        client = self._known.get(token_hash)
        if client is None:
            client = await self.read(lambda connection: owner_of(connection, token_hash))
            if client is not None:
                self.remember(token_hash, client)
        return client

    def remember(self, token_hash: bytes, client: Owner) -> None:
        """This token is a client's."""
        self._known[token_hash] = client
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def forget(self, token_hash: bytes) -> None:
        """This token is no one's any more."""
        self._known.pop(token_hash, None)

    def health(self) -> Health:
        """How the federation is, as this worker sees it."""
        latest = self.latest
        since = max(latest.recent.last_aggregated or 0.0, self._began)
        is_due = latest.clients > 0 and not latest.paused
        return health_of(
            HealthInputs(
                recent=latest.recent,
                model=latest.extent,
                highest=getattr(self.config.settings, "highest", None),
                helper_fault=latest.helper_fault if self.config.sums is not None else "",
                store_away=self.writer.fault is not None or not latest.is_fresh(),
                seconds_without_round=time.time() - since if is_due else None,
                round_due=round_due(latest.rounds.deadline, self.config.upload_period),
                clients=latest.clients,
                free_disk=self.database.free_bytes(),
            )
        )

    def form_for(self, version: int) -> Form:
        """What an upload must look like that was made from a version of the model."""
        served, model = self.config.served, self.latest.models.get(version)
        if model is None:
            return self.form
        settings = self.config.settings
        if self.config.sums is None:
            return served.form_of(settings, self.form, model)
        numbers = self.config.sums.config.length_of(served.stage(model), served.rows(settings, model))
        return self.form._replace(numbers=numbers)

    def refused(self, reason: str) -> None:
        """Count an upload that was refused."""
        self.metrics.upload(reason)
        self._refusals[reason] += 1

    async def _report_refusals(self) -> None:
        while True:
            await asyncio.sleep(REFUSALS_SECONDS)
            counts, number = dict(self._refusals), self.latest.round.number if self.latest.round else 0
            if not counts:
                continue
            self._refusals.clear()
            try:
                await self.writer.write(partial(count_refusals, number=number, counts=counts), REFUSALS)
            except StoreAway:
                self._refusals.update(counts)  # counted when the store is back


def open_service(address: str, trust: TrustSettings, log: Log) -> Service:
    """A worker on a store that holds a federation."""
    database = Database(address)
    with database.connection() as connection:
        config = _config(connection)
    database.release()
    return Service(database, config, trust, log)


def _config(connection: Connection) -> FederationConfig:
    config = read_config(connection)
    if config is None:
        raise StoreAway("The store holds no federation yet.")
    return config
