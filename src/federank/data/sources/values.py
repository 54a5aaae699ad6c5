"""Ids, ratings and times: what may stand for each, and the first row where something else does.

Ids are whole numbers where every one of them is written as a whole number is (no sign but minus, no leading
zero), and text otherwise: so `007` and an Amazon code stay as they are. A rating is any finite number. A time is
seconds since 1970, or a date in one of a few unmistakable forms, and lies between 1970 and 2100.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

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


def is_whole(value: str) -> bool:
    """Whether text is written just as a 64-bit whole number is."""
    digits = value.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (value == "0" or not digits.startswith("0"))
    return plain and -(2**63) <= int(value) < 2**63


def whole_numbers(column: str) -> pl.Expr:
    """Text as whole numbers, empty where it is not written just as one is."""
    number = pl.col(column).cast(pl.Int64, strict=False)
    return pl.when(number.cast(pl.String) == pl.col(column)).then(number).alias(column)


def words(column: str) -> pl.Expr:
    """Text as it is, missing where it is empty."""
    return pl.when(pl.col(column) != "").then(pl.col(column)).alias(column)


def numbers(column: str) -> pl.Expr:
    """Text as numbers, missing where it is none."""
    return pl.col(column).str.strip_chars().cast(pl.Float32, strict=False)


def date_format(examples: Iterable[str]) -> str | None:
    """The form in which the first of these examples that is a date is written; None for seconds."""
    for example in examples:
        if pl.Series([example.strip()]).cast(pl.Float64, strict=False)[0] is not None:
            return None
        for form in DATE_FORMATS:
            if pl.Series([example.strip()]).str.to_datetime(form, strict=False)[0] is not None:
                return form
    return None


def seconds(column: str, form: str | None) -> pl.Expr:
    """Text as seconds since 1970, from dates of this form or from numbers; missing where it is neither."""
    text = pl.col(column).str.strip_chars()
    if form is not None:
        return text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s").alias(column)
    fractional = text.cast(pl.Float64, strict=False).floor().cast(pl.Int64, strict=False)
    return pl.coalesce(text.cast(pl.Int64, strict=False), fractional).alias(column)


def id_fault(column: pl.Series, kind: str) -> Fault | None:
    """The first row without an id."""
    return _first(column.is_null(), f"the id of {kind} is needed")


def rating_fault(column: pl.Series) -> Fault | None:
    """The first rating that is not a finite number."""
    return _first(~column.is_finite().fill_null(False), "a finite number is needed")


def time_fault(column: pl.Series) -> Fault | None:
    """The first time that is missing, before 1970 or after 2100."""
    if column.null_count():
        need = "seconds since 1970 or a date such as '2012-04-03 18:00:12' is needed, in the same form on every row"
        return _first(column.is_null(), need)
    if not len(column):
        return None
    fault = _first((column < 0) | (column >= LATEST), "a time in seconds from 1970 to 2100 is needed")
    if fault and LATEST <= column[fault.row] < 1000 * LATEST:
        return Fault(fault.row, f"{fault.need}; if these are milliseconds, divide them by 1000")
    return fault


def _first(bad: pl.Series, need: str) -> Fault | None:
    return Fault(int(bad.arg_true()[0]), need) if bad.any() else None
