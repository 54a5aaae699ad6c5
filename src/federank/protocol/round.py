"""A round of the federation: the only place where its four steps meet.

A *fleet* is where the devices live: in memory, on a cluster, or out in the world. It is asked which of its devices
take part and handed a Broadcast; computation and transmission happen there, and Updates come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from federank.arrays import IntVector
from federank.protocol.messages import Broadcast, Update
from federank.protocol.pairs.aggregation import Shared, aggregate
from federank.protocol.pairs.distribution import make_broadcast
from federank.protocol.pairs.recipes import Recipe


class Fleet(Protocol):
    """Devices, wherever they are."""

    def choose(self, round_number: int) -> IntVector:
        """The devices that take part in this round."""
        ...

    def train(self, clients: IntVector, broadcast: Broadcast) -> Iterable[Update]:
        """Hand the Broadcast to these devices; the Updates of those that answer."""
        ...


def play_round(recipe: Recipe, shared: Shared, fleet: Fleet) -> None:
    """Distribution, computation and transmission on the devices, aggregation."""
    clients = fleet.choose(shared.round_number)
    broadcast = make_broadcast(shared.round_number, shared.vectors, shared.biases)
    updates = fleet.train(clients, broadcast)
    aggregate(recipe, shared, updates)
