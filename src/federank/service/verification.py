"""Verifying a federation of sums from outside: every version recomputed from what the two servers have published.

1. The federation config is the leader's; the key in it is the helper's at its own address, or has signed for that one.
2. Every round's offer is signed by the helper, is about the model of that moment, and is the same at both.
3. Both servers' records are signed, tell of the same set, and name the noisy sums by their digests.
4. The two noisy sums, added up in the ring and folded as the settings say, give the model that the leader's record
   names.

So a leader cannot fold anything else than it says, nor a helper answer anything else. Whether a server's own sum is
honest no one can tell. Folds are recomputed to the last bit where the linear algebra of both machines is the same.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from federank.errors import BadMessage, NoAnswer
from federank.secagg.canonical import digest
from federank.secagg.config import SecaggConfig, config_from
from federank.secagg.exchange import FOLDED, RoundRecord, read_record, same_round, sum_digest
from federank.secagg.keys import fingerprint, follow
from federank.secagg.ring import centred, ring_from
from federank.secagg.round_config import Offer, check_offer, read_offer
from federank.service.server.families.family import Family
from federank.service.server.families.registry import FAMILIES
from federank.service.server.model_versions import Published, content_from, first_model
from federank.service.server.plausibility import implausible
from federank.service.server.secure_config import settings_from

MOST_BYTES = 1 << 28
Note = Callable[[str], None]
Read = TypeVar("Read")


class Verified(NamedTuple):
    """What was found."""

    helper_fingerprint: str
    config: str
    versions: int
    messages: int
    abandoned: int


@dataclass(frozen=True)
class Servers:
    """Where to ask, and by whose certificates."""

    leader: str
    helper: str
    leader_ca: str | None = None
    helper_ca: str | None = None


def verify(servers: Servers, note: Note = lambda _: None) -> Verified:
    """Recompute every version; what does not fit is a `BadMessage` that says so."""
    import httpx

    with (
        httpx.Client(base_url=servers.leader.rstrip("/") + "/api/v1", verify=_trusted(servers.leader_ca)) as leader,
        httpx.Client(base_url=servers.helper.rstrip("/"), verify=_trusted(servers.helper_ca)) as helper,
    ):
        return _verify(servers, lambda path: _get(leader, path), lambda path: _get(helper, path), note)


Fetch = Callable[[str], bytes]


def _verify(servers: Servers, leader: Fetch, helper: Fetch, note: Note) -> Verified:
    config, keys = _config(servers, leader, helper)
    note(f"federation config  {config.digest().hex()}")
    note(f"helper   {fingerprint(keys[-1])}")
    family, settings = _settings(config, leader)
    assert family.sums is not None, "a method with a federation config of sums can be summed"
    model = _first(family, settings, config, leader, note)
    name, messages, abandoned, numbers = config.digest().hex(), 0, 0, _numbers(leader)
    for number in numbers:
        place = f"/federations/{name}/rounds/{number}"
        content = leader(f"/sums/record?round={number}")
        record = read_record(content, config.leader_public())
        if record.state != FOLDED:
            abandoned += 1
            continue
        theirs = _by_any(keys, read_record, helper(f"{place}/record"))
        same_round(record, theirs)
        named, stage = family.sums.digest(settings, model), family.sums.stage(model)
        offer = _checked_offer(keys, config, record, model, named, leader, helper(f"{place}/offer"))
        if (offer.stage, offer.noise) != (stage, config.noises[stage]):
            raise BadMessage(f"The offer of round {number} asked for another message than the plan's.")
        shares, masks = ring_from(leader(f"/sums/total?round={number}")), ring_from(helper(f"{place}/sum"))
        if sum_digest(shares).hex() != record.sum or sum_digest(masks).hex() != theirs.sum:
            raise BadMessage(f"The sums that are published of round {number} are not those that the records name.")
        total = centred(shares + masks)
        why = implausible(total, offer.columns, record.messages, offer.noise)
        if why is not None:
            raise BadMessage(f"Round {number} was folded, though {why}.")
        model = model.followed_by(family.sums.fold(settings, config, model, record.people, total, record.messages))
        if family.sums.digest(settings, model).hex() != record.model:
            raise BadMessage(
                f"Version {model.version} does not follow from the sums of round {number}: its record names another "
                "model."
            )
        messages += record.messages
        note(f"version {model.version}: round {number}, {record.messages:,} messages, recomputed")
    return Verified(fingerprint(keys[-1]), name, model.version, messages, abandoned)


def _config(servers: Servers, leader: Fetch, helper: Fetch) -> tuple[SecaggConfig, list[bytes]]:
    """The federation config, and the helper's keys: the one in it, and those that took its place."""
    config = config_from(leader("/sums/config"))
    told = _json(helper("/identity"))
    steps = [
        (bytes.fromhex(step["old"]), bytes.fromhex(step["new"]), bytes.fromhex(step["signature"]))
        for step in told["successions"]
    ]
    now = follow(config.helper_public(), steps)
    if now.hex() != told["key"]:
        raise BadMessage(
            f"The federation config names a helper whose key is {fingerprint(config.helper_public())}, and "
            f"{servers.helper} has "
            f"{fingerprint(bytes.fromhex(told['key']))}, which the first has not signed for."
        )
    if config.helper_origin != servers.helper.rstrip("/"):
        raise BadMessage(
            f"The federation config names the helper at {config.helper_origin}, not the one at {servers.helper}."
        )
    begins = config.helper_public()
    keys = (
        [begins, *(new for _, new, _ in steps[[old for old, _, _ in steps].index(begins) :])]
        if now != begins
        else [now]
    )
    return config, keys


def _settings(config: SecaggConfig, leader: Fetch) -> tuple[Family, Any]:
    content = leader("/sums/settings")
    if digest("settings", content).hex() != config.settings:
        raise BadMessage("The method's settings are not those that the federation config names.")
    method = str(_json(leader("/federation")).get("method")).removesuffix("-sums")
    if method not in FAMILIES or FAMILIES[method].sums is None:
        raise BadMessage(f"The federation's method is {method[:40]!r}, which cannot be summed.")
    return FAMILIES[method], settings_from(FAMILIES[method], _json(content))


def _first(family: Family, settings: Any, config: SecaggConfig, leader: Fetch, note: Note) -> Published:
    """Version 0: as the seed draws it, or a trained model, which is taken as it is."""
    told = content_from(leader("/sums/first"))
    assert family.sums is not None, "a method with a federation config of sums can be summed"
    if family.sums.is_drawn(told):
        drawn = family.first_content(settings, SimpleNamespace(n_items=config.items), None)  # type: ignore[arg-type]
        if not all(
            name in told.tables and np.array_equal(table, told.tables[name]) for name, table in drawn.tables.items()
        ):
            raise BadMessage("Version 0 is not what the federation's seed draws.")
    else:
        note("version 0: a trained model, taken as it is")
    return first_model(told)


def _numbers(leader: Fetch) -> list[int]:
    """The rounds that have a record."""
    found: list[int] = []
    first = 0
    while True:
        some = [int(number) for number in _json(leader(f"/sums/rounds?from={first}"))["rounds"]]
        if not some:
            return found
        found += some
        first = some[-1] + 1


def _checked_offer(
    keys: list[bytes],
    config: SecaggConfig,
    record: RoundRecord,
    model: Published,
    named: bytes,
    leader: Fetch,
    theirs: bytes,
) -> Offer:
    ours = leader(f"/sums/offer?round={record.round}")
    if ours != theirs:
        raise BadMessage(f"The two servers have published different offers of round {record.round}.")
    offer = _by_any(keys, read_offer, ours)
    expected = (record.charter, record.round, model.version, named.hex())
    if (offer.charter, offer.round, offer.version, offer.model) != expected:
        raise BadMessage(f"The offer of round {record.round} was not about the model of that moment.")
    if offer.digest().hex() != record.offer:
        raise BadMessage(f"The record of round {record.round} names another offer than the one that was signed.")
    check_offer(offer, config, named, 0)
    return offer


def _by_any(keys: list[bytes], read: Callable[[bytes, bytes], Read], content: bytes) -> Read:
    """What one of the helper's keys has signed: the federation config's, or one of those after it."""
    for key in keys[:-1]:
        try:
            return read(content, key)
        except BadMessage:
            continue
    return read(content, keys[-1])


def _get(client: Any, path: str) -> bytes:
    import httpx

    content = bytearray()
    try:
        with client.stream("GET", path) as response:
            for piece in response.iter_bytes():
                content += piece
                if len(content) > MOST_BYTES:
                    raise BadMessage(f"{client.base_url} answers with more than {MOST_BYTES:,} bytes.")
    except httpx.HTTPError as fault:
        raise NoAnswer(f"{client.base_url} did not answer ({type(fault).__name__}); is it running there?") from fault
    if response.status_code != 200:
        raise BadMessage(f"{client.base_url} answered {response.status_code} to {path}; this cannot be verified.")
    return bytes(content)


def _json(content: bytes) -> dict[str, Any]:
    try:
        told = json.loads(content)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise BadMessage("A server answered with something else than the JSON that was asked for.")
    return told


def _trusted(ca: str | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)
