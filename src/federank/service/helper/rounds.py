"""What a helper does for a leader, in the order of a round.

    offer     once per number, and numbers only rise; the key is stored before the offer is
    prepare   a pure function of the round's key: asking again discloses nothing new; with norm proofs it is the
              helper's part of each check, at a point that follows from that key
    answer    one set per round: the sum is committed, the key destroyed, and only then is anything sent
    abandon   the key is destroyed; nothing is ever published of the round's seeds

A crash leaves a round open with its key, or ended; a key that outlived its round's end is destroyed at the next look.
A round whose key is lost is abandoned.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from federank.checks import check_int, check_positive, check_range
from federank.errors import BadMessage
from federank.secagg.config import SecaggConfig, check_follows, config_from
from federank.secagg.exchange import (
    ABANDONED,
    AGGREGATED,
    RoundRecord,
    Terms,
    check_set,
    draw_noise,
    encode_answer,
    set_digest,
    sign_record,
    standing,
    sum_digest,
    sum_of_masks,
    terms_from,
    with_noise,
)
from federank.secagg.keys import fingerprint, new_private_key, public_key_of, read_by_any, sign_successor
from federank.secagg.proof.parameters import Parameters
from federank.secagg.proof.preparing import prepare as look_at
from federank.secagg.ring import RingVector, ring_bytes, ring_from
from federank.secagg.round_config import Offer, read_offer, sign_offer
from federank.secagg.upload import Report
from federank.service.helper import store
from federank.service.helper.store import Identity, Round, RoundKeys
from federank.service.server.store.database import Connection

# What an operator chooses about a helper.


@dataclass(frozen=True, kw_only=True)
class HelperSettings:
    """How much leaders and other callers may ask of a helper."""

    most_federations: int = 16
    """Federations that it serves at most."""
    any_leader: bool = False
    """Serve every leader, not only those that were allowed. For rehearsals: anyone could fill this helper."""
    most_length: int = 4_000_000
    """Numbers that a message may have."""
    address_rate: float = 100.0
    """Requests a second from one address, over time (0: no limit)."""
    address_connections: int = 100
    """Connections that one address may hold at a time (0: no limit)."""
    body_seconds: float = 30.0
    """Seconds in which a request's body must have arrived."""
    header_seconds: float = 10.0
    """Seconds in which a request's headers must have arrived."""

    def __post_init__(self) -> None:
        check_int("most_federations", self.most_federations, 1)
        check_int("most_length", self.most_length, 1, 2**26)
        check_range("address_rate", self.address_rate, 0, math.inf)
        check_int("address_connections", self.address_connections, 0)
        check_positive("body_seconds", self.body_seconds)
        check_positive("header_seconds", self.header_seconds)


MAX_LIFETIME = 7 * 86_400
"""Seconds after an offer's expiry when its round is abandoned, whatever the leader does."""


class NotNow(Exception):
    """A request that is right in its form and comes at a wrong time; `slug` is the reason in a word."""

    def __init__(self, slug: str, message: str) -> None:
        super().__init__(message)
        self.slug = slug


class Helper(NamedTuple):
    """What its operations need."""

    origin: str
    identities: list[Identity]
    keys: RoundKeys
    settings: HelperSettings
    random: Callable[[int], bytes] = os.urandom
    clock: Callable[[], float] = time.time

    @property
    def identity(self) -> Identity:
        """The key that signs now."""
        return self.identities[-1]

    def __repr__(self) -> str:
        return f"Helper({self.origin!r})"


def open_identity(connection: Connection, *, renew: bool = False) -> list[Identity]:
    """The identities in a store, made if there is none; `renew` adds one that the last has signed for."""
    with connection.transaction():
        known = store.identities(connection)
        if not known or renew:
            private = new_private_key()
            public = public_key_of(private)
            word = sign_successor(known[-1].private, public) if known else b""
            store.add_identity(connection, len(known), Identity(private, public, word))
    return store.identities(connection)


def sweep(connection: Connection, helper: Helper) -> int:
    """Destroy keys that outlived their round's end; the number of them."""
    return helper.keys.destroy_all_but(store.open_keys(connection))


def register(connection: Connection, helper: Helper, content: bytes) -> SecaggConfig:
    """Take a federation on, if its federation config names this helper."""
    config = config_from(content)
    if config.helper_public() not in {identity.public for identity in helper.identities}:
        raise BadMessage(
            "The federation config names another helper's key; fetch the key from this helper's /identity."
        )
    refuse_leader(connection, helper, config)
    if config.helper_origin != helper.origin:
        raise BadMessage(f"The federation config says that this helper is somewhere else; it is at {helper.origin}.")
    name = config.digest()
    with connection.transaction():
        known = store.config_of(connection, name) is not None
        if config.season > 1:
            _check_season_before(connection, config)
        elif not known and store.count_federations(connection) >= helper.settings.most_federations:
            raise NotNow(
                "full", "This helper serves as many federations as it takes; its operator can raise the bound."
            )
        store.add_federation(connection, name, content, config.season)
    return config


def _check_season_before(connection: Connection, config: SecaggConfig) -> None:
    """Refuse a season that does not follow the one that it names, or whose place another season has taken."""
    name = bytes.fromhex(config.before)
    before = store.config_of(connection, name)
    if before is None:
        raise NotNow("unknown", "The season before is not known here; it must be registered first.")
    check_follows(config_from(before), config)
    if store.successor_of(connection, name) not in (b"", config.digest()):
        raise NotNow("ended", "Another season has begun after the one that this config names.")


def refuse_leader(connection: Connection, helper: Helper, config: SecaggConfig) -> None:
    """Refuse a leader whose key this helper's operator has not allowed, or has removed."""
    known = fingerprint(config.leader_public())
    if not helper.settings.any_leader and not store.is_allowed(connection, known):
        raise NotNow(
            "not-allowed",
            f"This helper's operator has not allowed the leader's key {known} (federank helper allow '{known}').",
        )


def offer(connection: Connection, helper: Helper, config: SecaggConfig, number: int, content: bytes) -> bytes:
    """The signed offer of a round: made once, and sent again for the same terms."""
    name = config.digest()
    terms = terms_from(content, helper.settings.most_length)
    _check_stage(config, terms)
    _end_what_is_lost(connection, helper, config)
    with connection.transaction():
        store.lock_federation(connection, name)
        _begin_season(connection, helper, config)
        known = store.round_of(connection, name, number)
        if known is not None:
            if known.terms != terms.digest():
                raise NotNow("offered", f"Round {number} was offered on other terms; a round has one offer.")
            return _signed_by_the_key_of_now(helper, known.offer)
        newest = store.newest_round(connection, name)
        if newest is not None and newest.number > number:
            raise NotNow("older", f"Round {newest.number} was offered already; numbers of rounds only rise.")
        if newest is not None and newest.state == store.OPEN:
            raise NotNow("under-way", f"Round {newest.number} is under way; it must be answered or abandoned first.")
        private = new_private_key()
        public = public_key_of(private)
        made = _offer_of(config, number, terms, public, int(helper.clock()))
        signed = sign_offer(helper.identity.private, made)
        helper.keys.put(public, private)
        store.add_round(connection, name, number, terms.digest(), public, signed, made.expires)
        if not config.has_noise:  # earlier sums are not public, and their leader has gone on
            store.drop_sums(connection, name, number)
    return signed


def _begin_season(connection: Connection, helper: Helper, config: SecaggConfig) -> None:
    """A season begins with its first round: then the season before offers no more, and its open round ends."""
    name = config.digest()
    if store.successor_of(connection, name):
        raise NotNow("ended", "This season has ended: rounds of a later one have begun.")
    if not config.before:
        return
    before = bytes.fromhex(config.before)
    successor = store.successor_of(connection, before)
    if successor == name:
        return
    if successor:
        raise NotNow("ended", "Another season has begun after the one that this config names.")
    content = store.config_of(connection, before)
    assert content is not None, "a season is registered after the one before"
    newest = store.newest_round(connection, before)
    if newest is not None and newest.state == store.OPEN:
        store.end_round(
            connection, before, newest.number, store.ABANDONED, _abandoned(helper, config_from(content), newest)
        )
        helper.keys.destroy(newest.public)
    store.put_successor(connection, before, name)


def prune(connection: Connection, config: SecaggConfig) -> int:
    """Drop the sums of a season that has ended; how many rounds it has. Offers and records stay."""
    name = config.digest()
    with connection.transaction():
        if not store.successor_of(connection, name):
            raise NotNow("under-way", "This season has not ended; its sums are not dropped.")
        return store.drop_sums(connection, name, 2**53)


def _check_stage(config: SecaggConfig, terms: Terms) -> None:
    """Refuse what is no stage of the federation config's plan, or another length than its messages have."""
    if terms.stage >= config.messages:
        raise BadMessage(
            f"The federation config's plan has {config.messages:,} stages; this round asks for another one."
        )
    if not config.allows_length(terms.stage, terms.length):
        raise BadMessage("The round's messages have another length than the federation config's plan gives them.")


def _signed_by_the_key_of_now(helper: Helper, content: bytes) -> bytes:
    """An offer that is sent again: signed again where the helper has a new identity, because leaders know no other."""
    try:
        read_offer(content, helper.identity.public)
    except BadMessage:
        return sign_offer(helper.identity.private, read_by_any(_keys(helper), read_offer, content))
    return content


def _offer_of(config: SecaggConfig, number: int, terms: Terms, public: bytes, now: int) -> Offer:
    return Offer(
        config=config.digest().hex(),
        round=number,
        version=terms.version,
        model=terms.model,
        length=terms.length,
        stage=terms.stage,
        columns=config.columns_of(terms.stage),
        clip=config.clip,
        scale=config.bound,
        noise=config.noises[terms.stage],
        key=public.hex(),
        expires=now + terms.seconds,
    )


def prepare(
    connection: Connection,
    helper: Helper,
    config: SecaggConfig,
    number: int,
    reports: list[Report],
    check: Parameters | None,
) -> list[bytes | None]:
    """The helper's look at each of these reports, which is empty without norm proofs; None for one that does not
    stand.
    """
    _, private, terms = _open_round(connection, helper, config, number)
    if check is None:
        return [b"" if stands else None for stands in standing(private, terms.digest(), reports)]
    return [look_at(check, private, terms.digest(), terms.length, report) for report in reports]


def refuse_copies(reports: list[Report]) -> None:
    """Refuse a request that names a report twice: each costs time."""
    if len({report.id for report in reports}) < len(reports):
        raise BadMessage("A request names every report once; this one names a report twice.")


def masks_of(
    connection: Connection, helper: Helper, config: SecaggConfig, number: int, reports: list[Report]
) -> RingVector:
    """The sum of the masks of some reports of a set, without noise: for this process alone."""
    _, private, terms = _open_round(connection, helper, config, number)
    return sum_of_masks(private, terms.digest(), terms.length, reports)


def answer(
    connection: Connection,
    helper: Helper,
    config: SecaggConfig,
    number: int,
    reports: list[Report],
    masks: RingVector | None = None,
) -> bytes:
    """The record and the noisy sum of masks of this set: the first that is asked for, and the same again for ever.

    `masks` is the sum of all their masks, where it was worked out before.
    """
    name, identifiers = config.digest(), [report.id for report in reports]
    check_set(identifiers, config.least_cohort, config.largest_cohort)
    try:
        round_row, private, terms = _open_round(connection, helper, config, number)
    except NotNow:
        # Answered before, or just now by another process: anyone who asks with the same set gets the same answer.
        if _was_answered(connection, name, number):
            return _answer_again(connection, helper, name, number, identifiers)
        raise
    masks = sum_of_masks(private, terms.digest(), terms.length, reports) if masks is None else masks
    total = with_noise(masks, draw_noise(terms.noise, terms.length, helper.random))
    record = RoundRecord(
        config=name.hex(),
        offer=terms.digest().hex(),
        round=number,
        state=AGGREGATED,
        messages=len(identifiers),
        set=set_digest(identifiers).hex(),
        sum=sum_digest(total).hex(),
    )
    signed, members = sign_record(helper.identity.private, record), b"".join(sorted(identifiers))
    with connection.transaction():
        store.lock_federation(connection, name)
        now = store.round_of(connection, name, number)
        if now is not None and now.state == store.OPEN:
            store.end_round(connection, name, number, store.ANSWERED, signed, members, ring_bytes(total))
    helper.keys.destroy(round_row.public)
    # Read back: if someone else was faster, theirs is the answer, and this noise was never sent.
    if not _was_answered(connection, name, number):
        raise NotNow("ended", f"Round {number} was abandoned; nothing of it is published.")
    return _answer_again(connection, helper, name, number, identifiers)


def _was_answered(connection: Connection, name: bytes, number: int) -> bool:
    round_row = store.round_of(connection, name, number)
    return round_row is not None and round_row.state == store.ANSWERED


def _answer_again(connection: Connection, helper: Helper, name: bytes, number: int, identifiers: list[bytes]) -> bytes:
    """The answer as it is in the store."""
    ended = store.round_of(connection, name, number)
    assert ended is not None  # an answered round stays
    helper.keys.destroy(ended.public)
    if ended.members != b"".join(sorted(identifiers)):
        raise NotNow("answered", f"Round {ended.number} was answered for another set; a round has one answer.")
    return encode_answer(ended.record, ring_from(store.total_of(connection, name, ended.number)))


def abandon(connection: Connection, helper: Helper, config: SecaggConfig, number: int) -> bytes:
    """End a round without an answer; its record."""
    ended = _end_if_open(connection, helper, config, number)
    if ended.state != store.ABANDONED:
        raise NotNow("answered", f"Round {number} was answered; ask for the answer again with the same set.")
    return ended.record


def _end_if_open(connection: Connection, helper: Helper, config: SecaggConfig, number: int) -> Round:
    """Abandon a round unless it has ended, by whomever; the round as it is then."""
    name = config.digest()
    with connection.transaction():
        store.lock_federation(connection, name)
        round_row = store.round_of(connection, name, number)
        if round_row is None:
            raise NotNow("unknown", f"Round {number} was never offered.")
        if round_row.state == store.OPEN:
            store.end_round(connection, name, number, store.ABANDONED, _abandoned(helper, config, round_row))
    helper.keys.destroy(round_row.public)
    return store.round_of(connection, name, number) or round_row


def _abandoned(helper: Helper, config: SecaggConfig, round_row: Round) -> bytes:
    terms = offer_of(helper, round_row)
    record = RoundRecord(
        config=config.digest().hex(),
        offer=terms.digest().hex(),
        round=round_row.number,
        state=ABANDONED,
        messages=0,
        set="",
        sum="",
    )
    return sign_record(helper.identity.private, record)


def _open_round(
    connection: Connection, helper: Helper, config: SecaggConfig, number: int
) -> tuple[Round, bytes, Offer]:
    """A round that is open and whose key is there: the round, the key, the offer."""
    _end_what_is_lost(connection, helper, config)
    round_row = store.round_of(connection, config.digest(), number)
    if round_row is None:
        raise NotNow("unknown", f"Round {number} was never offered.")
    private = helper.keys.get(round_row.public) if round_row.state == store.OPEN else None
    if private is None:
        raise NotNow("ended", f"Round {number} has ended, and its key is destroyed; nothing more is published of it.")
    return round_row, private, offer_of(helper, round_row)


def _end_what_is_lost(connection: Connection, helper: Helper, config: SecaggConfig) -> None:
    """Abandon the newest round if its key is lost, or if no one has asked for it for long after it expired."""
    newest = store.newest_round(connection, config.digest())
    if newest is not None and newest.state == store.OPEN:
        expired = helper.clock() > newest.expires + MAX_LIFETIME
        if expired or helper.keys.get(newest.public) is None:
            _end_if_open(connection, helper, config, newest.number)


def offer_of(helper: Helper, round_row: Round) -> Offer:
    """The offer of a round."""
    return read_by_any(_keys(helper), read_offer, round_row.offer)


def _keys(helper: Helper) -> list[bytes]:
    """All keys that this helper has had: a round may outlive a change of keys."""
    return [identity.public for identity in helper.identities]
