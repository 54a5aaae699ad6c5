"""Whom an audit follows, and whom it attacks: everybody while there is room, else samples drawn with the seed.

Notes take room for every (person, item) cell, and attacks take time for it. So there are two bounds: people are
*followed* while their cells fit a budget of memory, and of these as many are *attacked* as keeps the audit's time in
proportion to the training's. A tenth of the people, fifty at most, are the attacker's own devices, the *shadows*:
it knows their histories, learns from them, and they are not judged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import IntVector
from federank.audit.judging import draw_people
from federank.protocol.pairs.recipes import Recipe

MOST_CELLS = 2**27
"""Unless told otherwise, notes are kept of so many (person, item) cells at most: about 150 megabytes."""
MOST_CELLS_OF_SUMS = 2**24
"""The same where sums are seen, whose notes take 9 bytes a cell: also about 150 megabytes."""
_CELLS_PER_TRIPLE = 0.25
_FEW_CELLS, _MANY_CELLS = 300_000, 32_000_000
_MOST_SHADOWS, _MOST_SHADOW_CELLS = 50, 500_000
_FEWEST_PEOPLE = 4


class Followed(NamedTuple):
    """Who is followed; all but `everyone` are positions in it."""

    everyone: IntVector  # user numbers, ascending
    targets: IntVector  # those who are not the attacker's own
    attacked: IntVector  # those of them that are attacked
    shadows: IntVector  # the attacker's own


def follow(recipe: Recipe, n_items: int, wanted: int | None, triples: float, *, sums: bool) -> Followed:
    """Draw whom to follow in a run of so many triples; `wanted` asks for a number of people."""
    people = draw_people(recipe.seed, recipe.participants, wanted)
    cells = min(_MANY_CELLS, max(_FEW_CELLS, int(_CELLS_PER_TRIPLE * triples)))
    room = MOST_CELLS_OF_SUMS if sums else max(MOST_CELLS, cells)
    n_shadows = 0
    if len(people) >= _FEWEST_PEOPLE:
        n_shadows = max(2, min(len(people) // 10, _MOST_SHADOWS, _MOST_SHADOW_CELLS // n_items))
    n_targets = min(wanted or max(1, room // n_items), len(people) - n_shadows)
    n_attacked = min(wanted or max(1, cells // n_items), n_targets)
    drawn = people[: n_shadows + n_targets]
    everyone = np.sort(drawn)

    def positions(some: IntVector) -> IntVector:
        return np.sort(np.searchsorted(everyone, some)).astype(np.int32)

    targets = drawn[n_shadows:]
    return Followed(everyone, positions(targets), positions(targets[:n_attacked]), positions(drawn[:n_shadows]))
