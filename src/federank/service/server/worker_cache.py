"""What a worker knows: the published model, the newest round, how many clients there are.

A thread reads it from the store, at once when this process has changed something and every tenth of a second otherwise,
so that every worker sees what any of them did. Requests read it without waiting for anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from federank.federation.server import Published
from federank.service.server.logs import Log
from federank.service.server.model_versions import Extent, Signals, extent_of, signals_of
from federank.service.server.settings import RoundSettings
from federank.service.server.store.database import Connection, Database, StoreAway
from federank.service.server.store.queries import (
    Newest,
    RecentRounds,
    get_value,
    newest_round,
    recent_rounds,
    tallies,
)
from federank.service.server.store.seasons import is_resting
from federank.service.server.store.versions import newest_model, newest_version

LOOK_SECONDS = 0.1
RARELY_SECONDS = 1.0
_OLDER_MODELS = 4
"""Versions behind the newest whose models are kept: an upload is judged by the model that it was computed from."""


class Latest:
    """The newest state of the federation that this worker has seen."""

    def __init__(
        self,
        database: Database,
        log: Log,
        on_news: Callable[[], object] = lambda: None,
        on_version: Callable[[Connection], None] = lambda _connection: None,
    ) -> None:
        self._database, self._log, self._on_version = database, log, on_version
        self.on_news = on_news
        self.model: Published | None = None
        self.models: dict[int, Published] = {}
        self.round: Newest | None = None
        self.rounds = RoundSettings()
        self.seen_open = 0.0  # when this worker first saw the round
        self.clients = self.departures = self.abandoned = 0
        self.accuracy: dict[str, Any] | None = None
        self.signals = Signals()
        self.extent = Extent()
        self.recent = RecentRounds()
        self.helper_fault = ""  # where a helper takes part
        self.bounded: dict[str, int] = {}  # rows that the last server step bounded
        self.progress: dict[str, int] = {}  # how far learning has come, in the method's own figures
        self.simulated: dict[str, Any] | None = None  # of a demo: how its simulated clients are
        self.rejected: dict[str, Any] = {}  # aggregates that were not applied: how many, and the last one's reason
        self.paused = False
        self.fresh = 0.0  # when the store last answered
        self._rarely = -RARELY_SECONDS
        self._skipped = 0  # numbers that a restore or a rollback left out (store/versions.py)
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._follow, name="view", daemon=True)

    def start(self) -> None:
        """Look once, then keep looking."""
        with self._database.connection() as connection:
            self.look(connection)
        self._database.release()
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping = True
        self._woken.set()
        self._thread.join()

    def wake(self) -> None:
        """Something has changed: look at once."""
        self._woken.set()

    def is_fresh(self) -> bool:
        """Whether the store has answered lately."""
        return time.monotonic() - self.fresh < 3.0

    def seconds_left(self) -> float:
        """Until the open round's deadline, as far as this worker knows."""
        return max(0.0, self.rounds.deadline - (time.monotonic() - self.seen_open))

    def has_enough(self, number: int) -> bool:
        """Whether a round is open and needs no further upload: an invitation to it is withdrawn."""
        now = self.round
        return now is not None and now.number == number and now.reports >= self.rounds.target

    @property
    def aggregated(self) -> int:
        """How many rounds were aggregated: each has made a version."""
        return 0 if self.model is None else self.model.version - self._skipped

    def look(self, connection: Connection) -> bool:
        """Read the newest state; whether a round or a version is new."""
        newest, known = newest_round(connection), self.model
        before = (
            -1 if known is None else known.version,
            self.round and (self.round.number, self.round.state),
            self.paused,
        )
        if known is None or newest_version(connection) > known.version:
            model = newest_model(connection, known)
            if model is not None:
                self._on_version(connection)  # before the model is served
                self._take_in(model)
        is_new = newest is not None and (self.round is None or newest.number != self.round.number)
        if is_new or self.round is None:
            self.rounds = RoundSettings(**get_value(connection, "rounds"))
        if is_new or self.round is None or (newest is not None and not newest.granted):
            self.seen_open = time.monotonic()  # a round's time begins with its first ticket
        self.round = newest
        if time.monotonic() - self._rarely >= RARELY_SECONDS:
            self._look_rarely(connection)
        self.fresh = time.monotonic()
        now = -1 if self.model is None else self.model.version, newest and (newest.number, newest.state), self.paused
        return now != before

    def _take_in(self, model: Published) -> None:
        if self.model is not None and model.version == self.model.version + 1:
            self.signals = signals_of(self.model, model)
        self.extent = extent_of(model)
        oldest = model.version - _OLDER_MODELS
        self.models = {version: kept for version, kept in self.models.items() if version >= oldest}
        self.models[model.version] = self.model = model

    def _look_rarely(self, connection: Connection) -> None:
        self._rarely = time.monotonic()
        self.clients, self.departures, self.abandoned = tallies(connection)
        self.accuracy = get_value(connection, "accuracy")
        self.bounded = get_value(connection, "bounded") or {}
        self.progress = get_value(connection, "progress") or {}
        self.rejected = get_value(connection, "rejected") or {}
        self._skipped = int(get_value(connection, "skipped") or 0)
        self.simulated = get_value(connection, "simulated")
        self.paused = is_resting(connection)
        self.recent = recent_rounds(connection)
        self.helper_fault = get_value(connection, "helper fault") or ""

    def _follow(self) -> None:
        while not self._stopping:
            try:
                with self._database.connection() as connection:
                    if self.look(connection):
                        self.on_news()
                pause = LOOK_SECONDS
            except StoreAway:
                pause = 0.5
            except Exception as fault:
                self._log.fault("view", fault)
                pause = 0.5
            self._woken.wait(pause)
            self._woken.clear()
        self._database.release()
