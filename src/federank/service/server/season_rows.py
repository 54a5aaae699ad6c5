"""The first model of a season, as a function of an earlier version and two catalogues.

An item keeps its number for the lifetime of the federation: numbers key the draws of clients and the lines of their
ledgers. An item that has ended keeps an empty row. An item that begins or returns starts from the mean row of items
with the same categories, or of those that share one; without any it starts low, so that it is never first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector
from federank.federation.server import Content
from federank.federation.wire import Array
from federank.service.server.methods import ServerMethod

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
