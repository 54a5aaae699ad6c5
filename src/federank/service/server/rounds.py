"""Rounds with devices out in the world: what `protocol.round.play_round` is handed here, and who plays.

    choose       opens the round, or finds the one that a crash has left open
    distribute   names the version that is published; devices fetch it when they come
    train        waits for reports until there are enough or the time is up, closes the round, and reads the stored
                 Updates in the stated order; a round with too few is abandoned instead
    aggregate    is that of the family, as in a simulation; its result is published together with the round's end

Everything that must survive is in the store before it counts, so the thread that plays can die anywhere: the next one
finds the round open, closed or folded and goes on. Clocks are not compared: a deadline is a span that the leading
worker measures from a round's first ticket on, and begins anew with a new leader.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix
from federank.protocol.round import play_round
from federank.service.server.families.family import Family, Form
from federank.service.server.federation.charter import Charter
from federank.service.server.federation.published import Published
from federank.service.server.logs import Log
from federank.service.server.settings import RoundSettings
from federank.service.server.store.database import Connection, Database, StoreAway
from federank.service.server.store.leader_lock import LeaderLock
from federank.service.server.store.statements import (
    bodies_in_order,
    close_round,
    count_reports,
    get_fact,
    newest_round,
    next_round,
    open_round,
    state_of_round,
    tallies,
)
from federank.service.server.store.versions import model_to_fold, publish

LOOK_SECONDS = 0.05
"""How often the store is asked for news that came by other workers."""
LONGEST_DIRTY_SECONDS = 10.0
"""How long the store's log may hold bytes of Updates that were folded or given up (see `Connection.truncate_log`)."""


class Abandoned(Exception):
    """The round ended below its minimum."""


class Stopped(Exception):
    """The server is about to end; the round stays open for the next."""


class PublishedModel:
    """The shared model as the world knows it: a version of it is what devices fetch."""

    def __init__(self, charter: Charter, connection: Connection) -> None:
        self._charter, self._connection = charter, connection
        self.published, self.round_number = model_to_fold(connection), next_round(connection)

    def distribute(self, recipe: None) -> Published:
        """The version that is published: nothing has to be copied or sent."""
        del recipe
        return self.published

    def aggregate(self, recipe: None, updates: Iterable[Any]) -> None:
        """Fold a round's Updates in as a simulation does; the next version is there, and the next round begins.

        The recipe is worked out now, as how many devices there are may matter to it.
        """
        del recipe
        family, settings = self._charter.family, self._charter.settings
        now = family.recipe(settings, self._charter.n_items, tallies(self._connection).devices)
        content = family.fold(now, self.published, self.round_number, updates)
        self.published = self.published.followed_by(content)
        self.round_number += 1


class OpenRound(NamedTuple):
    """A round that devices may join: whoever asks gets a ticket, as long as there are any; nobody is named."""

    number: int
    rules: RoundSettings


class RemoteFleet:
    """Devices that come when they come; what they sent is in the store."""

    def __init__(self, connection: Connection, version: int, family: Family, form: Form, leader: Leader) -> None:
        self._connection = connection
        self._family = family
        self._leader = leader
        self._form = form
        self._version = version
        self.opened = 0.0

    def choose(self, round_number: int) -> OpenRound:
        """Open the round to whoever asks."""
        if state_of_round(self._connection, round_number) is None:
            while get_fact(self._connection, "paused"):
                self._leader.truncate_log(self._connection)
                self._leader.wait(LOOK_SECONDS * 4)
        rules = RoundSettings(**get_fact(self._connection, "rounds"))
        open_round(self._connection, round_number, self._version)
        self.opened = time.monotonic()
        self._leader.announce()
        return OpenRound(round_number, rules)

    def train(self, clients: OpenRound, broadcast: Published) -> Iterator[Any]:
        """Wait for the devices, close the round; what they sent, in the stated order."""
        del broadcast  # each device fetches the rows that it lacks
        number, rules = clients
        self._wait_for_reports(number, rules)
        buffered = rules.mode == "buffered"
        if close_round(self._connection, number, rules.minimum, opens_next=buffered) is None:
            raise Abandoned
        return self._updates(number)

    def _updates(self, number: int) -> Iterator[Any]:
        for kind, body in bodies_in_order(self._connection, number):
            yield self._family.kinds[kind].summand(body, self._form)

    def _wait_for_reports(self, number: int, rules: RoundSettings) -> None:
        while True:
            now = newest_round(self._connection)
            if now is None or now.number != number or now.state != "open":
                return
            if not now.granted:
                self.opened = time.monotonic()  # a round's time begins with its first ticket
            reports, waited = now.reports, time.monotonic() - self.opened
            # A buffer has no reason to be thrown away: it goes on until it holds the minimum.
            may_end = rules.mode == "rounds" or reports >= rules.minimum
            if reports >= rules.enough or (may_end and get_fact(self._connection, "close") == number):
                return
            if may_end and waited >= rules.deadline:
                return
            self._leader.truncate_log(self._connection)
            self._count_until(rules.enough, number, min(LOOK_SECONDS, max(0.001, rules.deadline - waited)))

    def _count_until(self, enough: int, number: int, seconds: float) -> None:
        """Between two looks at everything, count only, whenever this process has stored something."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._leader.wait(left) and count_reports(self._connection, number) >= enough:
                return


class Leader:
    """The thread that leads, or stands by to lead."""

    def __init__(
        self,
        database: Database,
        charter: Charter,
        form: Form,
        keep_updates: bool,
        log: Log,
        announce: Callable[[], None],
    ) -> None:
        self._database, self._charter, self._form, self._keep = database, charter, form, keep_updates
        self._lock = LeaderLock(database)
        self._log = log
        self.announce = announce
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._stand_by, name="rounds", daemon=True)
        self.leads = False
        self._log_dirty_since: float | None = None  # overwritten bytes are in the store's log since then

    def start(self) -> None:
        """Begin to lead, or to stand by."""
        self._thread.start()

    def stop(self) -> None:
        """End; the open round stays open."""
        self._stopping.set()
        self._woken.set()
        self._thread.join()

    def wake(self) -> None:
        """Something was stored: look at once."""
        self._woken.set()

    def wait(self, seconds: float) -> bool:
        """Wait for news from this process, at most so long; whether there was any."""
        if self._stopping.is_set():
            raise Stopped
        woken = self._woken.wait(seconds)
        self._woken.clear()
        return woken

    def mark_log_dirty(self) -> None:
        """Bytes of Updates were overwritten, and are still in the store's log for a while."""
        if self._log_dirty_since is None:
            self._log_dirty_since = time.monotonic()

    def truncate_log(self, connection: Connection) -> None:
        """Truncate the store's log, when it is time to; if somebody is in the way, retry a second later."""
        now = time.monotonic()
        if self._log_dirty_since is not None and now - self._log_dirty_since >= LONGEST_DIRTY_SECONDS:
            self._log_dirty_since = None if connection.truncate_log() else now - LONGEST_DIRTY_SECONDS + 1.0

    def _stand_by(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._database.connection() as connection:
                    if self._lock.acquire(connection):
                        self.leads = True
                        self._log.say("leads")
                        self._lead(connection)
            except Stopped:
                break
            except (StoreAway, OSError) as reason:
                self._log.store_away(reason)
            except Exception as fault:
                self._log.fault("rounds", fault)
            self.leads = False
            self._stopping.wait(0.3)
        self._lock.release()
        self._database.release()

    def _lead(self, connection: Connection) -> None:
        shared = PublishedModel(self._charter, connection)
        self.mark_log_dirty()  # whoever led before may have been cut off
        while True:
            before = shared.published
            fleet = RemoteFleet(connection, before.version, self._charter.family, self._form, self)
            try:
                play_round(None, shared, fleet)
            except Abandoned:
                self._log.say("round abandoned", "warning", round=shared.round_number)
                shared.round_number += 1
                self.mark_log_dirty()
                self.announce()
                continue
            number = shared.round_number - 1
            model = shared.published
            measured = {"drift": _drift(before, model), "seconds": time.monotonic() - fleet.opened}
            publish(connection, number, model, measured, self._keep)
            self.mark_log_dirty()
            self.truncate_log(connection)
            self._log.say("round folded", "info", round=number, version=model.version, **measured)
            self.announce()


def _drift(before: Published, after: Published) -> float:
    """How far a fold has moved the model, as a share of its size."""
    return _length(after.vectors - before.vectors) / (_length(before.vectors) or 1.0)


def _length(vectors: FloatMatrix) -> float:
    return float(np.sqrt(np.square(vectors, dtype=np.float64).sum()))
