"""Check-ins all over the world (Yang et al., 2016), as their authors give them: one country's, the latest of each pair.

Two files without a header, tab-separated:

    dataset_TIST2015_Checkins.txt    user, venue, UTC time, offset of the time zone in minutes
    dataset_TIST2015_POIs.txt        venue, latitude, longitude, kind of place, country (ISO 3166-1, two letters)

A person's repeated check-ins at a venue stay in: which of them counts is decided where interactions are made of
columns, by default the latest, as the papers did. The files have 33 million lines and more, so they are scanned and
filtered, never read whole.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from federank.data.sources.columns import Columns, categories_by_item
from federank.data.sources.values import DATE_FORMATS, is_whole, seconds
from federank.errors import BadFile, DataError

CHECK_INS, VENUES = "dataset_TIST2015_Checkins.txt", "dataset_TIST2015_POIs.txt"


def find_worldwide(folder: Path) -> Path | None:
    """The folder in which both files lie: this one, or one right inside it."""
    inside = sorted(path.parent for path in folder.glob(f"*/{CHECK_INS}")) if folder.is_dir() else []
    for place in (folder, *inside):
        if (place / CHECK_INS).is_file() and (place / VENUES).is_file():
            return place
    return None


def read_country(folder: Path, country: str) -> Columns:
    """The check-ins at the venues of a country, with the venues' kinds."""
    venues = _scan(folder / VENUES, ["item", "latitude", "longitude", "kind", "country"])
    here = venues.filter(pl.col("country") == country).select("item", "kind").unique("item", maintain_order=True)
    rows = _scan(folder / CHECK_INS, ["user", "item", "time", "offset"])
    try:
        frame = (
            rows.join(here, on="item", how="inner")
            .select("user", "item", "kind", "time", seconds("time", DATE_FORMATS[0]).alias("seconds"))
            .collect(engine="streaming")
        )
    except pl.exceptions.PolarsError as reason:
        raise BadFile(
            f"{folder} has files that are not laid out as check-ins are ({reason}); get them again."
        ) from reason
    if not frame.height:
        raise DataError(
            f"{folder / CHECK_INS} has no check-in at a venue of {country}; a country's two letters are needed."
        )
    unfit = frame.filter(pl.col("seconds").is_null())
    if unfit.height:
        raise BadFile(
            f"{folder / CHECK_INS} has a check-in of {unfit['user'][0]} with the time {unfit['time'][0]!r}; such as "
            "'Tue Apr 03 18:00:06 +0000 2012' is needed."
        )
    users = frame["user"]
    return Columns(
        users=users.cast(pl.Int64) if all(is_whole(user) for user in users.unique()) else users,
        items=frame["item"],
        times=frame["seconds"],
        categories=categories_by_item(frame["item"], frame["kind"]),
    )


def _scan(path: Path, names: list[str]) -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        separator="\t",
        has_header=False,
        quote_char=None,
        new_columns=names,
        infer_schema=False,
        encoding="utf8-lossy",
    )
