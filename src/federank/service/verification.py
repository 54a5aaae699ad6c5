"""Verifying secure aggregation from outside, from what the two servers have published.

1. Both servers have signed the config of every season, and each names the one before it. The key in it is the helper's
   at its own address, or has signed for that one.
2. Both servers list the same seasons, and the same rounds of every season. What only one of them knows is a finding,
   unless a restored backup explains it: then it is named as lost.
3. Every round config is signed by the helper, is the same at both servers, and names a model of the chain of versions.
   So is the model that the leader publishes now: a model that is not in the chain is a finding.
4. Both servers' records are signed, name the same set of uploads, and name the noisy sums by their digests.
5. The two noisy sums, added in the ring and aggregated as the settings say, give the model that the leader's record
   names. Sums without noise are not published: there the chain of digests is checked, and no model is recomputed.
6. The first model of a season follows from the version that its config names and from the two catalogues. Where that
   version is not recomputed (no noise, or a season that was pruned), it is the one whose digest both servers signed.

So a leader cannot aggregate anything else than it says, nor hide a round, nor a helper answer anything else. Whether a
server's own sum is honest cannot be verified. Models are recomputed to the last bit where the linear algebra of
both machines is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from federank.errors import BadAnswer, BadMessage, Refused
from federank.federation.secure import model_digest
from federank.federation.server import Content, Published
from federank.federation.wire import Array
from federank.secagg.canonical import digest
from federank.secagg.config import SecaggConfig, check_follows, check_signed, config_from
from federank.secagg.exchange import ABANDONED, AGGREGATED, read_record, same_round, sum_digest
from federank.secagg.keys import fingerprint, identity_from, read_by_any
from federank.secagg.ring import centred, ring_from
from federank.secagg.round_config import read_offer
from federank.service.chain import Chain
from federank.service.client.federation import merged, read_info, read_rows
from federank.service.client.http import Client
from federank.service.seasons import InTotal, total_of
from federank.service.server.methods import SERVER_METHODS, ServerMethod
from federank.service.server.model_versions import content_from, first_model
from federank.service.server.seasons import season_content, season_rows
from federank.service.server.secure_config import settings_from

MOST_BYTES = 1 << 28
_ROUNDING = 1e-6
"""By so much of the largest value may what a server remembers differ from what a verifier works out."""
Note = Callable[[str], None]


class Restore(NamedTuple):
    """A leader's store that was restored from a backup: where the numbers jump, and what was lost."""

    round: int
    version: int
    lost: tuple[int, ...]  # rounds that the leader has forgotten; the helper knows them


class Verified(NamedTuple):
    """The result of a verification."""

    helper_fingerprint: str
    config: str
    seasons: tuple[dict[str, Any], ...]
    in_total: InTotal
    versions: int
    recomputed: int  # of them, from published sums
    messages: int
    abandoned: int
    restores: tuple[Restore, ...]
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Servers:
    """Where to ask, and by whose certificates."""

    leader: str
    helper: str
    leader_ca: str | None = None
    helper_ca: str | None = None


def verify(servers: Servers, note: Note = lambda _: None) -> Verified:
    """Verify every round and version; what a server cannot have signed honestly is a `BadMessage`."""
    with (
        Client(servers.leader, ca=servers.leader_ca) as leader,
        Client(servers.helper, ca=servers.helper_ca, ca_flag="--helper-ca", prefix="") as helper,
    ):
        return _Verification(servers, partial(_get, leader), partial(_get, helper), note).run()


Fetch = Callable[[str], bytes]
SKIPPED, OPEN = "skipped", "open"


class _Listed(NamedTuple):
    """A round as the leader lists it."""

    round: int
    state: str
    version: int
    config: str | None


class _Season(NamedTuple):
    """A season as the leader lists it, and its config."""

    config: SecaggConfig
    first_version: int
    first_round: int
    pruned: bool


class _Verification:
    """One run over the rounds of both servers, season after season."""

    def __init__(self, servers: Servers, leader: Fetch, helper: Fetch, note: Note) -> None:
        self._servers, self._leader, self._helper, self._note = servers, leader, helper, note
        self._findings: list[str] = []
        self._restores: list[Restore] = []
        self.versions = self.messages = self.abandoned = 0

    def run(self) -> Verified:
        seasons, self._keys = _seasons(self._servers, self._leader, self._helper)
        self._note(f"helper   {fingerprint(self._keys[-1])}")
        # The order makes a federation that goes on meanwhile look as it is: what is asked for first is in what follows.
        public = _public_model(self._leader)
        before = {season.config.season: self._helper_rounds(season) for season in seasons}
        listed = self._leader_rounds()
        chain = Chain(frozenset(season.config.starts_from for season in seasons[1:]))
        for season, rounds in zip(seasons, _by_season(seasons, listed), strict=True):
            self._verify_season(chain, season, seasons, rounds, before[season.config.season])
        self._compare_seasons(seasons)
        chain.name(*public)
        if public not in chain.known:
            self._findings.append(f"Version {public[0]:,}, which the leader publishes now, is not in the chain.")
        configs = [season.config for season in seasons]
        return Verified(
            fingerprint(self._keys[-1]),
            configs[-1].digest().hex(),
            tuple(_season_line(season) for season in seasons),
            total_of(configs),
            self.versions,
            chain.recomputed,
            self.messages,
            self.abandoned,
            tuple(self._restores),
            tuple(self._findings),
        )

    def _verify_season(
        self, chain: Chain, season: _Season, seasons: list[_Season], listed: list[_Listed], before: dict[int, str]
    ) -> None:
        """Check a season's first model and every round of it."""
        self._season, self._secagg = season, season.config
        self._name = season.config.digest().hex()
        self._note(f"season {season.config.season}  federation config {self._name}")
        served, settings = _settings(season.config, self._leader)
        chain.begin(
            served, settings, season.config, season.first_version, self._first(chain, served, settings, seasons)
        )
        after, restores, previous = self._helper_rounds(season), list[Restore](), season.first_round - 1
        for number, state, version, _ in listed:
            if state == SKIPPED:
                lost = tuple(one for one in sorted(before) if previous < one < number)
                restores.append(Restore(number, version, lost))
                chain.jump(version)
                self._note(f"version {version:,}: restored from a backup; rounds that were lost: {_named(lost)}")
            elif state == AGGREGATED:
                self.messages += self._verify_round(chain, number, number in after)
                self.versions += 1
            elif state == ABANDONED:
                self.abandoned += 1
            previous = number
        forgotten = tuple(one.round for one in listed if one.state != SKIPPED and one.round not in after)
        if forgotten:  # the leader has shown the helper's signatures
            self._note(f"The helper's store was restored from a backup; rounds that it has lost: {_named(forgotten)}")
        self._compare_lists({one.round for one in listed}, before, restores)
        self._compare_offers(chain, before, {number for restore in restores for number in restore.lost})
        self._restores += restores

    def _first(self, chain: Chain, served: ServerMethod, settings: Any, seasons: list[_Season]) -> Published | None:
        """The first version of a season; None where sums without noise are in it, so that it is not published."""
        config = self._secagg
        if config.season > 1 and config.starts_from not in {version for version, _ in chain.known}:
            raise BadMessage(f"Season {config.season} starts from version {config.starts_from:,}, which never was.")
        if not config.first:
            self._note("the first version of the season is not published: sums without noise are in it")
            return None
        content = self._leader(f"/sums/first?season={config.season}")
        if hashlib.sha256(content).hexdigest() != config.first:
            raise BadMessage(f"The first content of season {config.season} is not the one that its config names.")
        published = content_from(content)
        if config.season == 1:
            return _first(served, settings, config, published, self._note)
        first = Published(self._season.first_version, np.full(config.items, self._season.first_version), published)
        start = chain.starts.get(config.starts_from)
        if start is None:
            self._note(f"version {first.version:,}: the first of the season, as both servers have signed it")
            return first
        origin = [one for one in seasons if one.first_version <= config.starts_from][-1]
        rows = season_rows(self._items(origin), self._items(self._season))
        begun = season_content(served, settings, start.content, rows)
        begun = served.new_plan(settings, origin.config.noises, config.noises, begun)
        if not _same_content(begun, published):
            raise BadMessage(f"The first model of season {config.season} does not follow from version {start.version}.")
        self._note(f"version {first.version:,}: follows from version {start.version:,} and the catalogue")
        return first

    def _items(self, season: _Season) -> list[dict[str, Any]]:
        """The catalogue of a season, if it is the one that its config names."""
        content = self._leader(f"/catalogue?season={season.config.season}")
        if hashlib.sha256(content).hexdigest() != season.config.catalogue:
            raise BadMessage(f"The catalogue of season {season.config.season} is not the one that its config names.")
        items: list[dict[str, Any]] = _json(content)["items"]
        return items

    def _verify_round(self, chain: Chain, number: int, helper_knows: bool) -> int:
        """Check both records of an aggregated round and follow it to its version; how many uploads it has."""
        record = read_record(self._leader(f"/sums/record?round={number}"), self._secagg.leader_public())
        theirs = read_by_any(self._keys, read_record, self._of_helper(number, "record", helper_knows))
        same_round(record, theirs)
        ours = self._leader(f"/sums/offer?round={number}")
        if helper_knows and ours != self._of_helper(number, "offer", helper_knows):
            raise BadMessage(f"The two servers have published different offers of round {number}.")
        offer = read_by_any(self._keys, read_offer, ours)
        if (offer.config, offer.round, offer.digest().hex()) != (self._name, number, record.offer):
            raise BadMessage(f"The record of round {number} names another offer than the one that was signed.")
        chain.check(offer)
        if self._secagg.has_noise and not self._season.pruned and chain.is_recomputed:
            shares = ring_from(self._leader(f"/sums/total?round={number}"))
            masks = ring_from(self._of_helper(number, "sum", helper_knows))
            if sum_digest(shares).hex() != record.sum or sum_digest(masks).hex() != theirs.sum:
                raise BadMessage(f"The sums that are published of round {number} are not those that the records name.")
            chain.recompute(offer, record, centred(shares + masks))
            done = "recomputed"
        else:
            chain.follow(record)
            why = "its season is pruned" if self._season.pruned else "its sums have no noise and are not published"
            done = f"not recomputed, {why}"
        self._note(f"version {chain.version:,}: round {number}, {record.messages:,} messages, {done}")
        return record.messages

    def _of_helper(self, number: int, what: str, helper_knows: bool) -> bytes:
        """What the helper has published of a round; where its restored store has lost it, the leader's copy."""
        if helper_knows:
            return self._helper(f"/federations/{self._name}/rounds/{number}/{what}")
        return self._leader(f"/sums/helper-{what}?round={number}")

    def _compare_seasons(self, seasons: list[_Season]) -> None:
        """A season begins at the helper with its first round; a restored helper may have forgotten that."""
        digests = [season.config.digest().hex() for season in seasons]
        for season, name, following in zip(seasons, digests, [*digests[1:], ""], strict=True):
            successor = _json(self._helper(f"/federations/{name}/rounds"))["successor"]
            if successor not in ("", following):
                self._findings.append(
                    f"After season {season.config.season} another has begun at the helper than the leader lists: its "
                    f"config is {successor}."
                )

    def _compare_lists(self, ours: set[int], theirs: dict[int, str], restores: list[Restore]) -> None:
        explained = {number for restore in restores for number in restore.lost}
        newest = max(theirs, default=-1)
        for number, state in theirs.items():
            is_just_offered = number == newest and state == OPEN
            if number not in ours and number not in explained and not is_just_offered:
                self._findings.append(f"Round {number} is {state} at the helper, and the leader does not list it.")

    def _compare_offers(self, chain: Chain, theirs: dict[int, str], lost: set[int]) -> None:
        """Every model that was offered must be in the chain."""
        for number in sorted(set(theirs) - lost):
            content = self._helper(f"/federations/{self._name}/rounds/{number}/offer")
            offer = read_by_any(self._keys, read_offer, content)
            chain.name(offer.version, offer.model)
            if (offer.version, offer.model) not in chain.known:
                self._findings.append(
                    f"Round {number} was about version {offer.version:,} with the digest {offer.model}, which is not "
                    "in the chain."
                )

    def _leader_rounds(self) -> list[_Listed]:
        rounds = _paged(self._leader, "/sums/rounds")
        return [_Listed(int(one["round"]), str(one["state"]), int(one["version"]), one["config"]) for one in rounds]

    def _helper_rounds(self, season: _Season) -> dict[int, str]:
        rounds = _paged(self._helper, f"/federations/{season.config.digest().hex()}/rounds")
        return {int(one["round"]): str(one["state"]) for one in rounds}


def _same_content(mine: Content, theirs: Content) -> bool:
    """Whether two contents are the same: tables to the last bit, and what is remembered in 64 bits but for rounding.

    The digest of a version is of what clients read. What a server remembers besides may differ in its last bits, as
    linear algebra does with the place of its arrays in memory.
    """
    parts = [
        (mine.tables, theirs.tables, 0.0),
        (mine.overall, theirs.overall, 0.0),
        (mine.state, theirs.state, _ROUNDING),
    ]
    return all(
        one.keys() == other.keys() and all(_is_close(one[name], other[name], tolerance) for name in one)
        for one, other, tolerance in parts
    )


def _is_close(one: Array, other: Array, tolerance: float) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    longest = float(np.abs(other).max(initial=0.0))
    return bool(np.all(np.abs(one - other) <= tolerance * longest))


def _by_season(seasons: list[_Season], listed: list[_Listed]) -> list[list[_Listed]]:
    """The rounds of each season; a jump after a restore belongs to the season that had begun by then."""
    names = {season.config.digest().hex(): place for place, season in enumerate(seasons)}
    found: list[list[_Listed]] = [[] for _ in seasons]
    for one in listed:
        begun = [place for place, season in enumerate(seasons) if season.first_round <= one.round]
        place = begun[-1] if one.config is None else names.get(one.config)
        if place is None:
            raise BadMessage(f"Round {one.round} is of a season that the leader does not list.")
        found[place].append(one)
    return found


def _named(rounds: tuple[int, ...]) -> str:
    return ", ".join(map(str, rounds)) or "none"


def _public_model(leader: Fetch) -> tuple[int, str]:
    """Version and digest of the model that clients are given now."""
    try:
        info = read_info(leader("/federation"))
        model = merged(read_rows(leader("/model"), info), None, info.n_items)
    except BadAnswer as reason:
        raise BadMessage(f"The leader's model cannot be read: {reason}") from reason
    return model.version, model_digest(model.version, {**model.tables, **model.overall}).hex()


def _paged(fetch: Fetch, path: str) -> list[dict[str, Any]]:
    """All rounds of a server's list."""
    rounds: list[dict[str, Any]] = []
    while some := _json(fetch(f"{path}?from={rounds[-1]['round'] + 1 if rounds else 0}"))["rounds"]:
        rounds += some
    return rounds


def _seasons(servers: Servers, leader: Fetch, helper: Fetch) -> tuple[list[_Season], list[bytes]]:
    """Every season, whose config both servers have signed; and the helper's keys: the first, and its successors."""
    listed = _json(leader("/seasons"))["seasons"]
    configs = [config_from(str(one["config"]).encode()) for one in listed]
    first = configs[0]
    keys = identity_from(helper("/identity")).successors_of(first.helper_public())
    if first.helper_origin != servers.helper.rstrip("/"):
        raise BadMessage(
            f"The federation config names the helper at {first.helper_origin}, not the one at {servers.helper}."
        )
    if first.season != 1:
        raise BadMessage("The leader does not list its first season.")
    for before, now in pairwise(configs):
        check_follows(before, now)
    for one, config in zip(listed, configs, strict=True):
        leader_signature, helper_signature = map(bytes.fromhex, one["signatures"])
        check_signed(config, leader_signature, helper_signature, keys)
    seasons = [
        _Season(config, int(one["first_version"]), int(one["first_round"]), bool(one["pruned"]))
        for one, config in zip(listed, configs, strict=True)
    ]
    return seasons, keys


def _season_line(season: _Season) -> dict[str, Any]:
    """What is reported of a season: uploads and epsilon per client."""
    config, total = season.config, total_of([season.config])
    return {
        "season": config.season,
        "uploads": config.messages,
        "mu": total.mu,
        "epsilon": total.epsilon,
        "delta": total.delta,
        "until": config.until,
        "starts_from": config.starts_from,
        "first_version": season.first_version,
        "pruned": season.pruned,
    }


def _settings(config: SecaggConfig, leader: Fetch) -> tuple[ServerMethod, Any]:
    content = leader(f"/sums/settings?season={config.season}")
    if digest("settings", content).hex() != config.settings:
        raise BadMessage("The method's settings are not those that the federation config names.")
    method = str(_json(leader("/federation")).get("method")).removesuffix("-sums")
    if method not in SERVER_METHODS:
        raise BadMessage(f"The federation's method is {method[:40]!r}, which this version does not know.")
    return SERVER_METHODS[method], settings_from(SERVER_METHODS[method].kind, _json(content))


def _first(served: ServerMethod, settings: Any, config: SecaggConfig, published: Content, note: Note) -> Published:
    """Version 0: as the seed draws it, or a trained model, which is taken as it is."""
    if served.is_drawn(published):
        drawn = served.first_content(settings, SimpleNamespace(n_items=config.items), None)  # type: ignore[arg-type]
        if not all(
            name in published.tables and np.array_equal(table, published.tables[name])
            for name, table in drawn.tables.items()
        ):
            raise BadMessage("Version 0 is not what the federation's seed draws.")
    else:
        note("version 0: a trained model, taken as it is")
    return first_model(published)


def _get(client: Client, path: str) -> bytes:
    try:
        return client.request("GET", path, most_bytes=MOST_BYTES, attempts=1).content
    except Refused as refusal:
        raise BadMessage(f"{client.address} answered {refusal.status} to {path}; this cannot be verified.") from refusal


def _json(content: bytes) -> dict[str, Any]:
    try:
        published = json.loads(content)
    except ValueError:
        published = None
    if not isinstance(published, dict):
        raise BadMessage("A server answered with something else than the JSON that was asked for.")
    return published
