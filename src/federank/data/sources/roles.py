"""Which column holds what: users, items, ratings, times, categories.

A caller may name a column or give its position, counted from 0. Otherwise a header is searched for the names
that published sets use, compared without case and punctuation; without a header the order is user, item, rating,
time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from federank.data.sources.options import ColumnChoice, ColumnChoices
from federank.errors import BadFile, SettingError

WORDS = {
    "users": ("userid", "user", "uid", "reviewerid", "customerid", "visitorid", "memberid", "sessionid"),
    "items": (
        "itemid", "item", "iid", "movieid", "venueid", "productid", "parentasin", "asin", "bookid", "trackid",
        "songid", "artistid", "businessid", "placeid", "poiid", "workid",
    ),
    "ratings": ("rating", "ratings", "score", "stars", "overall"),
    "times": (
        "timestamp", "time", "utc", "utctime", "utctimestamp", "unixtime", "unixreviewtime", "datetime", "date",
    ),
    "categories": ("category", "categories", "venuecategory", "venuecategoryname"),
}  # fmt: skip
"""The names by which a header gives a role away, the surest first."""

PLACES = ("venueid", "placeid", "poiid")
"""Items whose `type` is a category; elsewhere a column of that name may be the kind of event."""


class Roles(NamedTuple):
    """The position of each column that is read."""

    users: int
    items: int
    ratings: int | None = None
    times: int | None = None
    categories: int | None = None


def assign_roles(names: Sequence[str] | None, count: int, choices: ColumnChoices, label: str) -> Roles:
    """The columns to read, from a header's names (None: there is none) and the caller's choices."""
    if names is None:
        return _by_position(count, choices, label)
    chosen = {role: _chosen(role, choice, names, count, label) for role, choice in choices._asdict().items()}
    for role in ("users", "items", "ratings", "times"):
        if choices._asdict()[role] is None:
            chosen[role] = find_word(names, WORDS[role])
    for role in ("users", "items"):
        if chosen[role] is None:
            raise BadFile(
                f"{label} has no column known to hold {role}: its columns are {_listed(names)}. Say which one does, "
                f"with {role}='NAME' (--{role} NAME on the command line)."
            )
    kind_of_place = ("type",) if find_word(names, PLACES) == chosen["items"] else ()
    categories = find_word(names, (*WORDS["categories"], *kind_of_place))
    return _distinct(Roles(**chosen, categories=categories), label)  # type: ignore[arg-type]


def recognises(names: Sequence[str], *roles: str) -> bool:
    """Whether a first row names each of these roles, as a header does."""
    return all(find_word(names, WORDS[role]) is not None for role in roles)


def _by_position(count: int, choices: ColumnChoices, label: str) -> Roles:
    if count > 4 and not choices.given():
        raise BadFile(
            f"{label} has {count} columns and no header, and only the order user, item, rating, time is known; say "
            "which columns to read, as in users=0, items=1, times=4."
        )
    # Once a caller has pointed at a column, the rest are no longer taken to be ratings and times.
    pointed = any(choice is not None and choice is not False for choice in choices)
    usual = {"users": 0, "items": 1} if pointed else {"users": 0, "items": 1, "ratings": 2, "times": 3}
    chosen: dict[str, int | None] = {}
    for role, choice in choices._asdict().items():
        if choice is None:
            position = usual.get(role)
            chosen[role] = position if position is not None and position < count else None
        else:
            chosen[role] = _chosen(role, choice, None, count, label)
    return _distinct(Roles(**chosen), label)  # type: ignore[arg-type]


def _chosen(role: str, choice: ColumnChoice, names: Sequence[str] | None, count: int, label: str) -> int | None:
    if choice is None or choice is False:
        if choice is False and role in ("users", "items"):
            raise SettingError(f"{role}=False leaves out a column that every data set needs; name it instead.")
        return None
    if isinstance(choice, bool):
        raise SettingError(f"{role}=True names no column; give its name or its position, or leave {role} out.")
    if isinstance(choice, int):
        if not 0 <= choice < count:
            raise BadFile(f"{label} has no column {choice} for {role}: positions run from 0 to {count - 1}.")
        return choice
    if names is None:
        raise BadFile(f"{label} has no header in which to look for the column {choice!r}; give {role} as a position.")
    if choice not in names:
        raise BadFile(f"{label} has no column {choice!r} for {role}: its columns are {_listed(names)}.")
    return list(names).index(choice)


def _distinct(roles: Roles, label: str) -> Roles:
    positions = [position for position in roles[:4] if position is not None]
    if len(set(positions)) < len(positions):
        found = ", ".join(f"{role}={position}" for role, position in roles._asdict().items() if position is not None)
        raise SettingError(f"One column of {label} is chosen twice ({found}); choose a different one for each.")
    return roles


def find_word(names: Sequence[str], known: Sequence[str]) -> int | None:
    """The position of the first of these known words among the names, compared without case and punctuation."""
    plain = [_word(name) for name in names]
    return next((plain.index(word) for word in known if word in plain), None)


def _word(name: str) -> str:
    # RecBole writes a column's type after its name: item_id:token.
    return re.sub(r"[^a-z0-9]", "", re.sub(r":(token|float)(_seq)?$", "", name.lower()))


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:12]]
    return ", ".join(shown) + (", ..." if len(names) > 12 else "")
