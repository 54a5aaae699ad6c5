"""What honest people get from a model: how many see the target, where it stands, and how good the lists are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix
from federank.audit.poisoning.world import World
from federank.evaluation.metrics.ranking import find_hits, precision
from federank.models.topn import top_n

N = 10


class Measured(NamedTuple):
    """A model as honest people see it."""

    exposure: float  # share of honest people who have the target among their first ten
    median_rank: float  # of the target among what a person does not have; 1 is first
    precision: float  # P@10 over honest people with something held out


def measured(world: World, scores: FloatMatrix) -> Measured:
    """Judge the scores that honest people's devices give the catalogue, a row for each person."""
    people = np.arange(world.honest, dtype=np.int32)
    can_be_shown = world.popularity > 0
    can_be_shown[world.target] = True
    scores = np.where(can_be_shown, scores[: world.honest], -np.inf).astype(np.float32)
    for person in people:
        scores[person, world.profiles.of(int(person))] = -np.inf
    items, _ = top_n(scores, people, world.profiles, N)
    tested = np.flatnonzero(world.test.sizes).astype(np.int32)
    hits = find_hits(items[tested], tested, world.test)
    ranks = 1 + (scores > scores[:, [world.target]]).sum(axis=1)
    return Measured(
        exposure=float((items == world.target).any(axis=1).mean()),
        median_rank=float(np.median(ranks)),
        precision=float(precision(hits, world.test.sizes[tested], N).mean()),
    )
