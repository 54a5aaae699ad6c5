"""What happened in a rehearsal, counted: interactions, bytes, how long requests took, and what came to nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Tally:
    """What happened, counted."""

    seconds: float = 0.0
    interactions: int = 0
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    bytes_up: int = 0
    bytes_down: int = 0
    took: dict[str, list[float]] = field(default_factory=lambda: {"task": [], "upload": [], "interaction": []})

    def merge(self, other: Tally) -> None:
        """Add what another process has counted at the same time."""
        self.seconds, self.rounds = max(self.seconds, other.seconds), max(self.rounds, other.rounds)
        self.interactions += other.interactions
        self.counts += other.counts
        self.bytes_up += other.bytes_up
        self.bytes_down += other.bytes_down
        for name, took in other.took.items():
            self.took[name] += took

    def report(self) -> dict[str, Any]:
        """The numbers that a person or a program reads."""
        each = max(1, self.interactions)
        return {
            "interactions": self.interactions,
            "rounds": self.rounds,
            "seconds": round(self.seconds, 2),
            "interactions_per_s": round(self.interactions / max(self.seconds, 1e-9), 1),
            "bytes_per_interaction": round((self.bytes_up + self.bytes_down) / each),
            "bytes_up_per_interaction": round(self.bytes_up / each),
            "bytes_down_per_interaction": round(self.bytes_down / each),
            **{
                f"{name}_ms": {
                    f"p{level}": round(1000 * float(np.percentile(took, level)), 1) for level in (50, 95, 99)
                }
                for name, took in self.took.items()
                if took
            },
            "not_counted": dict(self.counts),
        }
