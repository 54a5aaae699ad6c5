"""The helper's process from within: its identity, its keys, its store, and the threads that ask the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from federank.secagg.upload import Report
from federank.service.helper.rounds import Helper, HelperSettings, open_identity, sweep
from federank.service.helper.store import FORMAT, SCHEMA, RoundKeys, probe
from federank.service.server.http.limits import TokenBuckets
from federank.service.server.http.responses import Refusal
from federank.service.server.logs import Log
from federank.service.server.store.database import Connection, Database, StoreAway
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
        self._work = Counter(
            "federank_helper_work_seconds", "CPU time, by the leader's key.", ["leader"], registry=self._registry
        )
        self._faults = Gauge(
            "federank_helper_fault", "1: why this helper cannot serve.", ["code"], registry=self._registry
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

    def worked(self, leader: str, seconds: float) -> None:
        """This much CPU time went into a leader's requests."""
        self._work.labels(leader).inc(seconds)

    def refused(self, reason: str) -> None:
        """A request was refused."""
        self._refusals.labels(reason).inc()

    def faults(self, codes: Iterable[str]) -> None:
        """What is wrong with this helper now."""
        self._faults.clear()
        for code in codes:
            self._faults.labels(code).set(1)

    def text(self, rounds: dict[str, int]) -> bytes:
        """Everything, as Prometheus reads it."""
        for state, count in rounds.items():
            self._rounds.labels(state).set(count)
        return generate_latest(self._registry)


# The time of the processor: every leader has an equal share of it.


SLICE_SECONDS = 0.05
"""Work is done in slices of about this long; between two of them another leader may go first."""
MOST_QUEUED_SECONDS = 30.0
"""Work that one leader may have waiting; a request beyond it is refused until some is done (429)."""


def price(length: int, *, is_checked: bool) -> float:
    """Seconds that one report of this many numbers takes, about: opening it, its mask, and its proof if it has one."""
    return 0.0003 + length * (40e-9 if is_checked else 4e-9)


class FairShare:
    """Slots of work, handed to the leader that has used the least time so far."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._used: dict[str, float] = {}
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._floor = 0.0  # the least that one who works has used: who comes now has no credit from before
        self._queued: dict[str, float] = {}

    def admit(self, leader: str, seconds: float) -> None:
        """Take on work of about this long; refused where the leader has too much waiting already."""
        queued = self._queued.get(leader, 0.0)
        if queued and queued + seconds > MOST_QUEUED_SECONDS:
            raise Refusal(429, "busy", "This leader has too much work waiting here; ask again.", {"Retry-After": "2"})
        self._queued[leader] = queued + seconds

    def done(self, leader: str, seconds: float) -> None:
        """Work that was taken on is done, or given up."""
        self._queued[leader] -= seconds
        if self._queued[leader] < 1e-9:
            del self._queued[leader]

    async def acquire(self, leader: str) -> None:
        """Wait for a slot."""
        self._used[leader] = max(self._used.get(leader, 0.0), self._floor)
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((leader, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(leader, 0.0)
            else:
                self._waiting.remove((leader, turn))
            raise

    def release(self, leader: str, seconds: float) -> None:
        """Give the slot to the caller that has used least."""
        self._used[leader] += seconds
        if not self._waiting:
            self._free += 1
            return
        place = min(range(len(self._waiting)), key=lambda n: self._used[self._waiting[n][0]])
        following, turn = self._waiting.pop(place)
        self._floor = self._used[following]
        turn.set_result(None)


Answer = TypeVar("Answer")
THREADS = 2
CHECK_SECONDS = 15.0
"""How often a helper looks whether it can serve."""


class HelperService:
    """What the endpoints need."""

    def __init__(self, database: Database, helper: Helper, log: Log) -> None:
        self.database, self.helper, self.log = database, helper, log
        self.settings = helper.settings
        self.metrics = Metrics()
        self.address_limit = TokenBuckets(helper.settings.address_rate)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="helper")
        self._workers = ThreadPoolExecutor(THREADS, thread_name_prefix="work")
        self.share = FairShare(THREADS)
        self.certificate: Path | None = None
        self._faults: dict[str, str] = {}

    async def ask(self, act: Callable[[Connection], Answer]) -> Answer:
        """Do something with the store, in a thread of its own."""

        def work() -> Answer:
            with self.database.connection() as connection:
                return act(connection)

        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def check(self) -> dict[str, str]:
        """What keeps this helper from serving, with what to do about it; what is new is logged once."""

        def look() -> dict[str, str]:
            faults = {}
            try:
                with self.database.connection() as connection:
                    probe(connection)
            except StoreAway as reason:
                code = "full" if reason.is_full else "store-away"
                faults[code] = "Free space on the store's disk." if reason.is_full else "Look at the store's database."
            try:
                self.helper.keys.probe()
            except OSError:
                faults["keys"] = "The folder of round keys cannot be written: free its memory (--keys)."
            if self.certificate is not None and _has_expired(self.certificate, self.helper.clock()):
                faults["certificate"] = "The certificate has expired: renew it, then send SIGHUP."
            return faults

        faults = await asyncio.get_running_loop().run_in_executor(self._threads, look)
        for code, remedy in faults.items():
            if code not in self._faults:
                self.log.say("not ready", "error", state=code, remedy=remedy)
        if self._faults and not faults:
            self.log.say("ready again")
        self._faults = faults
        self.metrics.faults(faults)
        return faults

    async def watch(self) -> None:
        """Check again and again, for as long as the helper runs."""
        while True:
            await self.check()
            await asyncio.sleep(CHECK_SECONDS)

    async def work(
        self, leader: str, act: Callable[[Connection, list[Report]], Answer], reports: list[Report], each: float
    ) -> list[Answer]:
        """Do something with reports that cost `each` seconds, slice by slice, as the leader's share allows."""
        size, total = max(1, int(SLICE_SECONDS / each)), each * len(reports)
        self.share.admit(leader, total)
        try:
            return [
                await self._slice(leader, act, reports[start : start + size]) for start in range(0, len(reports), size)
            ]
        finally:
            self.share.done(leader, total)

    async def _slice(
        self, leader: str, act: Callable[[Connection, list[Report]], Answer], reports: list[Report]
    ) -> Answer:
        spent = 0.0

        def work() -> Answer:
            nonlocal spent
            began = time.thread_time()
            try:
                with self.database.connection() as connection:
                    return act(connection, reports)
            finally:
                spent = time.thread_time() - began

        await self.share.acquire(leader)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        finally:
            self.share.release(leader, spent)
            self.metrics.worked(leader, spent)

    def stop(self) -> None:
        """Finish what is under way, and let go of the store."""
        self._threads.shutdown(wait=True)
        self._workers.shutdown(wait=True)
        self.helper.keys.close()
        self.database.close()


def _has_expired(certificate: Path, now: float) -> bool:
    """Whether a certificate is too old; one that cannot be read is reported by its reader."""
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc.timestamp() < now
    except (OSError, ValueError):
        return False


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
