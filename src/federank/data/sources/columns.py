"""What every reader answers with: columns of all interactions, and what is known of the items.

Item facts are keyed by the item's id as text, because a file of items may be read before anybody knows whether
the ids are numbers; here they meet the interactions and take their type.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from federank.data.interactions import Interactions, Repeats


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
    found: dict[str, list[str]] = {}
    for item, category in known.iter_rows():
        found.setdefault(item, []).append(category)
    return found


def _by_id(facts: dict[str, Any] | None, items: pl.Series) -> dict[Any, Any] | None:
    if facts is None or not items.dtype.is_integer():
        return facts
    known = items.unique()
    return {number: facts[text] for number, text in zip(known, known.cast(pl.String), strict=True) if text in facts}
