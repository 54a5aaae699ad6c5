"""The helper's process from within: its identity, its keys, its store, and the threads that ask the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from federank.service.helper.metrics import Metrics
from federank.service.helper.round_keys import RoundKeys
from federank.service.helper.rounds import Helper, open_identity, sweep
from federank.service.helper.settings import HelperSettings
from federank.service.helper.store import FORMAT, SCHEMA
from federank.service.server.http.rate_limits import TokenBuckets
from federank.service.server.logs import Log
from federank.service.server.store.database import Connection, Database
from federank.service.server.store.schema import create_tables

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
