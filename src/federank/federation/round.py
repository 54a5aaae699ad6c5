"""A round of a reference engine: the only place where its four steps meet; and Adam, which ends some of them.

The round is the same for every method; the maths is the method's. Its *shared model* is what the server holds (factors,
moments of an optimizer): `distribute` makes the Broadcast, `aggregate` adds the Updates, all or none. A *fleet* has the
clients: `choose` selects those that take part, `train` sends them the Broadcast and returns the Updates that arrive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix


def play_round(recipe: Any, shared: Any, fleet: Any) -> None:
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
