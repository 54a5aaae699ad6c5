"""The ledger: on the client, everything it has ever sent.

Per item of an update: the first and last round, the number of updates with it as liked and as compared with, and, known
to the owner alone, whether a liked item is real or a decoy. An item sent as real stays real in the ledger, even if it
is removed and later sent as a decoy. An observer who links the updates reads the same from the sign of the bias:
positive for liked, negative for compared with.

With ratings, liked stands for rated and compared with for sampled: an item with a virtual rating that hides the others.
An observer cannot distinguish them; the owner can.

The ledger is written before an update is sent, because what may have been sent counts as sent. With noise it lists the
input, of which an observer sees less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import BadFile
from federank.privacy.policy import SharedProfile

_NO_ITEMS: IntVector = np.zeros(0, dtype=np.int32)


@dataclass
class Entry:
    """One item that has been sent."""

    item: int
    first_round: int
    last_round: int
    times_liked: int = 0
    times_compared: int = 0
    real: bool | None = None
    """Sent as liked: whether it was ever the owner's own. None for items that were only compared with."""


@dataclass(frozen=True)
class SentMessage:
    """One upload that was computed from the client's full shared profile."""

    number: int
    """Position among the client's uploads, from 1."""
    allowed: int
    """Upload quota of the client at that time."""
    round: int
    items: int
    """Number of items of the shared profile, decoys included."""
    noise: int = 0
    """With secure aggregation: deviation of one server's noise on its sum; 0: none."""
    season: int = 1
    """The client's season; positions count from 1 in each."""


@dataclass
class Ledger:
    """Everything that one client has sent, by item and by upload."""

    entries: dict[int, Entry] = field(default_factory=dict)
    messages: list[SentMessage] = field(default_factory=list)
    season: int = 1
    """The client's current season; quotas and guarantees are per season."""

    def record(
        self, round_number: int, shared_profile: SharedProfile, positives: IntVector, negatives: IntVector = _NO_ITEMS
    ) -> None:
        """Record an upload before it is sent: the items that it discloses as the user's, and the others in it."""
        real = dict(zip(shared_profile.profile.tolist(), shared_profile.real.tolist(), strict=True))
        for items, is_positive in ((positives, True), (negatives, False)):
            for item in items.tolist():
                entry = self.entries.setdefault(item, Entry(item, round_number, round_number))
                entry.first_round = min(entry.first_round, round_number)
                entry.last_round = max(entry.last_round, round_number)
                if is_positive:
                    entry.times_liked += 1
                    entry.real = entry.real is True or real[item]
                else:
                    entry.times_compared += 1

    def record_message(
        self, round_number: int, shared_profile: SharedProfile, number: int, allowed: int, noise: int = 0
    ) -> None:
        """Record an upload that is computed from the full shared profile and counts against the quota."""
        self.count_message(round_number, len(shared_profile.profile), number, allowed, noise)
        self.record(round_number, shared_profile, shared_profile.profile)

    def count_message(self, round_number: int, items: int, number: int, allowed: int, noise: int = 0) -> None:
        """Count an upload against the quota of the season."""
        self.messages.append(SentMessage(number, allowed, round_number, items, noise, self.season))

    def sampled(self) -> IntVector:
        """Every item that was ever sent with a virtual rating, ascending."""
        return np.array(sorted(entry.item for entry in self.entries.values() if entry.times_compared), dtype=np.int32)

    @property
    def spent(self) -> int:
        """Number of uploads in this season."""
        return max((message.number for message in self.messages if message.season == self.season), default=0)

    @property
    def earlier(self) -> int:
        """Number of uploads in earlier seasons."""
        return sum(message.season < self.season for message in self.messages)

    def liked(self) -> IntVector:
        """Every item that was ever sent as liked, decoys included, ascending."""
        return np.array(sorted(entry.item for entry in self.entries.values() if entry.times_liked), dtype=np.int32)

    def really_liked(self) -> IntVector:
        """Every item of the owner that was ever sent as liked, ascending."""
        return np.array(sorted(entry.item for entry in self.entries.values() if entry.real is True), dtype=np.int32)

    def disclosed(self, history: Iterable[int]) -> float:
        """The share of a history that was ever sent as liked; decoys disclose nothing."""
        items = [int(item) for item in history]
        sent = sum(1 for item in items if item in self.entries and self.entries[item].real is True)
        return sent / len(items) if items else 0.0

    def to_rows(self) -> list[dict[str, Any]]:
        """The entries as plain values, by item."""
        return [asdict(self.entries[item]) for item in sorted(self.entries)]

    def message_rows(self) -> list[dict[str, int]]:
        """The messages as plain values in order, with their noise if any."""
        return [
            {name: value for name, value in asdict(message).items() if value != _UNSAID.get(name)}
            for message in self.messages
        ]

    @classmethod
    def from_rows(
        cls, rows: Iterable[Mapping[str, Any]], messages: Iterable[Mapping[str, Any]] = (), season: int = 1
    ) -> Ledger:
        """The ledger of these rows; 0 and 1 stand for false and true, as in SQLite."""
        entries = {}
        for number, row in enumerate(rows, start=1):
            with _read_as(f"Row {number}", _NAMES):
                counts = {name: int(row[name]) for name in _COUNTS}
                entries[counts["item"]] = Entry(**counts, real=_TRUTHS[str(row["real"]).lower()])
        sent = []
        for number, row in enumerate(messages, start=1):
            with _read_as(f"Message {number}", _MESSAGE_NAMES):
                sent.append(SentMessage(**{name: int(row[name]) for name in _MESSAGE_NAMES if name in row}))
        return cls(entries, sent, season)


RATING_NAMES = {"times_liked": "times_rated", "times_compared": "times_sampled"}
"""Column names of a client's export, for federations of ratings."""
_UNSAID = {"noise": 0, "season": 1}
"""Default values, which a message's row leaves out."""
_NAMES = tuple(entry.name for entry in fields(Entry))
_COUNTS = _NAMES[:-1]
_MESSAGE_NAMES = tuple(part.name for part in fields(SentMessage))
MESSAGE_COLUMNS = ("message", "of", "noise")
"""Columns of a message's line in the table, beside its round and number of items."""
_TRUTHS = {"true": True, "1": True, "false": False, "0": False, "none": None, "": None}


@contextmanager
def _read_as(what: str, names: tuple[str, ...]) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, TypeError) as reason:
        raise BadFile(f"{what} of the ledger cannot be read ({reason!r}); {', '.join(names)} are needed.") from reason


def message_columns(messages: Sequence[SentMessage]) -> tuple[str, ...]:
    """The columns that these messages need in a table, beside the items'; noise only if one had any."""
    if not messages:
        return ()
    return MESSAGE_COLUMNS if any(message.noise for message in messages) else MESSAGE_COLUMNS[:2]


def message_as_columns(message: SentMessage) -> dict[str, int]:
    """A message as a line of the items' table, without an item."""
    when = {"first_round": message.round, "last_round": message.round, "times_liked": message.items}
    entry = when | {"message": message.number, "of": message.allowed}
    return entry | {"noise": message.noise} if message.noise else entry
