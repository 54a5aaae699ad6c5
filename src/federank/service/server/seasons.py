"""A new season: another config for the same federation, whose first model continues a version before it.

    1. what the operator asks for is checked, and becomes a config, a catalogue and a first model; where uploads are
       aggregated securely, the helper registers the config and signs it. Nothing is changed until here
    2. one transaction ends the season before and its open rounds, publishes the first model, and counts every client's
       uploads from 0 again
    3. every worker sees the version, and reads the config again (service.py); clients do, and check both signatures

An item keeps its number for as long as the federation lasts. One that the new catalogue lacks stays in it, marked as
ended: no client uploads or recommends it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import BadMessage, SettingError
from federank.federation.method import MOST_MESSAGES
from federank.federation.server import Content, Guarantee, Published
from federank.federation.wire import Array
from federank.secagg.config import config_from, is_date, is_over, sign_config
from federank.service.server.config import (
    Catalogue,
    FederationConfig,
    catalogue_from,
    read_config,
    why_unreadable,
)
from federank.service.server.helper_line import HelperAway, HelperRefused
from federank.service.server.methods import ServerMethod
from federank.service.server.model_versions import stored_content
from federank.service.server.secure_config import (
    Agreement,
    get_agreement,
    put_agreement,
    register_all,
    settings_digest,
    settings_text,
)
from federank.service.server.store import secure
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import (
    discard_rounds,
    get_value,
    lock_metadata,
    newest_round,
    put_content,
    put_value,
)
from federank.service.server.store.seasons import (
    CATALOGUE,
    CONFIG,
    FIRST,
    Season,
    all_seasons,
    close_season,
    content_of,
    current_season,
    now,
    prune_season,
    put_season,
    season_of_version,
    today,
)
from federank.service.server.store.versions import (
    Overtaken,
    kept_versions,
    model_at,
    model_with_state,
    newest_version,
    publish_between,
)
from federank.service.server.store.writer import note_action

# The first model of a season, as a function of an earlier version and two catalogues.
#
# An item keeps its number for the lifetime of the federation: numbers key the draws of clients and the lines of their
# ledgers. An item that has ended keeps an empty row. An item that begins or returns starts from the mean row of items
# with the same categories, or of those that share one; without any it starts low, so that it is never first.


Item = Mapping[str, Any]
"""An item of a catalogue: id, title, categories; `ended` if it is no longer there."""


class SeasonRows(NamedTuple):
    """The rows that a new season changes."""

    n_items: int
    begun: dict[int, IntVector]  # rows of items that begin or return: the rows whose mean they start from
    ended: IntVector


def has_ended(item: Item) -> bool:
    """Whether an item is no longer in the catalogue."""
    return bool(item.get("ended"))


def season_rows(then: Sequence[Item], now: Sequence[Item]) -> SeasonRows:
    """The rows that a season's catalogue changes, against the catalogue `then`."""
    known = [row for row, item in enumerate(then) if not has_ended(item)]
    same: dict[frozenset[str], list[int]] = {}
    sharing: dict[str, set[int]] = {}
    for row in known:
        names = frozenset(now[row].get("categories") or ())
        if names:
            same.setdefault(names, []).append(row)
        for name in names:
            sharing.setdefault(name, set()).add(row)
    begun: dict[int, IntVector] = {}
    for row, item in enumerate(now):
        if has_ended(item) or (row < len(then) and not has_ended(then[row])):
            continue
        names = frozenset(item.get("categories") or ())
        alike = same.get(names) or sorted(set().union(*(sharing.get(name, set()) for name in names)))
        begun[row] = np.array(alike, dtype=np.int32)
    ended = np.array([row for row, item in enumerate(now) if has_ended(item)], dtype=np.int32)
    return SeasonRows(len(now), begun, ended)


def season_content(served: ServerMethod, settings: Any, content: Content, rows: SeasonRows) -> Content:
    """The initial content of a season."""
    names = served.item_state(settings, content)
    extended = served.extend(settings, content, rows.n_items + 1)  # the last row is the initial row without a mean
    tables = {name: _begun(table, rows) for name, table in extended.tables.items()}
    state = {name: _begun(part, rows) if name in names else part for name, part in extended.state.items()}
    begun = np.array(sorted(rows.begun), dtype=np.int32)
    return served.new_season(settings, Content(tables, extended.overall, state), begun)


def _begun(table: Array, rows: SeasonRows) -> Array:
    """A table with the rows of a season. Integers have no mean: such a row starts low.

    No zero is negative: a store that keeps only changed rows does not distinguish them, and a verifier must get the
    same bits.
    """
    table = table + table.dtype.type(0)
    low, begun = table[-1], table[:-1].copy()
    begun[rows.ended] = low
    has_mean = np.issubdtype(table.dtype, np.floating)
    for row, alike in rows.begun.items():
        begun[row] = table[alike].mean(axis=0, dtype=np.float64) if has_mean and len(alike) else low
    return begun


# A new season, from what the operator asks for.


MOST_ITEMS = 10_000_000
"""Clients take no larger catalogue (service/client/rules.py)."""
LONGEST_TEXT = 500
ATTEMPTS = 5
"""A season starts from the newest version. If a round publishes another meanwhile, it is prepared again."""


@dataclass(frozen=True, kw_only=True)
class SeasonSpec:
    """What an operator asks for; whatever is not given stays as it is."""

    items: Any = None
    """The catalogue: a list of items with id, and perhaps title and categories."""
    uploads: int | None = None
    epsilon: float | None = None
    until: str | None = None
    start_from: int | None = None
    """The version to continue; the newest one by default."""


class Proposal(NamedTuple):
    """A season that is ready to begin."""

    season: Season
    settings: Any
    catalogue: Catalogue
    content: Content
    agreement: Agreement | None
    is_newest: bool  # whether it starts from the newest version


def propose(connection: Connection, spec: SeasonSpec) -> Proposal:
    """Check a spec and prepare its season; the store is not changed, and a helper has only registered a config."""
    config = read_config(connection)
    assert config is not None, "a store that is served holds a federation"
    season = current_season(connection)
    until = _until(season, spec)
    start = _start(connection, spec.start_from)
    origin = season_of_version(connection, start.version)
    then = _items(content_of(connection, origin.number, CATALOGUE))
    known = _items(config.catalogue.content)
    items = known if spec.items is None else next_items(known, spec.items)
    target = int(get_value(connection, "rounds")["target"])
    settings, guarantee = _settings(config, season, spec, len(items), target)
    content = season_content(config.served, settings, start.content, season_rows(then, items))
    proposed = Season(
        number=season.number + 1,
        starts_from=start.version,
        uploads=config.served.uploads_of(settings),
        **guarantee._asdict(),
        until=until,
        began=now(),
    )
    catalogue = catalogue_from(items)
    agreement = None
    if config.sums is not None:
        content, agreement = _agreed(connection, config, settings, proposed, origin, catalogue, content)
    first = Published(start.version + 1, np.full(len(items), start.version + 1), content)
    why = why_unreadable(config.served, settings, first, first.rows_since(None), 0)
    if why is not None:
        raise SettingError(f"A season cannot begin with this model, because {why} Start from another version.")
    if agreement is not None:
        agreement = _registered(connection, agreement)
    return Proposal(proposed, settings, catalogue, content, agreement, spec.start_from is None)


def begin(connection: Connection, proposal: Proposal) -> Published:
    """End the current season and begin this one, in one transaction; `Overtaken` where the store has gone on since."""
    season, settings, catalogue, content, agreement, is_newest = proposal
    with connection.transaction():
        before, newest = newest_round(connection), model_with_state(connection)
        version = newest.version + 1
        model = Published(version, np.full(content.n_items, version), content)
        publish_between(connection, newest, model)
        connection.run("UPDATE clients SET invitations = 0, invited_to = -1")
        lock_metadata(connection)
        if current_season(connection).number != season.number - 1 or newest_version(connection) != version:
            raise Overtaken("Another season has begun meanwhile.")
        if is_newest and season.starts_from != newest.version:
            raise Overtaken("Another version has been published meanwhile.")
        close_season(connection)
        first_round = 0 if before is None else before.number + 1
        put_season(connection, replace(season, first_version=version, first_round=first_round))
        put_content(connection, CATALOGUE, catalogue.content)
        put_value(
            connection,
            "config",
            get_value(connection, "config") | {"items": content.n_items, "settings": asdict(settings)},
        )
        if agreement is not None:
            put_agreement(connection, agreement)
            put_content(connection, FIRST, stored_content(content))
        note_action(connection, "season", number=season.number, starts_from=season.starts_from, as_version=version)
    return model


def begin_season(connection: Connection, spec: SeasonSpec) -> tuple[Season, Published]:
    """Begin the season that the operator asks for."""
    for attempt in range(ATTEMPTS):
        proposal = propose(connection, spec)
        old, open_rounds = get_agreement(connection), _open_rounds(connection)
        try:
            model = begin(connection, proposal)
        except Overtaken:
            if attempt + 1 == ATTEMPTS:
                raise
            continue
        if old is not None:
            _give_up_at_helper(connection, old, open_rounds)
        return current_season(connection), model
    raise AssertionError("the last attempt returns or raises")


def end_season(connection: Connection) -> Season:
    """End the current season: its open round is discarded, and no other begins until there is another season."""
    agreement, open_rounds = get_agreement(connection), _open_rounds(connection)
    with connection.transaction():
        discard_rounds(connection)
        lock_metadata(connection)
        season = current_season(connection)
        if not season.ended:
            season = replace(season, ended=now())
            put_season(connection, season)
            note_action(connection, "season ended", number=season.number)
    if agreement is not None:
        _give_up_at_helper(connection, agreement, open_rounds)
    return season


def prune(connection: Connection, number: int) -> Season:
    """Drop the sums and versions of a season that another has followed, here and at the helper."""
    found = [season for season in all_seasons(connection) if season.number == number]
    if not found:
        raise SettingError(f"There is no season {number}; `federank admin season list` shows those that are.")
    if number == current_season(connection).number:
        raise SettingError(f"Season {number} is the current one; a season is pruned after another has begun.")
    content, agreement = content_of(connection, number, CONFIG), get_agreement(connection)
    if content is not None and agreement is not None:
        try:
            with closing(agreement.line()) as line:
                line.prune(config_from(content).digest().hex())
        except (HelperAway, HelperRefused, BadMessage) as reason:
            raise SettingError(f"The helper has not pruned season {number}, so nothing was: {reason}") from reason
    with connection.transaction():
        prune_season(connection, found[0])
        note_action(connection, "season pruned", number=number)
    return replace(found[0], pruned=True)


# What is asked for, checked.


def next_items(known: list[dict[str, Any]], given: Any) -> list[dict[str, Any]]:
    """The next season's catalogue: every known item under its number, new ones last; those not given have ended."""
    checked = _checked_items(given, known)
    wanted = {str(item["id"]): item for item in checked}
    kept = [str(item["id"]) for item in known if not has_ended(item) and str(item["id"]) in wanted]
    if not kept:
        raise SettingError(
            "The catalogue has none of the items of the season before; a season continues at least one of them. Are "
            "the ids those of this federation?"
        )
    items = []
    for item in known:
        now_given = wanted.pop(str(item["id"]), None)
        fields = {name: value for name, value in item.items() if name != "ended"}
        items.append(fields | {"ended": True} if now_given is None else fields | now_given)
    items += wanted.values()
    if len(items) > MOST_ITEMS:
        raise SettingError(f"A catalogue has {MOST_ITEMS:,} items at most, with those that have ended.")
    return items


def _checked_items(given: Any, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items as the catalogue keeps them, or an error about the first that cannot be one."""
    if not isinstance(given, list) or len(given) < 2:
        raise SettingError("A catalogue is a list of at least two items, each with an id and perhaps a title.")
    numbered = all(isinstance(item["id"], int) for item in known)
    taken: set[str] = set()
    items: list[dict[str, Any]] = []
    for item in given:
        identity = _identity(item, numbered)
        if str(identity) in taken:
            raise SettingError(f"The item {identity!r} is twice in the catalogue.")
        taken.add(str(identity))
        title = _text(item.get("title") or str(identity), f"The title of {identity!r}")
        categories = item.get("categories") or []
        if not isinstance(categories, list):
            raise SettingError(f"The categories of {identity!r} are {categories!r}; a list of words is needed.")
        named = [_text(name, f"A category of {identity!r}") for name in categories]
        items.append({"id": identity, "title": title, "categories": named})
    return items


def _identity(item: Any, numbered: bool) -> int | str:
    """An item's id, of the kind that the catalogue's ids are."""
    identity = item.get("id") if isinstance(item, dict) else None
    text = _text(str(identity) if isinstance(identity, int) and not isinstance(identity, bool) else identity, "An id")
    if not numbered:
        return text
    if not (text.isascii() and text.removeprefix("-").isdecimal() and str(int(text)) == text):
        raise SettingError(f"The id {text!r} is no integer, as the ids of this catalogue are.")
    return int(text)


def _text(given: Any, what: str) -> str:
    if not isinstance(given, str) or not 0 < len(given.strip()) <= LONGEST_TEXT or not given.isprintable():
        raise SettingError(f"{what} is {given!r}; a line of 1 to {LONGEST_TEXT} characters is needed.")
    return given.strip()


def _until(season: Season, spec: SeasonSpec) -> str:
    until = season.until if spec.until is None else spec.until
    if not isinstance(until, str) or (until and not is_date(until)):
        raise SettingError(f"The end date is {until!r}; a day such as 2027-06-30 is needed.")
    if is_over(until, today()):
        raise SettingError(f"The end date {until} is in the past (today is {today()} in UTC); name a later one.")
    return until


def _start(connection: Connection, version: int | None) -> Published:
    if version is None:
        return model_with_state(connection)
    found = None
    if version in {entry["version"] for entry in kept_versions(connection)}:
        found = model_at(connection, version)
    if found is None:
        raise SettingError(f"Version {version} is not kept; `federank admin versions` lists those that are.")
    return found


def _settings(
    config: FederationConfig, season: Season, spec: SeasonSpec, n_items: int, target: int
) -> tuple[Any, Guarantee]:
    """The method for the season, and its guarantee."""
    served, settings = config.served, replace(config.settings, n_items=n_items)
    guarantee = Guarantee(season.sigma, season.epsilon, season.delta or 0.0)
    if spec.uploads is not None:
        if served.uploads_of(settings) is None:
            raise SettingError(f"Clients of this federation of {served.name} have no quota of uploads; leave it out.")
        is_integer = isinstance(spec.uploads, int) and not isinstance(spec.uploads, bool)
        if not is_integer or not 1 <= spec.uploads <= MOST_MESSAGES:
            raise SettingError(f"uploads is {spec.uploads!r}; an integer from 1 to {MOST_MESSAGES:,} is needed.")
        settings = replace(settings, **{served.kind.quota: spec.uploads})
    if config.sums is None:
        if spec.epsilon is not None:
            raise SettingError("epsilon needs secure aggregation, and this federation's operator reads every upload.")
        return settings, Guarantee(None, None, 0.0)
    if spec.epsilon is not None:
        if isinstance(spec.epsilon, bool) or not isinstance(spec.epsilon, int | float) or not 0 < spec.epsilon < 1e6:
            raise SettingError(f"epsilon is {spec.epsilon!r}; a number above 0 is needed.")
        guarantee = Guarantee(None, float(spec.epsilon), guarantee.delta)
    return served.secured(settings, guarantee, target, n_items), guarantee


def _agreed(
    connection: Connection,
    config: FederationConfig,
    settings: Any,
    season: Season,
    origin: Season,
    catalogue: Catalogue,
    content: Content,
) -> tuple[Content, Agreement]:
    """The content at the first stage of the season's uploads, and the config of both; not registered yet."""
    assert config.sums is not None, "only asked under secure aggregation"
    old = config.sums.config
    # The shape of messages and the weight of popular items stay: the model that goes on was made with them.
    made = replace(
        old,
        catalogue=hashlib.sha256(catalogue.content).hexdigest(),
        settings=settings_digest(settings),
        items=content.n_items,
        noises=settings.noises,
        messages=len(settings.noises),
        season=season.number,
        before=old.digest().hex(),
        starts_from=season.starts_from,
        until=season.until,
        first="",
    )
    started = config_from(content_of(connection, origin.number, CONFIG) or b"")
    content = config.served.new_plan(settings, started.noises, made.noises, content)
    configs = [config_from(content_of(connection, one.number, CONFIG) or b"") for one in all_seasons(connection)]
    if all(one.has_noise for one in configs):  # else it holds sums that are not published
        made = replace(made, first=hashlib.sha256(stored_content(content)).hexdigest())
    return content, config.sums._replace(config=made, settings=settings_text(settings))


def _registered(connection: Connection, agreement: Agreement) -> Agreement:
    """The same, registered at the helper and signed by both servers. A restored helper receives all seasons."""
    try:
        with closing(agreement.line()) as line:
            try:
                signature = line.register(agreement.config.to_bytes())
            except HelperRefused as refusal:
                if refusal.slug != "unknown":
                    raise
                register_all(connection, line)
                signature = line.register(agreement.config.to_bytes())
    except (HelperAway, HelperRefused, BadMessage) as reason:
        raise SettingError(
            f"The helper at {agreement.config.helper_origin} has not taken the season on: {reason} Nothing was changed."
        ) from reason
    return agreement._replace(signatures=(sign_config(agreement.private, agreement.config), signature))


def _open_rounds(connection: Connection) -> list[int]:
    found = newest_round(connection)
    return [found.number] if found is not None and found.state in ("open", "closed") else []


def _give_up_at_helper(connection: Connection, agreement: Agreement, rounds: list[int]) -> None:
    """Have the helper end the rounds that were open, and keep its records: their uploads are not charged."""
    if not rounds:
        return
    with closing(agreement.line()) as line:
        for number in rounds:
            with suppress(HelperAway, HelperRefused, BadMessage):
                secure.put_discarded(connection, number, line.abandon(agreement.name, number))


def _items(content: bytes | None) -> list[dict[str, Any]]:
    assert content is not None, "every season has a catalogue"
    items: list[dict[str, Any]] = json.loads(content)["items"]
    return items


def same_items(content: bytes, first: bytes) -> bool:
    """Whether a catalogue has the items of another, and perhaps more: by their ids."""
    items, fewer = ([item["id"] for item in _items(each)] for each in (content, first))
    return bool(items[: len(fewer)] == fewer)
