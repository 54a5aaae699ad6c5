"""What learning ratings sends, beside what the paper says it sends (FedRec, 2020, section 3.3).

An Update has a row for every rated and every sampled item, so its size depends on the user alone; how often each
user is drawn depends on the seed alone. A run's traffic is counted from the two. The paper counts 4 bytes for each
number of an iteration in which every user takes part once, with d factors, m items, n users and |R| ratings:

    4 d (|R| (1 + rho) + m n)

It has no formula for SVD++, which also sends W down, and the rated items' rows of W up. What really crosses the wire
is more than the formula: item numbers, and the frame of a message. And it is less where a user has rated so much that
fewer than rho |I_u| items are left to sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import IntVector, LongVector
from federank.compiling import compiled
from federank.engines.traffic import traffic
from federank.protocol.ratings.distribution import choose_one
from federank.protocol.ratings.messages import rating_broadcast_bytes, rating_update_bytes
from federank.protocol.ratings.recipes import RatingRecipe


def bytes_of_paper(n_ratings: int, rho: float, n_items: int, n_users: int, factors: int) -> float:
    """The paper's bytes of an iteration, up and down together."""
    return 4 * factors * (n_ratings * (1 + rho) + n_items * n_users)


def count_rating_communication(
    recipe: RatingRecipe, sizes: LongVector, n_items: int, rounds: int, rho: float
) -> dict[str, Any]:
    """The traffic of the first rounds of a run: totals, means per round, and the paper's measure beside them."""
    times = np.zeros(len(sizes), dtype=np.int64)
    if recipe.batch:
        times[recipe.participants] = rounds
    else:
        _count_choices(recipe.seed, recipe.participants, rounds, times)
    rows = sizes + recipe.virtual
    implicit_rows = sizes if recipe.implicit else np.zeros_like(sizes)
    per_update = np.array(
        [rating_update_bytes(int(a), int(b), recipe.factors) for a, b in zip(rows, implicit_rows, strict=True)]
    )
    talks = int(times.sum())
    rows_down = talks * n_items * (2 if recipe.implicit else 1)
    bytes_down = talks * rating_broadcast_bytes(n_items, recipe.factors, implicit=recipe.implicit)
    return {
        "rounds": rounds,
        "downloads": talks,
        "uploads": talks,
        "up": traffic(int((times * (rows + implicit_rows)).sum()), int((times * per_update).sum()), rounds),
        "down_dense": traffic(rows_down, bytes_down, rounds),
        "papers": {
            "bytes_per_iteration": bytes_of_paper(int(sizes.sum()), rho, n_items, len(sizes), recipe.factors),
            "counted_per_iteration": (bytes_down + int((times * per_update).sum())) / rounds * recipe.rounds_per_epoch,
        },
    }


@compiled
def _count_choices(seed: int, participants: IntVector, rounds: int, times: LongVector) -> None:
    """How often each user is drawn in the first rounds."""
    for r in range(rounds):
        times[participants[choose_one(seed, r, participants)]] += 1
