"""Messages that no single server can read, on a client: what it pins, what it checks, and how a message is split.

When it enrols, a client reads the federation config of sums from the leader and the helper's key from the helper's
own address;
it keeps the federation config, and from then on trusts no other. Before it makes a message it checks the round's
offer: signed by
the helper, about this federation config and a stage of its plan, about the very model that it holds. Only then is the
message
rounded and split (methods.py); what is kept until it is sent is already the upload, which the leader cannot
read.

A federation that is begun again has another federation config. It must name the same helper and be no weaker: no more
messages,
no less noise, no smaller cohorts. Messages that were sent count for its lifetime.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from federank.errors import BadAnswer, BadMessage, HelperAway, NoAnswer
from federank.federation.client import Model
from federank.federation.secure import model_digest
from federank.secagg.canonical import ID_BYTES, digest, hexadecimal, read_canonical
from federank.secagg.config import SecaggConfig, check_follows, check_signed, config_from
from federank.secagg.exchange import ABANDONED, AGGREGATED, RoundRecord, read_record, set_digest
from federank.secagg.keys import SIGNATURE_BYTES, Read, fingerprint, identity_from
from federank.secagg.round_config import Offer, check_offer, read_offer
from federank.service.client.http import Client, json_object

if TYPE_CHECKING:
    from federank.service.client.federation import FederationInfo


_ATTEMPTS = 5
_SLACK = 1e-9
NOTHING_CAN_BE_SENT = (
    "Nothing can be sent just now: the second of this federation's two servers does not answer. Nothing was lost"
)


class Pinned(NamedTuple):
    """What a client keeps of a federation of sums."""

    config: SecaggConfig
    helper_ca: str | None

    @property
    def helper(self) -> str:
        """The helper's fingerprint, for people to compare."""
        return fingerprint(self.config.helper_public())


def pin(client: Client, info: FederationInfo, helper_ca: str | None = None) -> Pinned:
    """The federation config of a federation to enrol in, once it fits what the leader says and who the helper is.

    Both servers must have signed it.
    """
    config = _agreed(client, info)
    published = fetch_seasons(client)
    check_signatures(published, config, helper_keys(config, helper_ca))
    return Pinned(config, helper_ca)


class SignedConfig(NamedTuple):
    """The config of a season, with the signatures of leader and helper."""

    config: SecaggConfig
    leader: bytes
    helper: bytes


def fetch_seasons(client: Client) -> list[SignedConfig]:
    """The configs of all seasons, as the leader publishes them; not checked yet."""
    published = json_object(client.request("GET", "/seasons", attempts=_ATTEMPTS).content, "about its seasons")
    try:
        return [
            SignedConfig(
                config_from(str(one["config"]).encode()),
                *(hexadecimal(text, SIGNATURE_BYTES, "The signature of a season") for text in one["signatures"]),
            )
            for one in published["seasons"]
        ]
    except (BadMessage, KeyError, TypeError) as reason:
        raise BadAnswer(f"The leader does not say how its seasons were agreed on ({reason}).") from reason


def check_signatures(published: list[SignedConfig], config: SecaggConfig, keys: list[bytes]) -> None:
    """Refuse a config that is not among the leader's seasons, or that not both servers have signed."""
    try:
        for one in published:
            if one.config == config:
                check_signed(config, one.leader, one.helper, keys)
                return
    except BadMessage as reason:
        raise BadAnswer(f"The config of season {config.season} cannot be trusted: {reason}") from reason
    raise BadAnswer(f"The leader does not list the config of season {config.season}; nothing was sent.")


def pin_season(before: Pinned, client: Client, info: FederationInfo) -> Pinned:
    """The config of a later season: each names the one before it, from the pinned one on, and both servers sign all."""
    config, published = _agreed(client, info), fetch_seasons(client)
    keys, known = helper_keys(before.config, before.helper_ca), before.config
    try:
        for one in published:
            if known.season < one.config.season <= config.season:
                check_follows(known, one.config)
                check_signed(one.config, one.leader, one.helper, keys)
                known = one.config
    except BadMessage as reason:
        raise BadAnswer(f"The new season cannot be followed: {reason} Nothing was sent.") from reason
    if known != config:
        raise BadAnswer("The leader's seasons do not lead from the one that this client knows to the current one.")
    return before._replace(config=config)


def pin_again(before: Pinned, client: Client, info: FederationInfo) -> Pinned:
    """The federation config of a federation that was begun again, if it is no weaker than the one that this client
    knows.
    """
    config, known = _agreed(client, info), before.config
    refuse_another_list(config, known.catalogue)
    if config.helper_origin != known.helper_origin or (
        config.helper_public() not in (known.helper_public(), helper_keys(known, before.helper_ca)[-1])
    ):
        raise BadAnswer(
            "The federation was begun again with another helper than the one that this client knows. Nothing was sent; "
            "ask the operator, compare fingerprints, and enrol again with another --state."
        )
    weaker = ["more messages"] if config.messages > known.messages else []
    weaker += weaker_config(known, config)
    if weaker:
        raise BadAnswer(
            f"The federation was begun again with {' and '.join(weaker)} than it promised this client. Nothing was "
            "sent; ask the operator, or enrol again with another --state."
        )
    helper_keys(config, before.helper_ca)
    return before._replace(config=config)


def weaker_config(old: SecaggConfig, new: SecaggConfig) -> list[str]:
    """In which ways a config protects each upload less than another."""
    found = {
        "less noise": new.mu() > old.mu() * (1 + _SLACK),
        "smaller cohorts": new.least_cohort < old.least_cohort,
        "a weaker norm check": new.projections < old.projections,
    }
    return [name for name, is_weaker in found.items() if is_weaker]


def refuse_another_list(config: SecaggConfig, catalogue: str) -> None:
    """The items that a client received must be those of the federation config: the same for everyone."""
    if config.catalogue != catalogue:
        raise BadAnswer("The list of items is not the one that the federation config of sums names; nothing was sent.")


def helper_keys(config: SecaggConfig, helper_ca: str | None) -> list[bytes]:
    """The key in the federation config and those that have taken its place, from the helper's own address."""
    with Client(config.helper_origin, ca=helper_ca, ca_flag="--helper-ca") as line:
        try:
            content = line.request("GET", "/identity", attempts=_ATTEMPTS).content
        except NoAnswer as reason:
            raise HelperAway(f"{NOTHING_CAN_BE_SENT}; try again later.") from reason
    try:
        return identity_from(content).successors_of(config.helper_public())
    except BadMessage as reason:
        raise BadAnswer(f"One of the two servers is not who it says; nothing was sent. {reason}") from reason


def fetch_offer(
    client: Client, info: FederationInfo, pinned: Pinned, model: Model, round_number: int, deadline: float
) -> Offer:
    """The offer of a round, if the helper has signed it and it is about this federation config and this very model."""
    content = client.request("GET", f"/sums/offer?round={round_number}", deadline=deadline).content
    return checked_offer(content, info, pinned, model, round_number)


def checked_offer(content: bytes, info: FederationInfo, pinned: Pinned, model: Model, round_number: int) -> Offer:
    """The same of bytes that have come."""
    config = pinned.config
    try:
        offer = _by_helper(read_offer, content, pinned)
        held = model_digest(model.version, {**model.tables, **model.overall})
        check_offer(offer, config, held, time.time(), info.rules.covered(model))
        if (offer.round, offer.version) != (round_number, model.version):
            raise BadMessage("The offer is of another round than the ticket; nothing is sent.")
    except BadMessage as reason:
        raise BadAnswer(f"The round's offer cannot be taken: {reason}") from reason
    return offer


def shows_no_sum(record: str, pinned: Pinned, offer: str | None, round_number: int) -> bool:
    """Whether this is the helper's signed record that the round of an offer has ended without a sum.

    The helper destroys a round's key when it signs that: nothing can be learnt from the round's uploads any more.
    """
    signed = _record_of(record, pinned, offer, round_number)
    return signed is not None and signed.state == ABANDONED


def shows_absence(
    record: str, members: str, pinned: Pinned, offer: str | None, round_number: int, identifier: str | None
) -> bool:
    """Whether this is the helper's signed record of a sum, with the ids of all uploads in it, and this id is not one.

    The helper answers once per round, so an upload that is not in this sum is in none.
    """
    signed = _record_of(record, pinned, offer, round_number)
    if signed is None or signed.state != AGGREGATED or identifier is None:
        return False
    try:
        content = bytes.fromhex(members)
    except ValueError:
        return False
    identifiers = [content[start : start + ID_BYTES] for start in range(0, len(content), ID_BYTES)]
    return set_digest(identifiers).hex() == signed.set and bytes.fromhex(identifier) not in identifiers


def _record_of(record: str, pinned: Pinned, offer: str | None, round_number: int) -> RoundRecord | None:
    """The helper's signed record of the round of an offer; None if this is not one."""
    try:
        signed = _by_helper(read_record, record.encode(), pinned)
    except BadMessage:
        return None
    about = signed.config, signed.offer, signed.round
    return signed if about == (pinned.config.digest().hex(), offer, round_number) else None


def _by_helper(read: Callable[[bytes, bytes], Read], content: bytes, pinned: Pinned) -> Read:
    """What the helper has signed: by the pinned key, or else by the one that it has now."""
    try:
        return read(content, pinned.config.helper_public())
    except BadMessage:
        return read(content, helper_keys(pinned.config, pinned.helper_ca)[-1])


def _agreed(client: Client, info: FederationInfo) -> SecaggConfig:
    """The leader's federation config, if it is of the federation that the leader says this is."""
    try:
        config = config_from(client.request("GET", "/sums/config", attempts=_ATTEMPTS).content)
        content = client.request("GET", "/sums/settings", attempts=_ATTEMPTS).content
        settings = read_canonical(content, "The settings of a federation")
    except BadMessage as reason:
        raise BadAnswer(f"The leader's federation config of sums cannot be used: {reason}") from reason
    method = info.settings
    published = method.public_settings()
    expected = {name: repr(value) if isinstance(value, float) else value for name, value in published.items()}
    fits = (
        digest("settings", content).hex() == config.settings
        and {name: settings.get(name) for name in published} == expected
        and (config.federation_id, config.items, config.messages)
        == (info.federation_id, info.n_items, method.uploads_per_client)
        and (config.season, config.until) == (info.season, info.until)
        and (config.recipe, config.columns, config.clip)
        == (method.recipe, method.columns, repr(float(method.norm_bound)))
        and config.min_support == method.support
    )
    if not fits:
        raise BadAnswer("The leader's federation config of sums is not of the federation that the leader says this is.")
    return config
