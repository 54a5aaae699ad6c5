"""A round of secure aggregation at the leader.

    offer          has the helper sign the round config, and stores it; then the round is opened
    confirm        a round that was open when the leader began is still open at the helper
    prepare_some   while the round waits for uploads, has them prepared in chunks, and adds up the shares of the valid
                   ones; the others are in neither server's sum
    finish         when the round is closed and every upload prepared, the set is fixed; the helper answers it, and the
                   answer is stored before it is used; the leader adds its own noise
    record         stores record and noisy sum with the next version, in one transaction

A crash leaves the round where it was, and anyone who leads next goes on: every question to the helper may be repeated.
While the helper is away, uploads are still taken; a round that is closed waits. A round ends aggregated or abandoned.
Where the helper gets a new identity key meanwhile, it signs the same offer again, for clients that come after that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import BadMessage
from federank.secagg.exchange import (
    ABANDONED,
    AGGREGATED,
    RoundRecord,
    Terms,
    decode_answer,
    draw_noise,
    encode_reports,
    read_record,
    set_digest,
    sign_record,
    sum_digest,
    with_noise,
)
from federank.secagg.keys import read_by_any, successors
from federank.secagg.proof.parameters import Parameters
from federank.secagg.proof.preparing import accepts
from federank.secagg.ring import RingVector, centred, implausible, ring_bytes
from federank.secagg.round_config import Offer, config_of_offer, read_offer
from federank.secagg.upload import Report, Upload, decode_upload, report_of
from federank.service.server.helper_line import (
    BEHIND,
    IDENTITY,
    NOT_ALLOWED,
    REFUSES,
    HelperAway,
    HelperLine,
    HelperRefused,
)
from federank.service.server.secure_config import Agreement, register_all
from federank.service.server.store import secure as store
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import state_of_round

CHUNK = 64
"""Uploads that are prepared together; as many shares are in memory at a time."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds until a helper that has failed is asked again: twice as long each time."""
PASS_PAUSE = 0.5
"""Seconds between two passes over what came meanwhile: a small chunk costs nearly as much as a large one."""
IDENTITY_PAUSE = 5.0
"""Seconds between two looks, while a round is open, at whether the helper has a new identity key."""
OFFER_SECONDS = 30 * 86_400
"""How long an offer stands: a round ends by its own deadline, and the offer never before it."""


class Summed(NamedTuple):
    """All that a server step takes from a round of secure aggregation."""

    total: IntVector  # the noisy sum, in integers
    messages: int


class Unavailable(Exception):
    """The round cannot be aggregated; the reason is for the operator."""


class RoundOfSums:
    """One round, played with the helper."""

    def __init__(
        self,
        connection: Connection,
        agreement: Agreement,
        line: HelperLine,
        wait: Callable[[float], object],
        left_out: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._connection, self._agreement, self._line = connection, agreement, line
        self._wait, self._left_out = wait, left_out
        self._check: Parameters | None = agreement.config.norm_check()
        self._helper_keys = [agreement.config.helper_public()]  # all of them, the current one last
        self._next_try = self._next_identity = 0.0
        self._failures = 0  # of the helper, in a row
        self.is_lost = False  # the helper will not answer this round
        self._noisy: RingVector = np.zeros(0, dtype=np.uint32)
        self._reports: list[Report] = []

    def offer(self, number: int, version: int, stage: int, model: bytes, rows: int | None = None) -> None:
        """Have the round offered and keep the offer, however long that takes; what is in the way is noted.

        Its uploads cover this many items; None: all.
        """
        config = self._agreement.config
        terms = _terms(version=version, model=model.hex(), length=config.length_of(stage, rows), stage=stage)
        expected = (number, version, model.hex(), stage, config.noises[stage])

        def ask() -> None:
            unconfirmed = store.unconfirmed_before(self._connection, number)
            if unconfirmed is not None:
                self._discard(unconfirmed)
            try:
                signed = self._line.offer(self._agreement.name, number, terms)
            except HelperRefused as refusal:
                if refusal.slug == "under-way":
                    self._end_forgotten(number)
                elif refusal.slug == "unknown":
                    self._learn_key()
                    register_all(self._connection, self._line)
                else:
                    raise
                signed = self._line.offer(self._agreement.name, number, terms)
            self._learn_key()
            made = read_offer(signed, self._helper_keys[-1])
            if (made.round, made.version, made.model, made.stage, made.noise) != expected:
                raise BadMessage("The helper has offered something else than it was asked for.")
            store.put_offer(self._connection, number, signed, terms.length)

        while True:
            try:
                ask()
            except (HelperAway, HelperRefused, BadMessage) as reason:
                self._line.note(_code_of(reason))
                self._pause()
            else:
                self._answered()
                return

    def _learn_key(self) -> None:
        """The helper's key as of now, the federation config's or one that it has signed for, and those between them."""
        identity = self._line.identity()
        self._helper_keys = successors(self._agreement.config.helper_public(), identity.successions)
        if identity.key != self._helper_keys[-1]:
            raise HelperAway("The helper has another identity key than the one that clients have pinned.", IDENTITY)
        self._next_identity = time.monotonic() + IDENTITY_PAUSE

    def _renew_offer(self, number: int) -> None:
        """Have the offer of an open round signed again where the helper has a new key: clients know no other."""
        if time.monotonic() < self._next_identity:
            return
        self._learn_key()
        row = store.sum_row(self._connection, number)
        if row is None:
            return
        with suppress(BadMessage):
            read_offer(row.offer, self._helper_keys[-1])
            return
        kept = self._offer_of(number)
        terms = _terms(version=kept.version, model=kept.model, length=kept.length, stage=kept.stage)
        signed = self._line.offer(self._agreement.name, number, terms)
        if read_offer(signed, self._helper_keys[-1]) != kept:
            raise BadMessage("The helper has signed another offer again than the one that it gave before.")
        store.renew_offer(self._connection, number, signed)

    def _end_forgotten(self, number: int) -> None:
        """End rounds that the helper still holds open and this leader does not: of before a restored backup, say."""
        listed = self._insist(lambda: self._line.rounds(self._agreement.name))
        for other in [one for one, state in listed.items() if state == "open" and one != number]:
            if state_of_round(self._connection, other) not in ("open", "closed"):
                self.give_up(other)

    def confirm(self, number: int) -> None:
        """Before a round that has begun is continued: wait while the helper is ahead of this store.

        Then a backup was put back. The helper has answered the round that is open here, or has offered later ones.
        """
        while True:
            is_open = state_of_round(self._connection, number) == "open"
            try:
                listed = self._line.rounds(self._agreement.name, number)
            except HelperAway as reason:
                self._line.note(reason.code)
            except (HelperRefused, BadMessage):
                return  # it says so again when it is asked about uploads
            else:
                if max(listed, default=number) == number and not (is_open and listed.get(number) == "answered"):
                    self._answered()
                    return
                self._line.note(BEHIND)
            self._pause()

    def prepare_some(self, number: int) -> bool:
        """Have some uploads prepared and added up, if the helper is there; whether there may be more."""
        if time.monotonic() < self._next_try:
            return False
        try:
            self._renew_offer(number)
            more = self._prepare_chunk(number) == CHUNK
            self._answered()
            if not more:
                self._next_try = time.monotonic() + PASS_PAUSE
            return more
        except HelperAway as reason:
            self._line.note(reason.code)
            self._next_try = time.monotonic() + self._next_pause()
        except (HelperRefused, BadMessage):
            self.is_lost = True
        return False

    def _prepare_chunk(self, number: int) -> int:
        """Have the next uploads prepared and added up; the number of them."""
        waiting = store.unprepared(self._connection, number, CHUNK)
        if not waiting:
            return 0
        offer = self._offer_of(number)
        uploads, prepared = _decoded(self._check, waiting, offer.length)
        seen = store.known_identifiers(self._connection, number)
        shares: RingVector = np.zeros(offer.length, dtype=np.uint32)
        for (ticket, upload), (report, outcome) in zip(uploads, self._judged(offer, number, uploads), strict=True):
            if outcome == store.COUNTED and upload.id in seen:
                outcome = store.COPIED
            seen.add(upload.id)
            if outcome == store.COUNTED:
                shares += upload.share
            prepared.append(store.Prepared(ticket, encode_reports([report]), upload.id, outcome))
        store.add_prepared(self._connection, number, prepared, shares)
        for one in prepared:
            if not one.counts:
                self._left_out(one.outcome)
        return len(waiting)

    def _judged(self, offer: Offer, number: int, uploads: list[tuple[bytes, Upload]]) -> Iterator[tuple[Report, str]]:
        """What was sent to the helper for each upload, and whether both servers together let it count."""
        terms, name, check = offer.digest(), self._agreement.name, self._check
        reports = [report_of(terms, upload, check) for _, upload in uploads]
        if not reports:
            return
        if check is None:
            for report, stands in zip(reports, self._line.prepare(name, number, reports), strict=True):
                yield report, store.COUNTED if stands else store.UNOPENED
            return
        looks = self._line.look(name, number, reports, check)
        for (_, upload), report, look in zip(uploads, reports, looks, strict=True):
            holds = look is not None and accepts(check, terms, upload, report, look)
            yield report, store.COUNTED if holds else store.UNOPENED if look is None else store.NORM_TOO_LARGE

    def finish(self, number: int) -> Summed:
        """The noisy sum of a closed round; `Unavailable` where it cannot be had or makes no sense."""
        while self._refused_is_unavailable(lambda: self._prepare_chunk(number)):
            pass
        config, offer = self._agreement.config, self._offer_of(number)
        reports = store.standing_reports(self._connection, number, is_checked=self._check is not None)
        if len(reports) < config.least_cohort:
            raise Unavailable(f"{len(reports)} reports stand, and {config.least_cohort} are needed")
        content = self._refused_is_unavailable(
            lambda: self._line.answer(self._agreement.name, number, reports, offer.length)
        )
        record, masks = decode_answer(content, offer.length)
        self._check_answer(record, masks, offer, reports)
        store.put_answer(self._connection, number, record, masks)
        noise = draw_noise(offer.noise, offer.length, os.urandom)
        self._noisy, self._reports = with_noise(store.total_of(self._connection, number), noise), reports
        total = centred(self._noisy + masks)
        why = implausible(total, offer.columns, len(reports), offer.noise)
        if why is not None:
            raise Unavailable(why)
        return Summed(total, len(reports))

    def _check_answer(self, record: bytes, masks: RingVector, offer: Offer, reports: list[Report]) -> None:
        self._insist(self._learn_key)
        try:  # by whichever of its keys it was signed with when it was first given
            theirs = read_by_any(self._helper_keys, read_record, record)
        except BadMessage as reason:
            raise Unavailable("the helper's record is signed by none of its keys") from reason
        expected = (
            offer.digest().hex(),
            len(reports),
            set_digest([report.id for report in reports]).hex(),
            sum_digest(masks).hex(),
        )
        if (theirs.offer, theirs.messages, theirs.set, theirs.sum) != expected:
            raise Unavailable("the helper's record is not of what it was asked for")

    def record(self, number: int, model: bytes, people: int) -> Callable[[Connection], None]:
        """What publishes this round, within the transaction that publishes its version."""
        offer, identifiers = self._offer_of(number), [report.id for report in self._reports]
        record = RoundRecord(
            config=self._agreement.name,
            offer=offer.digest().hex(),
            round=number,
            state=AGGREGATED,
            messages=len(identifiers),
            set=set_digest(identifiers).hex(),
            sum=sum_digest(self._noisy).hex(),
            model=model.hex(),
            people=people,
        )
        noisy = ring_bytes(self._noisy) if self._agreement.config.has_noise else b""  # published with noise only
        signed = sign_record(self._agreement.private, record)
        members = b"".join(sorted(identifiers))
        return lambda connection: store.put_record(connection, number, signed, noisy, members)

    def abandon_closed(self, number: int) -> None:
        """End a closed round without an aggregate, here and at the helper."""
        record = RoundRecord(
            config=self._agreement.name,
            offer=self._offer_of(number).digest().hex(),
            round=number,
            state=ABANDONED,
            messages=0,
            set="",
            sum="",
        )
        store.abandon_closed(self._connection, number, sign_record(self._agreement.private, record))
        self.give_up(number)

    def give_up(self, number: int) -> None:
        """Have the helper destroy a round's key; one that is away is asked again before the next round is offered."""
        with suppress(HelperAway):
            self._discard(number)

    def _discard(self, number: int) -> None:
        """Have the helper end a round without a sum, and keep its record of that; it has none if it has answered."""
        row = store.sum_row(self._connection, number)
        name = self._agreement.name if row is None else config_of_offer(row.offer)
        with suppress(HelperRefused):
            store.put_discarded(self._connection, number, self._line.abandon(name, number))

    def _offer_of(self, number: int) -> Offer:
        row = store.sum_row(self._connection, number)
        assert row is not None, "a round of sums is opened with its offer"
        for attempt in range(2):
            with suppress(BadMessage):
                return read_by_any(self._helper_keys, read_offer, row.offer)
            if not attempt:
                self._insist(self._learn_key)
        raise Unavailable("the round's offer is signed by none of the helper's keys")

    def _insist(self, ask: Callable[[], Any]) -> Any:
        """Ask until the helper is there."""
        while True:
            try:
                answer = ask()
            except HelperAway as reason:
                self._line.note(reason.code)
                self._pause()
            else:
                self._answered()
                return answer

    def _answered(self) -> None:
        """The helper does what it is asked."""
        self._failures = 0
        self._line.note("")

    def _next_pause(self) -> float:
        """How long to wait after one more failure."""
        self._failures += 1
        return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures - 1, 10)))

    def _pause(self) -> None:
        """Wait after a failure, whatever news there is meanwhile."""
        end = time.monotonic() + self._next_pause()
        while (left := end - time.monotonic()) > 0:
            self._wait(left)

    def _refused_is_unavailable(self, ask: Callable[[], Any]) -> Any:
        try:
            return self._insist(ask)
        except HelperRefused as refusal:
            raise Unavailable(f"the helper refused ({refusal.slug})") from refusal
        except BadMessage as reason:
            raise Unavailable(f"the helper's answer cannot be used: {reason}") from reason


def _code_of(reason: HelperAway | HelperRefused | BadMessage) -> str:
    """What keeps a round from being offered."""
    if isinstance(reason, HelperAway):
        return reason.code
    if isinstance(reason, BadMessage):
        return IDENTITY if "signature" in str(reason) else REFUSES
    return {"older": BEHIND, "offered": BEHIND, "not-allowed": NOT_ALLOWED}.get(reason.slug, REFUSES)


def _decoded(
    check: Parameters | None, waiting: list[tuple[bytes, bytes]], length: int
) -> tuple[list[tuple[bytes, Upload]], list[store.Prepared]]:
    """The first upload of each id, and notes of those that are not asked about: copies, because the helper refuses a
    request that names a report twice, and others than the round's form, which a worker may have taken.
    """
    first: dict[bytes, tuple[bytes, Upload]] = {}
    others = []
    for ticket, body in waiting:
        try:
            upload = decode_upload(body, length, check)
        except BadMessage:
            others.append(store.Prepared(ticket, b"", ticket, store.MALFORMED))
            continue
        if first.setdefault(upload.id, (ticket, upload))[0] != ticket:
            others.append(store.Prepared(ticket, b"", ticket, store.COPIED))
    return list(first.values()), others


def _terms(*, version: int, model: str, length: int, stage: int) -> Terms:
    """What the helper is asked to offer; the same for the same round, anyone who asks and when."""
    return Terms(version=version, model=model, length=length, stage=stage, seconds=OFFER_SECONDS)
