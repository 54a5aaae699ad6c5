"""The compiled engine of learning ratings: prepares what the kernels need, and calls the one that fits the recipe."""

from __future__ import annotations

import numpy as np

from federank.engines.ratings.federation import RatingFederation
from federank.engines.ratings.kernels import AHEAD, Room, Sums, play_pmf, play_pmf_batch
from federank.engines.ratings.kernels_svdpp import play_svdpp
from federank.engines.ratings.unfederated import play_compiled


def play(federation: RatingFederation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    del threads  # a stochastic round waits for the one before it; see docs/fedrec.md for batch style
    recipe, run, begin = federation.recipe, federation.run, federation.round_number
    if not recipe.federated:
        play_compiled(federation, rounds)
        return
    room = room_for_raters(federation)
    if recipe.batch:
        V = federation.item_vectors
        sums = Sums(np.empty_like(V), np.empty(len(V), dtype=np.int64))
        play_pmf_batch(run, sums, room, begin, rounds)
    elif recipe.implicit:
        play_svdpp(run, room, begin, rounds)
    else:
        play_pmf(run, room, begin, rounds)
    federation.round_number += rounds


def room_for_raters(federation: RatingFederation) -> Room:
    """Working memory for the devices of a federation, as large as the largest of them needs."""
    sizes, (n_items, width) = federation.profiles.sizes, federation.item_vectors.shape
    most = int((sizes + federation.recipe.virtual).max(initial=0))
    most_rated = int(sizes.max(initial=0)) if federation.recipe.implicit else 0
    return Room(
        marks=np.zeros(n_items, dtype=np.int64),
        calls=np.zeros(1, dtype=np.int64),
        items=np.zeros(most + AHEAD, dtype=np.int32),
        values=np.empty(most, dtype=np.float32),
        own=np.empty((most_rated, width), dtype=np.float32),
        trial=np.empty((most_rated, width), dtype=np.float32),
    )
