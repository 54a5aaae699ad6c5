"""A round of sums at the leader, from its offer to its fold.

    choose    asks the helper for the round's offer, keeps it, and opens the round
    train     while it waits for uploads, has them prepared in chunks and adds up the shares of those that stand; when
              the round is closed and every upload prepared, the set is fixed; the helper answers it, and the answer is
              kept before it is used
    fold      the leader's own noise is drawn, and goes into the store with the next version, in one transaction

A crash leaves the round where it was, and whoever leads next goes on: every question to the helper may be repeated.
While the helper is away, uploads are still taken; a round that is closed waits. A round ends folded or abandoned.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from federank.arrays import RealVector
from federank.errors import BadMessage
from federank.protocol.sums.answer import draw_noise, set_digest, with_noise
from federank.protocol.sums.asking import Terms, decode_answer, encode_reports
from federank.protocol.sums.identities import follow
from federank.protocol.sums.masks import RingVector, ring_bytes
from federank.protocol.sums.offer import Offer, block_digest, message_length, read_offer
from federank.protocol.sums.records import (
    ABANDONED,
    FOLDED,
    RoundRecord,
    read_record,
    sign_record,
    sum_digest,
)
from federank.protocol.sums.rounding import centred, in_units
from federank.protocol.sums.upload import Report, decode_upload, report_of
from federank.service.server.federation.published import Published
from federank.service.server.store.database import Connection
from federank.service.server.store.statements import state_of_round
from federank.service.server.sums import store
from federank.service.server.sums.agreeing import Agreement
from federank.service.server.sums.helper_line import HelperAway, HelperLine, HelperRefused
from federank.service.server.sums.plausible import implausible

CHUNK = 64
"""Uploads that are prepared together; as many shares are in memory at a time."""
HELPER_PAUSE = 0.5
OFFER_SECONDS = 30 * 86_400
"""How long an offer stands: a round ends by its own deadline, and the offer never before it."""


class Summed(NamedTuple):
    """All that a fold takes from a round of sums."""

    values: RealVector  # the noisy sum, in the messages' own unit
    messages: int


class Unfit(Exception):
    """The round cannot be folded; the reason is for the operator."""


class RoundOfSums:
    """One round, played with the helper."""

    def __init__(
        self,
        connection: Connection,
        agreement: Agreement,
        line: HelperLine,
        wait: Callable[[float], object],
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._connection, self._agreement, self._line = connection, agreement, line
        self._wait, self._random = wait, random
        self._helper_key = agreement.charter.helper_public()
        self._next_try = 0.0
        self.is_lost = False  # the helper will not answer this round
        self._noisy: RingVector = np.zeros(0, dtype=np.uint32)
        self._reports: list[Report] = []

    def offer(self, number: int, version: int, model: bytes, block: np.ndarray[Any, np.dtype[np.int32]]) -> bool:
        """Have the round offered and keep the offer; False where the helper has had a round of this number."""
        charter = self._agreement.charter
        terms = Terms(
            version=version,
            model=model.hex(),
            block=block_digest(block).hex(),
            length=message_length(len(block), charter.columns),
            seconds=OFFER_SECONDS,
        )
        while True:
            try:
                signed = self._line.offer(self._agreement.name, number, terms)
                self._learn_key()
                made = read_offer(signed, self._helper_key)
                if (made.round, made.version, made.model) != (number, version, model.hex()):
                    raise BadMessage("The helper has offered something else than it was asked for.")
                store.put_offer(self._connection, number, signed, terms.length)
                return True
            except HelperRefused as refusal:
                if refusal.slug in ("older", "offered"):
                    return False
                if refusal.slug == "under-way":
                    self._end_forgotten(number)
                elif refusal.slug == "unknown":
                    self._insist(lambda: self._line.register(self._agreement.charter.to_bytes()))
                else:
                    self._wait(HELPER_PAUSE)
            except HelperAway:
                self._wait(HELPER_PAUSE)

    def _learn_key(self) -> None:
        """The helper's key as of now: the charter's, or one that it has signed for."""
        identity = self._line.identity()
        self._helper_key = follow(self._agreement.charter.helper_public(), identity.successions)

    def _end_forgotten(self, number: int) -> None:
        """End rounds that the helper still holds open and this leader does not: of before a restored backup, say."""
        for found in self._insist(lambda: self._line.open_rounds(self._agreement.name)):
            if found != number and state_of_round(self._connection, found) not in ("open", "closed"):
                self.give_up(found)

    def prepare_some(self, number: int) -> bool:
        """Have some uploads prepared and added up, if the helper is there; whether there may be more."""
        if time.monotonic() < self._next_try:
            return False
        try:
            return self._prepare_chunk(number)
        except HelperAway:
            self._next_try = time.monotonic() + HELPER_PAUSE
        except HelperRefused:
            self.is_lost = True
        return False

    def _prepare_chunk(self, number: int) -> bool:
        waiting = store.unprepared(self._connection, number, CHUNK)
        if not waiting:
            return False
        offer = self._offer_of(number)
        terms = offer.digest()
        uploads = [decode_upload(body, offer.length) for _, body in waiting]
        reports = [report_of(terms, upload) for upload in uploads]
        stand = self._line.prepare(self._agreement.name, number, reports)
        seen = store.known_identifiers(self._connection, number)
        shares: RingVector = np.zeros(offer.length, dtype=np.uint32)
        prepared = []
        for (ticket, _), upload, report, stands in zip(waiting, uploads, reports, stand, strict=True):
            counts = stands and upload.id not in seen  # a copy of another's upload is left out
            seen.add(upload.id)
            if counts:
                shares += upload.share
            prepared.append(store.Prepared(ticket, encode_reports([report]), upload.id, counts))
        store.add_prepared(self._connection, number, prepared, shares)
        return len(waiting) == CHUNK

    def finish(self, number: int) -> Summed:
        """The noisy sum of a closed round; `Unfit` where it cannot be had or makes no sense."""
        while store.unprepared(self._connection, number, 1):
            self._refused_is_unfit(lambda: self._prepare_chunk(number))
        charter, offer = self._agreement.charter, self._offer_of(number)
        reports = store.standing_reports(self._connection, number)
        if len(reports) < charter.least_cohort:
            raise Unfit(f"{len(reports)} reports stand, and {charter.least_cohort} are needed")
        content = self._refused_is_unfit(lambda: self._line.answer(self._agreement.name, number, reports, offer.length))
        record, masks = decode_answer(content, offer.length)
        self._check_answer(record, masks, offer, reports)
        store.put_answer(self._connection, number, record, masks)
        noise = draw_noise(charter.noise, offer.length, self._random)
        self._noisy, self._reports = with_noise(store.total_of(self._connection, number), noise), reports
        total = centred(self._noisy + masks)
        why = implausible(total, charter.columns, len(reports), charter.noise)
        if why is not None:
            raise Unfit(why)
        return Summed(in_units(total, charter.length_of_clip()), len(reports))

    def _check_answer(self, record: bytes, masks: RingVector, offer: Offer, reports: list[Report]) -> None:
        self._insist(self._learn_key)
        told = read_record(record, self._helper_key)
        expected = (
            offer.digest().hex(),
            len(reports),
            set_digest([report.id for report in reports]).hex(),
            sum_digest(masks).hex(),
        )
        if (told.offer, told.messages, told.set, told.sum) != expected:
            raise Unfit("the helper's record is not of what it was asked for")

    def record(self, number: int, model: bytes, people: int) -> Callable[[Connection], None]:
        """What publishes this round, within the transaction that publishes its version."""
        offer, identifiers = self._offer_of(number), [report.id for report in self._reports]
        told = RoundRecord(
            charter=self._agreement.name,
            offer=offer.digest().hex(),
            round=number,
            state=FOLDED,
            messages=len(identifiers),
            set=set_digest(identifiers).hex(),
            sum=sum_digest(self._noisy).hex(),
            model=model.hex(),
            people=people,
        )
        signed, noisy = sign_record(self._agreement.private, told), ring_bytes(self._noisy)
        members = b"".join(sorted(identifiers))
        return lambda connection: store.put_record(connection, number, signed, noisy, members)

    def abandon_closed(self, number: int) -> None:
        """End a closed round without a fold, here and at the helper."""
        told = RoundRecord(
            charter=self._agreement.name,
            offer=self._offer_of(number).digest().hex(),
            round=number,
            state=ABANDONED,
            messages=0,
            set="",
            sum="",
        )
        store.abandon_closed(self._connection, number, sign_record(self._agreement.private, told))
        self.give_up(number)

    def give_up(self, number: int) -> None:
        """Have the helper destroy a round's key; if it cannot hear it now, it will when the next round is offered."""
        with suppress(HelperAway, HelperRefused):
            self._line.abandon(self._agreement.name, number)

    def _offer_of(self, number: int) -> Offer:
        row = store.sum_row(self._connection, number)
        assert row is not None, "a round of sums is opened with its offer"
        return read_offer(row.offer, self._signer(row.offer))

    def _signer(self, offer: bytes) -> bytes:
        """The key that an offer of ours was checked with when it came: the helper's of now, or the charter's."""
        try:
            read_offer(offer, self._helper_key)
        except BadMessage:
            self._insist(self._learn_key)
            try:
                read_offer(offer, self._helper_key)
            except BadMessage:
                return self._agreement.charter.helper_public()
        return self._helper_key

    def _insist(self, ask: Callable[[], Any]) -> Any:
        """Ask until the helper is there."""
        while True:
            try:
                return ask()
            except HelperAway:
                self._wait(HELPER_PAUSE)

    def _refused_is_unfit(self, ask: Callable[[], Any]) -> Any:
        try:
            return self._insist(ask)
        except HelperRefused as refusal:
            raise Unfit(f"the helper refused ({refusal.slug})") from refusal


def everything(model: Published) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The block of a round: the whole catalogue."""
    return np.arange(len(model.changed), dtype=np.int32)
