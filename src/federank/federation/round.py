"""A round of a reference engine: the only place where its four steps meet.

The round is the same for every method; the maths is the method's. Its *shared model* is what the server holds (factors,
moments of an optimizer): it makes the Broadcast and takes the Updates in. A *fleet* has the clients: it selects those
that take part and gets the Broadcast; computation and transmission happen there, and Updates come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from federank._numerics.arrays import FloatMatrix

RecipeT = TypeVar("RecipeT")
RecipeIn = TypeVar("RecipeIn", contravariant=True)
ClientsT = TypeVar("ClientsT")
BroadcastT = TypeVar("BroadcastT")
BroadcastIn = TypeVar("BroadcastIn", contravariant=True)
BroadcastOut = TypeVar("BroadcastOut", covariant=True)
UpdateT = TypeVar("UpdateT")
UpdateIn = TypeVar("UpdateIn", contravariant=True)
UpdateOut = TypeVar("UpdateOut", covariant=True)


class SharedModel(Protocol[RecipeIn, BroadcastOut, UpdateIn]):
    """What the server holds between rounds, and its two steps."""

    round_number: int

    def distribute(self, recipe: RecipeIn) -> BroadcastOut:
        """The round's Broadcast, which no later round changes."""
        ...

    def aggregate(self, recipe: RecipeIn, updates: Iterable[UpdateIn]) -> None:
        """Aggregate a round's Updates, all or none; the next round begins."""
        ...


class Fleet(Protocol[ClientsT, BroadcastIn, UpdateOut]):
    """Clients, wherever they are."""

    def choose(self, round_number: int) -> ClientsT:
        """The clients that take part in this round."""
        ...

    def train(self, clients: ClientsT, broadcast: BroadcastIn) -> Iterable[UpdateOut]:
        """Send the Broadcast to these clients; the Updates that arrive."""
        ...


def play_round(
    recipe: RecipeT,
    shared: SharedModel[RecipeT, BroadcastT, UpdateT],
    fleet: Fleet[ClientsT, BroadcastT, UpdateT],
) -> None:
    """Distribution, computation and transmission on the clients, aggregation."""
    clients = fleet.choose(shared.round_number)
    broadcast = shared.distribute(recipe)
    updates = fleet.train(clients, broadcast)
    shared.aggregate(recipe, updates)


# Adam at the server, shared by every method whose rounds end in a gradient.


class Adam(NamedTuple):
    """How large steps are, and how long past rounds count."""

    learning_rate: float
    beta1: float
    beta2: float


def adam_step(
    adam: Adam, values: FloatMatrix, gradient: FloatMatrix, mean: FloatMatrix, square: FloatMatrix, steps: int
) -> FloatMatrix:
    """The values after one step of Adam, the `steps`-th; `mean` and `square` are brought forward in place."""
    beta1, beta2 = np.float32(adam.beta1), np.float32(adam.beta2)
    mean *= beta1
    mean += gradient * (1 - beta1)
    square *= beta2
    square += gradient * gradient * (1 - beta2)
    size = adam.learning_rate * np.sqrt(1 - adam.beta2**steps) / (1 - adam.beta1**steps)
    moved: FloatMatrix = (values - size * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    return moved
