"""Seasons in the store: a line for each, and what the closed ones were begun with.

What is current is kept under its usual names (catalogue, federation config). When a season begins, that of the season
before gets the season's number in front of its name.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace

from federank.secagg.config import is_over
from federank.service.server.store.database import Connection
from federank.service.server.store.queries import get_content, get_value, put_value

CATALOGUE, CONFIG, SETTINGS = "catalogue", "sums federation config", "sums settings"
SIGNATURES, FIRST = "sums signatures", "first content"
KEPT = (CATALOGUE, CONFIG, SETTINGS, SIGNATURES, FIRST)
"""What each season has of its own."""
_SEASONS = "seasons"


@dataclass(frozen=True, kw_only=True)
class Season:
    """A season, as its server lists it."""

    number: int
    first_version: int = 0
    first_round: int = 0
    starts_from: int = 0
    """The version whose content the first one continues; 0 for the first season."""
    uploads: int | None = None
    """Uploads per client; None where they are not counted."""
    sigma: float | None = None
    epsilon: float | None = None
    """The guarantee for all uploads of a client in this season, as the operator has stated it."""
    delta: float | None = None
    until: str = ""
    began: str = ""
    ended: str = ""
    pruned: bool = False


def all_seasons(connection: Connection) -> list[Season]:
    """Every season, the current one last."""
    return [Season(**one) for one in get_value(connection, _SEASONS) or [{"number": 1}]]


def current_season(connection: Connection) -> Season:
    """The season that has begun last; it may have ended."""
    return all_seasons(connection)[-1]


def put_season(connection: Connection, season: Season) -> None:
    """Keep a season's line, within the caller's transaction."""
    known = {one.number: one for one in all_seasons(connection)} | {season.number: season}
    put_value(connection, _SEASONS, [asdict(known[number]) for number in sorted(known)])


def close_season(connection: Connection) -> None:
    """Put what the current season has under its number: another one begins, within the caller's transaction."""
    season = current_season(connection)
    put_season(connection, season if season.ended else replace(season, ended=now()))
    for name in KEPT:
        connection.run("UPDATE metadata SET name = ? WHERE name = ?", _name(season.number, name), name)


def content_of(connection: Connection, number: int, name: str) -> bytes | None:
    """What a season was begun with, by one of the names in `KEPT`."""
    if number == current_season(connection).number:
        return get_content(connection, name)
    return get_content(connection, _name(number, name))


def season_of_version(connection: Connection, version: int) -> Season:
    """The season that a version belongs to."""
    return [season for season in all_seasons(connection) if season.first_version <= version][-1]


def is_resting(connection: Connection) -> bool:
    """Whether no round is to begin now: the operator has paused them, or the season has ended."""
    season = current_season(connection)
    return bool(get_value(connection, "paused")) or bool(season.ended) or is_over(season.until, today())


def prune_season(connection: Connection, season: Season) -> None:
    """Drop a closed season's published sums and its versions but the last, within the caller's transaction.

    Its config, catalogue, signatures, offers, records and first content stay.
    """
    following = next(one for one in all_seasons(connection) if one.number == season.number + 1)
    rounds = season.first_round, following.first_round
    connection.run(
        "UPDATE sums SET noisy = ?, helper_sum = ?, total = ? WHERE round >= ? AND round < ?", b"", b"", b"", *rounds
    )
    connection.run("DELETE FROM uploads WHERE round >= ? AND round < ?", *rounds)
    connection.run("DELETE FROM refusals WHERE round >= ? AND round < ?", *rounds)
    connection.run(
        "DELETE FROM versions WHERE version >= ? AND version < ?", season.first_version, following.first_version
    )
    put_season(connection, replace(season, pruned=True))


def now() -> str:
    """The time, as lists show it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def today() -> str:
    """The day in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def _name(number: int, name: str) -> str:
    return f"season {number}: {name}"
