"""The home vector: who somebody is, learnt on the device and never used in a round. It is FPL's only fold-in.

A person whose policy lets Updates follow from what is shared alone (`basis = shared`) takes part with a vector that
knows little about them. Recommendations deserve better: the device learns a second vector from the whole history, with
the public item factors as they are, and keeps it to itself. With the items held still the problem is convex, so it can
start from zero and needs no memory of earlier rounds. New users get the same vector: in the library (`fr.enrol`, which
compiles it in engines/pairs/home.py), on clients and on the page.
"""

from __future__ import annotations

import numpy as np

from federank.arrays import FloatVector, IntVector
from federank.protocol.draws import words_wrap_around
from federank.protocol.messages import Broadcast, Private
from federank.protocol.pairs.computation import compute
from federank.protocol.pairs.recipes import Recipe

HOME_ROUND = 0xFFFFFFFF
"""Stands for the round in the home vector's draws, so that no round shares them."""

HOME_STEPS = 1000
"""How many pairs a home vector is learnt from: on MovieLens 100K, as good a ranking as the vectors of rounds have."""


def home_vector(
    recipe: Recipe, seed: int, user: int, history: IntVector, broadcast: Broadcast, steps: int = HOME_STEPS
) -> FloatVector:
    """A vector learnt from an ascending history in this many steps; zero where no pair can be drawn."""
    vector = np.zeros(recipe.factors, dtype=np.float32)
    if not 0 < len(history) < len(broadcast.items):
        return vector
    device = Private(user, vector, history, 0.0, np.zeros(len(history), dtype=np.bool_), steps)
    with words_wrap_around():
        compute(recipe._replace(seed=seed, summed=False), device, broadcast._replace(round_number=HOME_ROUND))
    return device.vector
