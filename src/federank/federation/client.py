"""What a client has and makes: the shared model, the vector that it may keep from round to round, and what a round
leaves on the client before anything is sent. service/client/methods.py derives how from a method's interface.

Under secure aggregation an upload is rounded to integers and split in two. The chances of rounding, the seed and the id
are the operating system's. What an upload costs is counted before it is made: (norm / noise)^2 of what all uploads of a
lifetime may disclose together (`mu` squared, privacy/accountant.py). A client makes no upload beyond that.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import BadAnswer, BadMessage, Diverged
from federank.federation.wire import Array, encode_parts
from federank.privacy.accountant import epsilon_of_mu
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy, SharedProfile
from federank.secagg.config import SecaggConfig
from federank.secagg.ring import C_INT
from federank.secagg.round_config import Offer
from federank.secagg.upload import bytes_of_message

# What an answer of a server may hold.
MOST_FACTORS = 1024
MOST_TRIPLES = 1_000_000
MOST_PASSES = 10_000
MOST_SUPPORT = 10_000_000  # users that an item may need


def integer(value: Any, least: int, most: float = 2**53) -> int:
    """An integer in its range."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where an integer from {least} is needed.")
    return value


def number(value: Any) -> float:
    """A finite number from 0."""
    try:
        result = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an integer larger than any float
        result = math.inf
    if not math.isfinite(result) or result < 0:
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a finite number from 0 is needed.")
    return result


Random = Callable[[int], bytes]
_SLACK = 1e-9


class Terms(NamedTuple):
    """The terms on which a round's messages are split."""

    config: SecaggConfig
    offer: Offer


def split(terms: Terms, message: IntVector, random: Random = os.urandom) -> bytes:
    """The upload of a message: split in two, one part sealed; with a proof of its norm if needed."""
    try:
        return bytes_of_message(terms.config.norm_check(), terms.offer, message, random)
    except BadMessage as reason:
        raise BadAnswer(f"The message cannot be split: {reason} Nothing was sent.") from reason


def cost_of(noise: int) -> float:
    """Disclosure of one upload under noise of this deviation, as a square of mu; infinite without noise."""
    return (C_INT / noise) ** 2 if noise else 0.0


def spent_of(ledger: Ledger) -> float:
    """Disclosure of this season's uploads together, as a square of mu."""
    return sum(cost_of(message.noise) for message in ledger.messages if message.season == ledger.season)


def spent_in_total(ledger: Ledger) -> float:
    """Disclosure of all uploads of all seasons, as a square of mu; infinite if one had no noise."""
    if not all(message.noise for message in ledger.messages):
        return math.inf
    return math.fsum(cost_of(message.noise) for message in ledger.messages)


def can_afford(config: SecaggConfig, offer: Offer, spent: float) -> bool:
    """Whether the round's upload stays within the differential privacy guarantee."""
    most = config.mu() ** 2
    return math.isinf(most) or spent + cost_of(offer.noise) <= most * (1 + _SLACK)


def epsilon_so_far(config: SecaggConfig, ledger: Ledger) -> float | None:
    """Epsilon of this season's uploads against one server; None if one had no noise."""
    if not all(message.noise for message in ledger.messages if message.season == ledger.season):
        return None
    return epsilon_of_mu(math.sqrt(spent_of(ledger)), float(config.delta))


def epsilon_promised(config: SecaggConfig) -> float | None:
    """Epsilon of all uploads of a season; None without a guarantee."""
    mu = config.mu()
    return None if math.isinf(mu) else epsilon_of_mu(mu, float(config.delta))


class Model(NamedTuple):
    """The shared model of a version, as clients have it."""

    version: int
    tables: Mapping[str, Array]  # arrays with one row per item
    overall: Mapping[str, Array] = MappingProxyType({})  # other arrays

    @property
    def vectors(self) -> FloatMatrix:
        """The item vectors."""
        return self.tables["vectors"]

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(next(iter(self.tables.values())))

    def merged(self, items: IntVector, part: Model) -> Model:
        """A later version: these rows replaced, and the other arrays that came with them."""
        tables = {name: table.copy() for name, table in self.tables.items()}
        for name, table in tables.items():
            table[items] = part.tables[name]
        return Model(part.version, tables, {**self.overall, **part.overall})

    def stored(self) -> bytes:
        """The arrays as a client's file stores them."""
        parts = {f"{_TABLES}{name}": table for name, table in self.tables.items()}
        return encode_parts(parts | {f"{_OVERALL}{name}": value for name, value in self.overall.items()})


_TABLES, _OVERALL = "tables.", "overall."


def model_from(version: int, stored: bytes, n_items: int) -> Model:
    """A model from `stored`; raises `BadMessage` if it is damaged."""
    try:
        parts = load(stored)
    except (SafetensorError, TypeError, ValueError, KeyError) as reason:
        raise BadMessage(f"The model cannot be read ({reason}).") from reason
    tables = {name.removeprefix(_TABLES): part for name, part in parts.items() if name.startswith(_TABLES)}
    if not tables or any(len(table) != n_items for table in tables.values()):
        raise BadMessage(f"The model has not a row for each of {n_items:,} items.")
    if not all(np.isfinite(part).all() for part in parts.values()):
        raise BadMessage("The model holds values that are not finite numbers.")
    overall = {name.removeprefix(_OVERALL): part for name, part in parts.items() if name.startswith(_OVERALL)}
    return Model(version, tables, overall)


class Rows(NamedTuple):
    """A model or part of one as the server sent it, with its round."""

    round_number: int
    items: IntVector
    model: Model  # of these items alone


class History(NamedTuple):
    """A user's history: items, ascending, and their ratings if the federation is of ratings."""

    items: IntVector
    ratings: FloatVector = np.zeros(0, dtype=np.float32)

    def ratings_of(self, items: IntVector) -> FloatVector:
        """The ratings of some of these items, if there are any."""
        return self.ratings[np.searchsorted(self.items, items)] if len(self.ratings) else self.ratings


class RoundVector(NamedTuple):
    """The client's vector in rounds, and what it was trained on; empty if unknown."""

    values: FloatVector
    basis: str | None
    items: frozenset[int]

    def stands(self, basis: str, profile: IntVector) -> bool:
        """Whether it can be used further: its owner has removed nothing that it was trained on."""
        return self.basis == basis and self.items <= set(profile.tolist())


class User(NamedTuple):
    """A client in a round: its random numbers, policy, shared profile and state."""

    seed: int
    user: int
    policy: Policy
    taken: SharedProfile
    kept: RoundVector
    terms: Terms | None = None  # with secure aggregation
    ratings: FloatVector = np.zeros(0, dtype=np.float32)  # of the items of its shared profile, if rated


class Played(NamedTuple):
    """The result of a client's round: its new vector, and the upload to send, recorded in the ledger."""

    vector: RoundVector
    body: bytes
    rows: int  # number of items in the update
    recorded: IntVector  # items whose ledger lines are new or changed


# A model that makes a client's numbers overflow is refused, and nothing is sent.


@contextmanager
def numbers_in_range() -> Iterator[None]:
    """Refuse a model and settings that make a round overflow."""
    try:
        yield
    except (BadMessage, Diverged, np.linalg.LinAlgError) as reason:
        raise BadAnswer(
            f"With this model and these settings the client's numbers run out of range ({reason}); nothing was sent."
        ) from reason


def check_moved(vector: FloatVector) -> None:
    """Refuse a model and settings that make the client's vector overflow."""
    if not np.isfinite(vector).all():
        raise BadAnswer("With this model and these settings the client's vector runs out of range; nothing was sent.")


def solved(solve: Callable[[], FloatVector]) -> FloatVector:
    """The client's vector in closed form; refuse a model that has none."""
    try:
        vector = solve()
    except (Diverged, np.linalg.LinAlgError) as reason:
        raise BadAnswer(
            f"With this model the client's own vector cannot be solved for ({reason}); a newer model is needed."
        ) from reason
    if not np.isfinite(vector).all():
        raise BadAnswer("With this model the client's own vector runs out of range; a newer model is needed.")
    return vector
