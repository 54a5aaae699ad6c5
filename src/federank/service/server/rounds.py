"""Rounds with devices out in the world: the fleet that `protocol.round.play_round` is handed, and who plays.

    choose   opens the round, or finds the one that a crash has left open
    train    waits for reports until there are enough or the time is up, closes the round, and yields the stored
             Updates in the stated order; a round with too few is abandoned instead
    fold     is `protocol.aggregation`, as in a simulation; its result is published together with the round's end

Everything that must survive is in the store before it counts, so the thread that plays can die anywhere: the next one
finds the round open, closed or folded and goes on. Clocks are not compared: a deadline is a span that the leading
worker measures from a round's first ticket on, and begins anew with a new leader.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.protocol.messages import Broadcast, Update
from federank.protocol.pairs.aggregation import Shared
from federank.protocol.round import play_round
from federank.service.server.founding import Charter
from federank.service.server.leader import Leadership
from federank.service.server.logs import Log
from federank.service.server.published import Published
from federank.service.server.settings import RoundSettings
from federank.service.server.store.database import Connection, Database, StoreAway
from federank.service.server.store.statements import (
    bodies_in_order,
    close_round,
    count_reports,
    get_fact,
    newest_round,
    next_round,
    open_round,
    state_of_round,
)
from federank.service.server.store.versions import newest_model, publish
from federank.service.server.uploads import KINDS, Form

LOOK_SECONDS = 0.05
"""How often the store is asked for news that came by other workers."""
CUT_SECONDS = 10.0
"""How long the store's log may hold bytes of Updates that were folded or given up (see `Connection.cut_log`)."""


class Abandoned(Exception):
    """The round ended below its minimum."""


class Stopped(Exception):
    """The server is about to end; the round stays open for the next."""


class RemoteFleet:
    """Devices that come when they come; what they sent is in the store."""

    def __init__(self, connection: Connection, model: Published, form: Form, conductor: Conductor) -> None:
        self._connection = connection
        self._conductor = conductor
        self._form = form
        self.model = model
        self.rounds = RoundSettings()
        self.opened = 0.0

    def choose(self, round_number: int) -> IntVector:
        """Open the round. Who takes part is whoever asks, up to the number of tickets: places, not names."""
        if state_of_round(self._connection, round_number) is None:
            while get_fact(self._connection, "paused"):
                self._conductor.cut_log(self._connection)
                self._conductor.wait(LOOK_SECONDS * 4)
        self.rounds = RoundSettings(**get_fact(self._connection, "rounds"))
        open_round(self._connection, round_number, self.model.version)
        self.opened = time.monotonic()
        self._conductor.tell_news()
        return np.arange(min(self.rounds.most_tickets, 2**20), dtype=np.int32)

    def train(self, clients: IntVector, broadcast: Broadcast) -> Iterator[Update]:  # noqa: ARG002 (they fetch it)
        """Wait for the devices, close the round, and yield what they sent."""
        number = broadcast.round_number
        self._wait_for_reports(number)
        buffered = self.rounds.mode == "buffered"
        if close_round(self._connection, number, self.rounds.minimum, opens_next=buffered) is None:
            raise Abandoned
        for kind, body in bodies_in_order(self._connection, number):
            yield KINDS[kind].summand(body, self._form)

    def _wait_for_reports(self, number: int) -> None:
        while True:
            now = newest_round(self._connection)
            if now is None or now.number != number or now.state != "open":
                return
            if not now.granted:
                self.opened = time.monotonic()  # a round's time begins with its first ticket
            reports, waited = now.reports, time.monotonic() - self.opened
            # A buffer has no reason to be thrown away: it goes on until it holds the minimum.
            may_end = self.rounds.mode == "rounds" or reports >= self.rounds.minimum
            if reports >= self.rounds.enough or (may_end and get_fact(self._connection, "close") == number):
                return
            if may_end and waited >= self.rounds.deadline:
                return
            self._conductor.cut_log(self._connection)
            self._count_until_enough(number, min(LOOK_SECONDS, max(0.001, self.rounds.deadline - waited)))

    def _count_until_enough(self, number: int, seconds: float) -> None:
        """Between two looks at everything, count only, whenever this process has stored something."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._conductor.wait(left) and count_reports(self._connection, number) >= self.rounds.enough:
                return


class Conductor:
    """The thread that leads, or stands by to lead."""

    def __init__(
        self,
        database: Database,
        charter: Charter,
        form: Form,
        keep_updates: bool,
        log: Log,
        tell_news: Callable[[], None],
    ) -> None:
        self._database, self._charter, self._form, self._keep = database, charter, form, keep_updates
        self._leadership = Leadership(database)
        self._log = log
        self.tell_news = tell_news
        self._nudged = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._stand_by, name="rounds", daemon=True)
        self.leads = False
        self._log_to_cut: float | None = None  # when the oldest bytes that linger in the store's log were overwritten

    def start(self) -> None:
        """Begin to lead, or to stand by."""
        self._thread.start()

    def stop(self) -> None:
        """End; the open round stays open."""
        self._stopping.set()
        self._nudged.set()
        self._thread.join()

    def nudge(self) -> None:
        """Something was stored: look at once."""
        self._nudged.set()

    def wait(self, seconds: float) -> bool:
        """Wait for news from this process, at most so long; whether there was any."""
        if self._stopping.is_set():
            raise Stopped
        nudged = self._nudged.wait(seconds)
        self._nudged.clear()
        return nudged

    def lingers(self) -> None:
        """Bytes of Updates were overwritten, and are still in the store's log."""
        if self._log_to_cut is None:
            self._log_to_cut = time.monotonic()

    def cut_log(self, connection: Connection) -> None:
        """Cut the store's log, when it is time to; if somebody is in the way, a second later."""
        now = time.monotonic()
        if self._log_to_cut is not None and now - self._log_to_cut >= CUT_SECONDS:
            self._log_to_cut = None if connection.cut_log() else now - CUT_SECONDS + 1.0

    def _stand_by(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._database.connection() as connection:
                    if self._leadership.taken(connection):
                        self.leads = True
                        self._log.say("leads")
                        self._conduct(connection)
            except Stopped:
                break
            except (StoreAway, OSError) as reason:
                self._log.say("store away", reason=type(reason).__name__)
            except Exception as fault:
                self._log.fault("rounds", fault)
            self.leads = False
            self._stopping.wait(0.3)
        self._leadership.give_up()
        self._database.let_go()

    def _conduct(self, connection: Connection) -> None:
        recipe = self._charter.recipe
        model = newest_model(connection)
        assert model is not None, "a federation is founded with a model"
        shared = Shared(model.vectors, model.biases, next_round(connection))
        self.lingers()  # whoever led before may have been cut off
        while True:
            fleet = RemoteFleet(connection, model, self._form, self)
            try:
                play_round(recipe, shared, fleet)
            except Abandoned:
                self._log.say("round abandoned", round=shared.round_number)
                shared.round_number += 1
                self.lingers()
                self.tell_news()
                continue
            number = shared.round_number - 1
            before, model = model, model.followed_by(shared.vectors, shared.biases)
            told = {"drift": _drift(before, model), "seconds": time.monotonic() - fleet.opened}
            publish(connection, number, model, told, self._keep)
            self.lingers()
            self.cut_log(connection)
            self._log.say("round folded", round=number, version=model.version, **told)
            self.tell_news()


def _drift(before: Published, after: Published) -> float:
    """How far a fold has moved the model, as a share of its size."""
    return _length(after.vectors - before.vectors) / (_length(before.vectors) or 1.0)


def _length(vectors: FloatMatrix) -> float:
    return float(np.sqrt(np.square(vectors, dtype=np.float64).sum()))
