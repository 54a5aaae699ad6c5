"""What every reader answers with: columns of all interactions, and what is known of the items.

Item details are keyed by the item's id as text, because a file of items may be read before anyone knows whether
the ids are numbers; here they meet the interactions and take their type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from federank.data.interactions import Interactions, Repeats
from federank.errors import BadFile, SettingError


class Columns(NamedTuple):
    """Columns of equal length, one row per interaction, checked from first to last."""

    users: pl.Series
    items: pl.Series
    ratings: pl.Series | None = None
    times: pl.Series | None = None
    titles: dict[str, str] | None = None
    categories: dict[str, list[str]] | None = None


def as_interactions(columns: Columns, *, name: str, repeats: Repeats = "latest") -> Interactions:
    """The interactions in these columns, numbered, sorted and without repeats."""
    return Interactions.from_columns(
        columns.users,
        columns.items,
        columns.ratings,
        columns.times,
        titles=_by_id(columns.titles, columns.items),
        categories=_by_id(columns.categories, columns.items),
        repeats=repeats,
        name=name,
    )


def categories_by_item(items: pl.Series, categories: pl.Series) -> dict[str, list[str]]:
    """The different categories that each item's rows give it."""
    pairs = pl.DataFrame({"item": items.cast(pl.String), "category": categories.cast(pl.String)})
    known = pairs.filter(pl.col("category").fill_null("") != "").unique(maintain_order=True)
    by_item: dict[str, list[str]] = {}
    for item, category in known.iter_rows():
        by_item.setdefault(item, []).append(category)
    return by_item


def _by_id(details: dict[str, Any] | None, items: pl.Series) -> dict[Any, Any] | None:
    if details is None or not items.dtype.is_integer():
        return details
    known = items.unique()
    return {number: details[text] for number, text in zip(known, known.cast(pl.String), strict=True) if text in details}


# What a caller says about how a source is to be read: which columns, which delimiter, whether there is a header.


ColumnChoice = str | int | bool | None
"""A column's name or its position from 0; None to look for it, False to leave it out."""


ColumnChoices = Mapping[str, ColumnChoice]
"""The columns that were chosen, by their roles."""


class ReadingOptions(NamedTuple):
    """All that was said of a source."""

    columns: ColumnChoices = MappingProxyType({})
    header: bool | None = None
    delimiter: str | None = None
    lists: bool | None = None

    def nothing(self) -> bool:
        """Whether everything is to be detected."""
        return not self.columns and self.header is None and self.delimiter is None

    def refuse_all(self, source: str) -> None:
        """Raise if anything was said of a source that leaves no choice."""
        self.refuse_layout(source, *self.columns)

    def refuse_layout(self, source: str, *said: str) -> None:
        """Raise if a header or a delimiter was spoken of where columns may be chosen but no text is cut."""
        layout = {"header": self.header, "delimiter": self.delimiter, "lists": self.lists}
        said = (*said, *(name for name, value in layout.items() if value is not None))
        if said:
            raise SettingError(f"{source} leaves no choice of {' and '.join(said)}; leave that out.")


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


ROLES = ("users", "items", "ratings", "times")
Roles = dict[str, int]
"""The position of each column that is read, by its role."""


def assign_roles(names: Sequence[str] | None, count: int, choices: ColumnChoices, label: str) -> Roles:
    """The columns to read, from a header's names (None: there is none) and the caller's choices."""
    chosen = {role: _chosen(role, choice, names, count, label) for role, choice in choices.items()}
    if names is not None:
        usual = {role: find_word(names, WORDS[role]) for role in ROLES}
    elif count > 4 and not choices:
        raise BadFile(
            f"{label} has {count} columns and no header, and only the order user, item, rating, time is known; say "
            "which columns to read, as in users=0, items=1, times=4."
        )
    else:
        # Once a caller has pointed at a column, the rest are no longer taken to be ratings and times.
        known = 2 if any(choice is not False for choice in choices.values()) else 4
        usual = {role: position for position, role in enumerate(ROLES[: min(known, count)])}
    roles = {role: position for role, position in (usual | chosen).items() if position is not None}
    for role in ("users", "items"):
        if role not in roles:
            raise BadFile(
                f"{label} has no column known to hold {role}: its columns are {_listed(names or range(count))}. Say "
                f"which one does, with {role}='NAME' (--{role} NAME on the command line)."
            )
    if len(set(roles.values())) < len(roles):
        listed = ", ".join(f"{role}={position}" for role, position in roles.items())
        raise SettingError(f"One column of {label} is chosen twice ({listed}); choose a different one for each.")
    if names is not None:
        kind_of_place = ("type",) if find_word(names, PLACES) == roles["items"] else ()
        categories = find_word(names, (*WORDS["categories"], *kind_of_place))
        roles |= {} if categories is None else {"categories": categories}
    return roles


def recognises(names: Sequence[str], *roles: str) -> bool:
    """Whether a first row names each of these roles, as a header does."""
    return all(find_word(names, WORDS[role]) is not None for role in roles)


def _chosen(role: str, choice: ColumnChoice, names: Sequence[str] | None, count: int, label: str) -> int | None:
    if choice is None or choice is False:
        if role in ("users", "items"):
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


def find_word(names: Sequence[str], known: Sequence[str]) -> int | None:
    """The position of the first of these known words among the names, compared without case and punctuation."""
    plain = [_word(name) for name in names]
    return next((plain.index(word) for word in known if word in plain), None)


def _word(name: str) -> str:
    # RecBole writes a column's type after its name: item_id:token.
    return re.sub(r"[^a-z0-9]", "", re.sub(r":(token|float)(_seq)?$", "", name.lower()))


def _listed(names: Sequence[str] | range) -> str:
    shown = [repr(name) for name in names[:12]]
    return ", ".join(shown) + (", ..." if len(names) > 12 else "")


# Ids, ratings and times: what may stand for each, and the first row where something else does.


LATEST = 4_102_444_800
"""The first second of 2100."""

DATE_FORMATS = (
    "%a %b %d %H:%M:%S %z %Y",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
)
"""How dates may be written; those without an offset are taken as UTC."""


class Fault(NamedTuple):
    """The first row with a value that cannot stand, and what is needed there."""

    row: int
    need: str


def ints(column: str) -> pl.Expr:
    """Text as integers, missing where it is not written just as a 64-bit integer is."""
    number = pl.col(column).cast(pl.Int64, strict=False)
    return pl.when(number.cast(pl.String) == pl.col(column)).then(number).alias(column)


def ids_of_text(column: pl.Series) -> pl.Series:
    """Ids in a text: integers where each is written just as one is, else words, missing where there is nothing."""
    numbers = column.to_frame().select(ints(column.name)).to_series()
    return column.replace("", None) if numbers.null_count() else numbers


def seconds(column: str, form: str | None) -> pl.Expr:
    """Text as seconds since 1970, from dates of this form or from numbers; missing where it is neither."""
    text = pl.col(column).str.strip_chars()
    if form is not None:
        return text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s").alias(column)
    fractional = text.cast(pl.Float64, strict=False).floor().cast(pl.Int64, strict=False)
    return pl.coalesce(text.cast(pl.Int64, strict=False), fractional).alias(column)


def date_format(examples: Iterable[str]) -> str | None:
    """The form in which the first of these examples that is a date is written; None for seconds."""
    for example in examples:
        if pl.Series([example.strip()]).cast(pl.Float64, strict=False)[0] is not None:
            return None
        for form in DATE_FORMATS:
            if pl.Series([example.strip()]).str.to_datetime(form, strict=False)[0] is not None:
                return form
    return None


def _as_seconds(column: pl.Series) -> pl.Series:
    """Dates, numbers or text as seconds since 1970; missing where a value is none of these."""
    if column.dtype in (pl.Datetime, pl.Date):
        return column.dt.epoch("s")
    if column.dtype == pl.String:
        form = date_format(column.drop_nulls().head(100))
        return column.to_frame().select(seconds(column.name, form)).to_series()
    return (column.floor() if column.dtype.is_float() else column).cast(pl.Int64, strict=False)


def checked_columns(series: Mapping[str, pl.Series], refuse: Callable[[str, Fault], object]) -> Columns:
    """The columns of these roles, as ids, numbers and seconds; `refuse` raises for the first fault of a role."""
    ids = {}
    for role, kind in (("users", "a user"), ("items", "an item")):
        column = ids[role] = series[role]
        if column.dtype.is_integer():
            # Unsigned and 128-bit numbers may be too large for 64 bits with a sign, and would come back as others.
            ids[role] = column.cast(pl.Int64, strict=False)
            too_large = ids[role].is_null() & column.is_not_null()
            _refuse_first(role, too_large, "an id within 64 bits is needed; make these ids text", refuse)
        _refuse_first(role, column.is_null(), f"the id of {kind} is needed", refuse)
    ratings, times = series.get("ratings"), series.get("times")
    if ratings is not None:
        ratings = (ratings.str.strip_chars() if ratings.dtype == pl.String else ratings).cast(pl.Float32, strict=False)
        _refuse_first("ratings", ~ratings.is_finite().fill_null(False), "a finite number is needed", refuse)
    if times is not None:
        times = _as_seconds(times)
        need = "seconds since 1970 or a date such as '2012-04-03 18:00:12' is needed, in the same form on every row"
        _refuse_first("times", times.is_null(), need, refuse)
        wrong, need = (times < 0) | (times >= LATEST), "a time in seconds from 1970 to 2100 is needed"
        if wrong.any() and LATEST <= times.filter(wrong)[0] < 1000 * LATEST:
            need += "; if these are milliseconds, divide them by 1000"
        _refuse_first("times", wrong, need, refuse)
    categories = series.get("categories")
    by_item = None if categories is None else categories_by_item(ids["items"], categories)
    return Columns(ids["users"], ids["items"], ratings, times, categories=by_item)


def _refuse_first(role: str, wrong: pl.Series, need: str, refuse: Callable[[str, Fault], object]) -> None:
    if wrong.any():
        refuse(role, Fault(int(wrong.arg_true()[0]), need))
