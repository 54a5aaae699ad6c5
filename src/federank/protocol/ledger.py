"""The ledger: on the device, what has ever left it.

For every item that was in one of the device's Updates: in which round first and last, in how many Updates as liked and
in how many as compared with, and, known to the owner alone, whether a liked one is real or a decoy; what left as real
once stays real, though it be removed and sent as a decoy later. A row's bias tells the two kinds apart, and an observer
who links the device's Updates reads the very same from them: above zero it was liked, below zero it was compared with.
The ledger is written before an Update is sent, because what may have left counts as left; with noise
(pairs/noise.py) it lists what went in, and an observer sees less.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from federank.arrays import IntVector
from federank.errors import BadFile
from federank.files import write_whole
from federank.protocol.messages import Update
from federank.protocol.policy import Outward


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


@dataclass
class Ledger:
    """What has left one device, by item."""

    entries: dict[int, Entry] = field(default_factory=dict)

    def record(self, round_number: int, outward: Outward, update: Update) -> None:
        """Take note of an Update before it is sent."""
        real = dict(zip(outward.profile.tolist(), outward.real.tolist(), strict=True))
        for item, bias in zip(update.items.tolist(), update.biases.tolist(), strict=True):
            entry = self.entries.setdefault(item, Entry(item, round_number, round_number))
            entry.first_round = min(entry.first_round, round_number)
            entry.last_round = max(entry.last_round, round_number)
            if bias > 0:
                entry.times_liked += 1
                entry.real = entry.real is True or real[item]
            elif bias < 0:
                entry.times_compared += 1

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

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Ledger:
        """The ledger that gave these rows; text, as a CSV has it, and 0 or 1 for what is true are understood."""
        entries = {}
        for number, row in enumerate(rows, start=1):
            try:
                counts = {name: int(row[name]) for name in _COUNTS}
                entries[counts["item"]] = Entry(**counts, real=_TRUTHS[str(row["real"]).lower()])
            except (KeyError, ValueError, TypeError) as reason:
                raise BadFile(
                    f"Row {number} of the ledger cannot be read ({reason!r}); {', '.join(_NAMES)} are needed."
                ) from reason
        return cls(entries)

    def write(self, path: Path) -> None:
        """Export to a file, as JSON where it is named so and as CSV otherwise; whole or not at all."""
        text = io.StringIO(newline="")
        if path.suffix == ".json":
            json.dump(self.to_rows(), text, indent=1)
        else:
            table = csv.DictWriter(text, _NAMES)
            table.writeheader()
            table.writerows(self.to_rows())
        write_whole(path, text.getvalue())


_NAMES = tuple(entry.name for entry in fields(Entry))
_COUNTS = _NAMES[:-1]
_TRUTHS = {"true": True, "1": True, "false": False, "0": False, "none": None, "": None}


def read_ledger(path: Path) -> Ledger:
    """A ledger that `write` exported."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix == ".json":
                return Ledger.from_rows(json.load(file))
            table = csv.DictReader(file)
            if tuple(table.fieldnames or ()) != _NAMES:
                raise BadFile(f"{path} is not a ledger: its columns should be {', '.join(_NAMES)}.")
            return Ledger.from_rows(table)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as reason:
        raise BadFile(f"{path} cannot be read as a ledger ({reason}).") from reason
