"""The ledger: on the device, what has ever left it.

For every item that was in one of the device's Updates: in which round first and last, in how many Updates as liked and
in how many as compared with, and, known to the owner alone, whether a liked one is real or a decoy; what left as real
once stays real, even if it is removed and later sent as a decoy. A row's bias distinguishes the two, and an observer
who links the device's Updates reads the very same from them: above zero it was liked, below zero it was compared with.
Where ratings are learnt, liked stands for rated and compared with for sampled: an item that got a virtual rating to
hide the others among. An observer cannot read that difference; the owner can.
The ledger is written before an Update is sent, because what may have left counts as left; with noise
it lists what went in, and an observer sees less.
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
    """One item that has left the device."""

    item: int
    first_round: int
    last_round: int
    times_liked: int = 0
    times_compared: int = 0
    real: bool | None = None
    """Sent as liked: whether it ever was because it is its owner's. None for what was only ever compared with."""


@dataclass(frozen=True)
class SentMessage:
    """One upload that was computed from everything the client takes part with."""

    number: int
    """Its position among the client's uploads, from 1."""
    allowed: int
    """Upload quota of the client when it left."""
    round: int
    items: int
    """How many items stood for the history in it, decoys included."""
    noise: int = 0
    """Deviation of one server's noise on the sum that it went into, where only sums are read; 0: none."""
    season: int = 1
    """Which of the client's seasons it belongs to; positions count from 1 in each."""


@dataclass
class Ledger:
    """What has left one device, by item, and as which messages."""

    entries: dict[int, Entry] = field(default_factory=dict)
    messages: list[SentMessage] = field(default_factory=list)
    season: int = 1
    """The season that the client is in: quotas and guarantees are of a season."""

    def record(
        self, round_number: int, shared_profile: SharedProfile, positives: IntVector, negatives: IntVector = _NO_ITEMS
    ) -> None:
        """Record an upload before it is sent: the items that it discloses as the user's, and others that it names."""
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
        """Record an upload that is made from a full shared profile, and counts against the client's lifetime quota."""
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
        """How many uploads the client has sent in this season."""
        return max((message.number for message in self.messages if message.season == self.season), default=0)

    @property
    def earlier(self) -> int:
        """How many uploads it has sent in earlier seasons."""
        return sum(message.season < self.season for message in self.messages)

    def liked(self) -> IntVector:
        """Every item that was ever sent as liked, decoys included, ascending."""
        return np.array(sorted(entry.item for entry in self.entries.values() if entry.times_liked), dtype=np.int32)

    def really_liked(self) -> IntVector:
        """Every item that was ever sent as liked because it was its owner's, ascending."""
        return np.array(sorted(entry.item for entry in self.entries.values() if entry.real is True), dtype=np.int32)

    def disclosed(self, history: Iterable[int]) -> float:
        """The share of a history that was ever sent as liked because it is liked; decoys disclose nothing."""
        items = [int(item) for item in history]
        sent = sum(1 for item in items if item in self.entries and self.entries[item].real is True)
        return sent / len(items) if items else 0.0

    def to_rows(self) -> list[dict[str, Any]]:
        """The entries as plain values, by item."""
        return [asdict(self.entries[item]) for item in sorted(self.entries)]

    def message_rows(self) -> list[dict[str, int]]:
        """The messages as plain values, in their order; their noise where there was any."""
        return [
            {name: value for name, value in asdict(message).items() if value != _UNSAID.get(name)}
            for message in self.messages
        ]

    @classmethod
    def from_rows(
        cls, rows: Iterable[Mapping[str, Any]], messages: Iterable[Mapping[str, Any]] = (), season: int = 1
    ) -> Ledger:
        """The ledger that gave these rows; 0 and 1 stand for false and true, as in SQLite."""
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
"""What a device's export calls these columns where its federation is of ratings."""
_UNSAID = {"noise": 0, "season": 1}
"""Values of a message that its row leaves out."""
_NAMES = tuple(entry.name for entry in fields(Entry))
_COUNTS = _NAMES[:-1]
_MESSAGE_NAMES = tuple(part.name for part in fields(SentMessage))
MESSAGE_COLUMNS = ("message", "of", "noise")
"""What a line of a table has that stands for a message, beside when it left and how many items it was made from."""
_TRUTHS = {"true": True, "1": True, "false": False, "0": False, "none": None, "": None}


@contextmanager
def _read_as(what: str, names: tuple[str, ...]) -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, TypeError) as reason:
        raise BadFile(f"{what} of the ledger cannot be read ({reason!r}); {', '.join(names)} are needed.") from reason


def message_columns(messages: Sequence[SentMessage]) -> tuple[str, ...]:
    """The columns that these messages need in a table, beside the items': their noise only where one had any."""
    if not messages:
        return ()
    return MESSAGE_COLUMNS if any(message.noise for message in messages) else MESSAGE_COLUMNS[:2]


def message_as_columns(message: SentMessage) -> dict[str, int]:
    """A message as a line of the items' table: one that names no item, but says which of how many it was."""
    when = {"first_round": message.round, "last_round": message.round, "times_liked": message.items}
    entry = when | {"message": message.number, "of": message.allowed}
    return entry | {"noise": message.noise} if message.noise else entry
