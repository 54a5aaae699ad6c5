"""The models that simulated clients have, and what happened in a rehearsal.

Every client downloads what it is sent; in memory, clients that have the same version of the model share it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from federank.errors import BadAnswer
from federank.federation.client import Model, Rows
from federank.service.client.federation import FederationInfo, merged


class Models:
    """The versions of the model that clients of this process have, each kept once."""

    MOST = 64

    def __init__(self, info: FederationInfo) -> None:
        self.info = info
        self._kept: dict[int, Model] = {}
        self._seen: set[tuple[int | None, int]] = set()

    def known(self, have: Model | None, version: int) -> Model | None:
        """The model that these very rows make, if another client has received and checked them before."""
        return self._kept.get(version) if (have and have.version, version) in self._seen else None

    def receive(self, have: Model | None, rows: Rows) -> Model:
        """Take in rows; where other clients have the same version, it must be the very same model."""
        model = merged(rows, have, self.info.n_items)
        twin = self._kept.setdefault(model.version, model)
        for one, other in ((twin.tables, model.tables), (twin.overall, model.overall)):
            if one.keys() != other.keys() or not all(np.array_equal(one[name], other[name]) for name in one):
                raise BadAnswer(f"The server gave two clients different models as version {model.version}.")
        self._seen.add((have and have.version, model.version))
        while len(self._kept) > self.MOST:
            self._kept.pop(min(self._kept))
        return twin


# What happened in a rehearsal, counted: interactions, bytes, how long requests took, and what came to nothing.


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
