"""Rounds with real clients, and the worker that leads them.

    open         opens the round, or continues the one that a crash has left open
    uploads      waits for uploads until there are enough or the time is up, closes the round, and reads what is stored
                 in the stated order; a round with too few is discarded instead
    aggregate    is that of the method, as in a simulation; its result is published together with the round's end

Everything that must survive is in the store before it counts, so the leading thread can die anywhere: the next one
reads the round as open, closed or aggregated and continues. Clocks are not compared: a deadline is a span that the
leading worker measures from a round's first ticket on, and begins again with a new leader.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import BadMessage, SettingError
from federank.federation.defences import NO_DEFENCES, Defences, Rows, defend
from federank.federation.server import Content, Form, Published
from federank.secagg.upload import upload_bytes
from federank.service.server.config import FederationConfig, read_config
from federank.service.server.helper_line import REMEDIES, HelperLine
from federank.service.server.logs import Log
from federank.service.server.methods import ServerMethod
from federank.service.server.model_versions import signals_of
from federank.service.server.secure_config import Agreement
from federank.service.server.secure_rounds import RoundOfSums, Unavailable
from federank.service.server.settings import RoundSettings, TrustSettings
from federank.service.server.store.database import Connection, Database, LeaderLock, StoreAway
from federank.service.server.store.evaluation import undo_fall
from federank.service.server.store.grants import uncharge_absent
from federank.service.server.store.queries import (
    bodies_in_order,
    close_round,
    count_reports,
    discard_round,
    get_value,
    newest_round,
    next_round,
    note_rejected,
    open_round,
    put_value,
    state_of_round,
    tallies,
)
from federank.service.server.store.seasons import current_season, is_resting
from federank.service.server.store.secure import abandon_unopened
from federank.service.server.store.versions import Overtaken, model_with_state, publish

LOOK_SECONDS = 0.05
"""How often the store is asked for news that came by other workers."""
FIRST_WAIT, LONGEST_WAIT = 0.3, 30.0
"""Seconds before a leader that has failed tries again: twice as long each time."""
LONGEST_STOP = 0.2
"""Seconds that the end of a process waits for its leader."""
LONGEST_DIRTY_SECONDS = 10.0
"""How long the store's log may hold bytes of aggregated or discarded uploads (see `Connection.truncate_log`)."""


class Abandoned(Exception):
    """The round ended below its minimum."""


class Rejected(Exception):
    """The aggregate must not become a model; the reason is for the operator."""


class SeasonBegun(Exception):
    """Another season has begun: its config is another, and so is the model."""


class Stopped(Exception):
    """The server is about to end; the round stays open for the next."""


def form_of(config: FederationConfig, trust: TrustSettings) -> Form:
    """What an upload must look like; those of sums have one length in a round."""
    form = config.served.form(config.settings, config.n_items, trust.most_norm)
    if config.sums is None:
        return form
    if trust.keep_updates:
        raise SettingError(
            "keep_updates is on, but this federation's uploads are added up as they come and none is kept; leave "
            "--keep-updates out."
        )
    terms = config.sums.config
    longest = max(terms.length_of(stage) for stage in range(min(2, terms.messages)))
    check = terms.norm_check()
    return form._replace(most_bytes=upload_bytes(longest, check), check=check)


def defences_of(config: FederationConfig, trust: TrustSettings) -> Defences:
    """What one server step may do: as the operator says, or as the method has it."""
    row, move = config.served.kind.defences
    return Defences(
        row if trust.row_quantile is None else trust.row_quantile,
        move if trust.move_quantile is None else trust.move_quantile,
    )


class PublishedModel:
    """The shared model as it is published: clients fetch a version of it."""

    def __init__(self, config: FederationConfig, connection: Connection, defences: Defences = NO_DEFENCES) -> None:
        self._config, self._connection, self._defences = config, connection, defences
        self.held = self.capped = 0  # rows that the last step would have moved or lengthened too much
        self.published, self.round_number = model_with_state(connection), next_round(connection)
        self.enrolled = 0  # clients that the last server step was scaled to

    def aggregate(self, updates: Iterable[Any]) -> None:
        """Aggregate a round's updates as a simulation does: the next version, and the number of the next round.

        The recipe is made now, because it may depend on the number of enrolled clients. A model that is off the
        method's scale, or that clients would refuse, raises `Rejected`; the one before stays.
        """
        self.enrolled = tallies(self._connection).clients
        try:
            model = self.published.followed_by(self._aggregated(updates))
        except BadMessage as reason:
            raise Rejected(f"the server's step makes no model: {reason}") from reason
        why = self._config.why_not_publish(self.published, model, self.round_number)
        if why is not None:
            raise Rejected(why)
        self.published = model
        self.round_number += 1

    def _aggregated(self, updates: Iterable[Any]) -> Content:
        """What the method's server step makes of a round's uploads."""
        served, settings = self._config.served, self._config.settings
        if self._config.sums is None:
            return self._bounded(served.step(settings, self.published, self.enrolled, updates))
        [summed] = updates
        return served.step_of_sum(settings, self.published, self.enrolled, summed.total, summed.messages)

    def _bounded(self, content: Content) -> Content:
        """The result of a server step, held to the bounds of one."""
        if self._defences.are_off:
            return content
        before, after = (
            Rows(tables["vectors"], tables.get("biases")) for tables in (self.published.content.tables, content.tables)
        )
        rows, self.held, self.capped = defend(self._defences, before, after)
        biases = {} if rows.biases is None else {"biases": rows.biases}
        return content._replace(tables={**content.tables, "vectors": rows.vectors, **biases})


def capped_items(model: Published) -> int:
    """How many items the exposure cap of the method's own server step has shortened."""
    return int(np.sum(model.content.state.get("capped", 0)))


def hidden_items(model: Published) -> IntVector:
    """Items that have uploads and no vector, so that no client shows them: those whose predicted audience jumped, and
    those that have only just got enough users."""
    weights = model.content.tables.get("weights")
    if weights is None:
        return np.zeros(0, dtype=np.int32)
    return np.flatnonzero((weights > 0) & ~model.vectors.any(axis=1)).astype(np.int32)


class PlainRounds:
    """Rounds whose uploads the server can read; they are in the store."""

    def __init__(self, connection: Connection, version: int, served: ServerMethod, form: Form, leader: Leader) -> None:
        self._connection = connection
        self._served = served
        self._leader = leader
        self._form = form
        self._version = version
        self.opened = 0.0

    def open(self, round_number: int) -> RoundSettings:
        """Open the round, once the federation is not paused."""
        if state_of_round(self._connection, round_number) is None:
            self._rest()
        rules = RoundSettings(**get_value(self._connection, "rounds"))
        open_round(self._connection, round_number, self._version, self._leader.refuse_old_season)
        self.opened = time.monotonic()
        self._leader.announce()
        return rules

    def _rest(self) -> None:
        """Wait while no round is to begin."""
        while is_resting(self._connection):
            self._leader.truncate_log(self._connection)
            self._leader.refuse_old_season(self._connection)
            self._leader.wait(LOOK_SECONDS * 4)

    def uploads(self, number: int, rules: RoundSettings) -> Iterator[Any]:
        """Wait for uploads and close the round; the uploads in the stated order."""
        self._wait_for_reports(number, rules)
        if close_round(self._connection, number, rules.minimum) is None:
            raise Abandoned
        return (self._served.summand(body, self._form) for body in bodies_in_order(self._connection, number))

    def _wait_for_reports(self, number: int, rules: RoundSettings) -> None:
        while True:
            now = newest_round(self._connection)
            if now is None or now.number != number or now.state != "open":
                return
            if not now.granted:
                self.opened = time.monotonic()  # a round's time begins with its first ticket
            reports, waited = now.reports, time.monotonic() - self.opened
            if reports >= rules.target or get_value(self._connection, "close") == number or waited >= rules.deadline:
                return
            self._leader.truncate_log(self._connection)
            if not self._meanwhile(number):
                return
            self._count_until(rules.target, number, min(LOOK_SECONDS, max(0.001, rules.deadline - waited)))

    def _meanwhile(self, _number: int) -> bool:
        """Do what can be done with a round's uploads while others are on their way; whether to wait for these."""
        return True

    def _count_until(self, enough: int, number: int, seconds: float) -> None:
        """Between two looks at everything, count only, whenever this process has stored something."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._leader.wait(left) and count_reports(self._connection, number) >= enough:
                return


class SecureRounds(PlainRounds):
    """Rounds with secure aggregation: a helper takes part in each of them."""

    def __init__(
        self, connection: Connection, model: Published, config: FederationConfig, form: Form, leader: Leader
    ) -> None:
        assert config.sums is not None, "a federation of sums has an agreement"
        super().__init__(connection, model.version, config.served, form, leader)
        self._config, self._model, self._least = config, model, config.sums.config.least_cohort
        self.sums = RoundOfSums(
            connection,
            config.sums,
            leader.helper_line(config.sums, connection),
            leader.wait,
            left_out=leader.left_out,
        )

    def open(self, round_number: int) -> RoundSettings:
        """Have the helper sign the round config, then open the round."""
        if state_of_round(self._connection, round_number) is None:
            self._rest()
            served = self._config.served
            model, stage = served.digest(self._config.settings, self._model), served.stage(self._model)
            rows = served.rows(self._config.settings, self._model)
            self.sums.offer(round_number, self._version, stage, model, rows)
        else:
            self.sums.confirm(round_number)
        return super().open(round_number)

    def uploads(self, number: int, rules: RoundSettings) -> Iterator[Any]:
        """Wait for uploads, close the round, and have the helper answer; the noisy sum."""
        self._wait_for_reports(number, rules)
        minimum = max(rules.minimum, self._least)
        if close_round(self._connection, number, minimum, invited_only=self._leader.invited_only) is None:
            self.sums.give_up(number)
            raise Abandoned
        return iter([self.sums.finish(number)])

    def _meanwhile(self, number: int) -> bool:
        while self.sums.prepare_some(number):
            pass
        return not self.sums.is_lost


class Leader:
    """The thread that leads, or stands by to lead."""

    def __init__(
        self,
        database: Database,
        config: FederationConfig,
        trust: TrustSettings,
        log: Log,
        announce: Callable[[], None],
        left_out: Callable[[str], object],
        *,
        invited_only: bool,
    ) -> None:
        self._database, self._config, self._trust, self._log = database, config, trust, log
        self.announce, self.left_out, self.invited_only = announce, left_out, invited_only
        self._form, self._defences = form_of(config, trust), defences_of(config, trust)
        self._lock = LeaderLock(database)
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._stand_by, name="rounds", daemon=True)
        self.leads = False
        self._log_dirty_since: float | None = None  # overwritten bytes are in the store's log since then
        self._line: HelperLine | None = None
        self._faults, self._last_fault = 0, ""  # in a row, of leading

    def start(self) -> None:
        """Begin to lead, or to stand by."""
        self._thread.start()

    def stop(self) -> None:
        """End; the open round stays open."""
        self._stopping.set()
        self._woken.set()
        self._thread.join(LONGEST_STOP)  # what waits for the helper has changed nothing; the next leader goes on

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
        """Truncate the store's log, when it is time to; if someone is in the way, retry a second later."""
        now = time.monotonic()
        if self._log_dirty_since is not None and now - self._log_dirty_since >= LONGEST_DIRTY_SECONDS:
            self._log_dirty_since = None if connection.truncate_log() else now - LONGEST_DIRTY_SECONDS + 1.0

    def refuse_old_season(self, connection: Connection) -> None:
        """Go no further where another season has begun."""
        if current_season(connection).number != self._config.season.number:
            raise SeasonBegun

    def _read_store(self, connection: Connection) -> PublishedModel:
        """Config and model as they are now: another season may have begun, or the operator may have gone back."""
        config = read_config(connection)
        assert config is not None, "a store that was served holds a federation"
        self._config, self._form = config, form_of(config, self._trust)
        if config.sums is not None:
            abandon_unopened(connection, config.sums.name)
        return PublishedModel(config, connection, self._defences)

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
            except Overtaken:
                continue  # the operator has gone back, or another worker leads: read the store again
            except (StoreAway, OSError) as reason:
                if self._is_news(reason):
                    self._log.store_away(reason)
            except Exception as fault:
                if not self._stopping.is_set() and self._is_news(fault):
                    self._log.fault("rounds", fault)
            else:
                self._faults = 0  # another worker leads
            self.leads = False
            self._stopping.wait(min(FIRST_WAIT * 2 ** min(self._faults, 10), LONGEST_WAIT))
        self._lock.release()
        self._database.release()
        if self._line is not None:
            self._line.close()  # by the thread that uses it: closed during a request it would connect again

    def _is_news(self, fault: Exception) -> bool:
        """Whether a fault is another one than the last; the more there are in a row, the longer is the pause."""
        self._faults += 1
        name, self._last_fault = self._last_fault, f"{type(fault).__name__}: {fault}"
        return name != self._last_fault

    def helper_line(self, agreement: Agreement, connection: Connection) -> HelperLine:
        """The line to the helper, the same for every round; whether the helper answers is noted in the store."""
        if self._line is None:
            self._line = agreement.line()
        self._line.on_change = lambda code: self._note_helper(connection, code)
        return self._line

    def _note_helper(self, connection: Connection, code: str) -> None:
        """What is wrong with the helper, or nothing any more: one line, and the health of every worker."""
        if code:
            self._log.say("helper", "error", state=code, remedy=REMEDIES[code])
        elif get_value(connection, "helper fault") or "":
            self._log.say("helper", state="ok")
        put_value(connection, "helper fault", code)

    def _rounds_with(self, connection: Connection, model: Published) -> PlainRounds:
        if self._config.sums is None:
            served = self._config.served
            form = served.form_of(self._config.settings, self._form, model)
            return PlainRounds(connection, model.version, served, form, self)
        return SecureRounds(connection, model, self._config, self._form, self)

    def _discard(
        self, connection: Connection, rounds: PlainRounds, number: int, reason: Unavailable | Rejected
    ) -> None:
        """End a closed round whose uploads make no model; the reason is logged."""
        if isinstance(reason, Rejected):
            self._log.say("aggregate rejected", "error", round=number, reason=str(reason))
            with connection.transaction():
                note_rejected(connection, number, str(reason))
        else:
            self._log.say("round abandoned", "warning", round=number, reason=str(reason))
        if isinstance(rounds, SecureRounds):
            rounds.sums.abandon_closed(number)
            return
        with connection.transaction():
            discard_round(connection, number)

    def _publish(self, connection: Connection, rounds: PlainRounds, shared: PublishedModel, before: Published) -> None:
        """Write a version together with the end of its round: what the bounds did, and the record of sums."""
        number, model, served = shared.round_number - 1, shared.published, self._config.served
        measured = {"drift": signals_of(before, model).drift, "seconds": time.monotonic() - rounds.opened}
        bounded = {"held_rows": shared.held, "capped_rows": shared.capped, "capped_items": capped_items(model)}
        bounded["hidden_items"] = len(hidden_items(model))
        progress = served.progress(self._config.settings, model.content)
        of_sums: Callable[[Connection], None] = lambda _: None  # noqa: E731
        if isinstance(rounds, SecureRounds):
            digest = served.digest(self._config.settings, model)
            of_sums = rounds.sums.record(number, digest, shared.enrolled)

        def also(connection: Connection) -> None:
            put_value(connection, "bounded", bounded)
            put_value(connection, "progress", progress)
            uncharge_absent(connection, number, self._config.ticket_key)
            of_sums(connection)

        is_summed = self._config.sums is not None  # rounds of sums are few, and a season may start from any
        publish(connection, number, model, measured, self._trust.keep_updates, also, remembers_all=is_summed)
        self._log.say(
            "round aggregated", "info", round=number, version=model.version, **measured, **bounded, **progress
        )

    def _lead(self, connection: Connection) -> None:
        shared: PublishedModel | None = None
        self.mark_log_dirty()  # anyone who led before may have been cut off
        while True:
            shared = shared or self._read_store(connection)
            before = shared.published
            try:
                self.refuse_old_season(connection)
                rounds = self._rounds_with(connection, before)
                shared.aggregate(rounds.uploads(shared.round_number, rounds.open(shared.round_number)))
            except SeasonBegun:
                shared = None
            except Abandoned:
                self._log.say("round abandoned", "warning", round=shared.round_number)
                shared = None
            except (Unavailable, Rejected) as reason:
                self._discard(connection, rounds, shared.round_number, reason)
                shared.round_number += 1
            else:
                self._faults, self._last_fault = 0, ""
                self._publish(connection, rounds, shared, before)
                # Versions of sums follow from sums alone.
                watches = self._trust.roll_back_when_worse and self._config.sums is None
                if watches and (done := undo_fall(connection, self._config.extend)) is not None:
                    self._log.say("rolled back", "warning", **done)
                    shared = None
            self.mark_log_dirty()
            self.truncate_log(connection)
            self.announce()
