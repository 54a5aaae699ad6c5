"""What a server keeps of a method: the content of model versions, the form of uploads, and a guarantee of noise.

    content   the tables that clients download (`tables`, `overall`), and what only the next server step needs (`state`)
    store     keeps every version's content, and of the newest one also the state
    uploads   are bytes; a `Form` says what they must look like

service/server/methods.py derives what a server does with them from a method's interface (method.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector
from federank.federation.method import low_bias
from federank.federation.wire import Array, encode_parts
from federank.privacy.accountant import mu_for
from federank.secagg.proof.parameters import Parameters
from federank.secagg.ring import C_INT

MAX_HEADER = 1024
"""Bytes that a safetensors header may take beyond what ours takes: other writers order and pad it differently."""

_NOTHING: Mapping[str, Array] = MappingProxyType({})
_OVERALL = "overall."  # marks in the store what is no table


class Content(NamedTuple):
    """The arrays of a model version."""

    tables: Mapping[str, Array]  # one row per item in each
    overall: Mapping[str, Array] = _NOTHING  # what does not belong to one item; sent with any rows
    state: Mapping[str, Array] = _NOTHING  # the server's state for its next step; only the leader reads it

    @property
    def n_items(self) -> int:
        """The number of rows of every table."""
        return len(next(iter(self.tables.values())))


def lowest_rows(content: Content, n_items: int) -> Content:
    """The same content for a catalogue of `n_items`: rows that it lacks start low, so that they are never first.

    A new item has the bias that a tenth of the items stay below, and no vector; where a served has no biases, no vector
    is a score of zero.
    """
    more = n_items - len(content.tables["vectors"])
    if more <= 0:
        return content
    tables: dict[str, Array] = {}
    for name, table in content.tables.items():
        low = np.zeros((more, *table.shape[1:]), dtype=table.dtype)
        if name == "biases":
            low[:] = low_bias(table)
        elif name == "weights":
            low[:] = 1
        tables[name] = np.concatenate((table, low))
    return content._replace(tables=tables)


class Published(NamedTuple):
    """The shared model as of a version."""

    version: int
    changed: LongVector  # per row: the version that changed it last
    content: Content

    @property
    def vectors(self) -> FloatMatrix:
        """The item vectors."""
        return self.content.tables["vectors"]

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.changed)

    def rows_since(self, have: int | None) -> IntVector:
        """The rows that a client with version `have` needs; all of them where that is no version."""
        if have is None or not 0 <= have <= self.version:
            return np.arange(len(self.changed), dtype=np.int32)
        return np.flatnonzero(self.changed > have).astype(np.int32)

    def rows(self, rows: IntVector) -> dict[str, Array]:
        """The tables cut down to some rows."""
        is_full = len(rows) == len(self.changed)
        return {name: table if is_full else table[rows] for name, table in self.content.tables.items()}

    def followed_by(self, content: Content) -> Published:
        """The next version, after a server step."""
        differs = np.zeros(len(self.changed), dtype=np.bool_)
        for name, table in content.tables.items():
            different = table != self.content.tables[name]
            differs |= different if different.ndim == 1 else different.any(axis=1)
        return Published(self.version + 1, np.where(differs, self.version + 1, self.changed), content)

    def stored(self, rows: IntVector, round_number: int) -> bytes:
        """Some rows as the store keeps them."""
        overall = {_OVERALL + name: value for name, value in self.content.overall.items()}
        parts = {"items": rows, **self.rows(rows), **overall}
        return encode_parts(parts, {"round": round_number, "version": self.version})

    def after(self, version: int, stored: bytes) -> Published:
        """A later version, from the rows that it changed."""
        items, rows, overall = read_stored(stored)
        tables, changed = {name: table.copy() for name, table in self.content.tables.items()}, self.changed.copy()
        for name in tables:
            tables[name][items] = rows[name]
        changed[items] = version
        return Published(version, changed, Content(tables, overall))


def read_stored(stored: bytes) -> tuple[IntVector, dict[str, Array], dict[str, Array]]:
    """The items, tables and other arrays that `Published.stored` wrote."""
    parts = load(stored)
    items = parts.pop("items")
    overall = {name.removeprefix(_OVERALL): parts.pop(name) for name in list(parts) if name.startswith(_OVERALL)}
    return items, parts, overall


class Form(NamedTuple):
    """What an upload of this federation must look like."""

    factors: int
    n_items: int
    most_rows: int
    most_norm: float
    most_bytes: int  # the longest upload that can be right
    numbers: int = 0  # sums: how many numbers an upload of the round has; 0 where that is not known
    check: Parameters | None = None  # sums: how a message's norm is proved, where it is
    method: Any = None  # with these settings and this catalogue
    broadcast: Any = None  # what the upload was made from, where the server still has it


class Guarantee(NamedTuple):
    """The differential privacy of all uploads of a client in a season, given in one of two ways."""

    sigma: float | None  # each server's noise, in norm bounds; 0: none
    epsilon: float | None
    delta: float

    @property
    def has_noise(self) -> bool:
        """Whether sums carry noise."""
        return bool(self.sigma) or self.epsilon is not None

    def noise(self, uploads: int) -> int:
        """One server's noise on each of this many uploads, where all have the same; 0 without a guarantee."""
        sigma = self.sigma or 0.0
        if self.epsilon is not None:
            sigma = math.sqrt(uploads) / mu_for(self.epsilon, self.delta)
        return math.ceil(sigma * C_INT)
