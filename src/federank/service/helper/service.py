"""The helper's process from within: its identity, its keys, its store, and the threads that ask the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from federank.service.helper.rounds import Helper, HelperSettings, open_identity, sweep
from federank.service.helper.store import FORMAT, SCHEMA, RoundKeys
from federank.service.server.http.limits import TokenBuckets
from federank.service.server.logs import Log
from federank.service.server.store.database import Connection, Database
from federank.service.server.store.schema import create_tables

# What an operator's monitoring asks a helper for, as Prometheus text: counts and times, of no one in particular.


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "federank_helper_requests", "Requests answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "federank_helper_request_seconds", "Time to answer.", ["route"], registry=self._registry
        )
        self._reports = Counter("federank_helper_reports", "Reports by outcome.", ["outcome"], registry=self._registry)
        self._refusals = Counter(
            "federank_helper_refusals", "Requests refused, by reason.", ["reason"], registry=self._registry
        )
        self._rounds = Gauge("federank_helper_rounds", "Rounds by state.", ["state"], registry=self._registry)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def reports(self, stand: int, fall: int) -> None:
        """This many reports stand, and this many do not."""
        self._reports.labels("stands").inc(stand)
        self._reports.labels("does not stand").inc(fall)

    def refused(self, reason: str) -> None:
        """A request was refused."""
        self._refusals.labels(reason).inc()

    def text(self, rounds: dict[str, int]) -> bytes:
        """Everything, as Prometheus reads it."""
        for state, count in rounds.items():
            self._rounds.labels(state).set(count)
        return generate_latest(self._registry)


Answer = TypeVar("Answer")
THREADS = 2


class HelperService:
    """What the endpoints need."""

    def __init__(self, database: Database, helper: Helper, log: Log) -> None:
        self.database, self.helper, self.log = database, helper, log
        self.settings = helper.settings
        self.metrics = Metrics()
        self.address_limit = TokenBuckets(helper.settings.address_rate)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="helper")

    async def ask(self, act: Callable[[Connection], Answer]) -> Answer:
        """Do something with the store, in a thread of its own."""

        def work() -> Answer:
            with self.database.connection() as connection:
                return act(connection)

        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def stop(self) -> None:
        """Finish what is under way, and let go of the store."""
        self._threads.shutdown(wait=True)
        self.database.close()


def open_helper(
    address: str, origin: str, keys: Path, settings: HelperSettings, log: Log, *, new_identity: bool = False
) -> HelperService:
    """A helper on its store, which is made if there is none."""
    database = Database(address)
    with database.connection() as connection:
        create_tables(connection, SCHEMA, FORMAT)
        helper = Helper(origin, open_identity(connection, renew=new_identity), RoundKeys(keys), settings)
        destroyed = sweep(connection, helper)
        if destroyed:
            log.say("keys destroyed", keys=destroyed)
    database.release()
    return HelperService(database, helper, log)
