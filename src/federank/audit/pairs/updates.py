"""One more Update of a device, as the server would receive it; and one more round, as somebody outside sees it.

The device takes its part of the next round on a copy of its vector, so nothing of the run changes: the very rows that
would cross the wire, clipped and noisy if the recipe asks for it.

Whoever fetches the public model before and after a round has its sum: the model moves by the learning rate times that.
A round of one device is its Update.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.engines.pairs.clients import room_for_clients, sum_of_updates
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import Run
from federank.models.rows import padded_width
from federank.protocol.draws import words_wrap_around
from federank.protocol.messages import Update
from federank.protocol.pairs.noise import disguise
from federank.protocol.pairs.recipes import Recipe


def next_updates(federation: Federation, people: IntVector) -> Iterator[Update]:
    """What each of these devices would send in the round that comes next, were it chosen and its answer not lost."""
    recipe = federation.recipe._replace(dropout=0.0)
    run = _next_run(federation, recipe)
    room = room_for_clients(*run.item_vectors.shape)
    for person in people:
        update = sum_of_updates(run, federation.round_number, np.array([person], dtype=np.int32), room)
        with words_wrap_around():
            yield disguise(recipe, int(person), federation.round_number, update, len(run.item_vectors))


def next_sums(federation: Federation, people: IntVector) -> Iterator[Update]:
    """For each of these people, the sum of a next round that they are in: themselves and others, drawn at random."""
    recipe = federation.recipe._replace(dropout=0.0)
    run = _next_run(federation, recipe)
    room, own = room_for_clients(*run.item_vectors.shape), run.user_vectors.copy()
    for person in people:
        rng = np.random.default_rng([recipe.seed, federation.round_number, int(person)])
        others = recipe.participants[recipe.participants != person]
        drawn = rng.choice(others, min(recipe.clients_per_round - 1, len(others)), replace=False)
        cohort = np.sort(np.append(drawn, person)).astype(np.int32)
        if recipe.clip > 0:
            yield _added(next_updates(federation, cohort), *federation.item_vectors.shape)
        else:
            yield sum_of_updates(run, federation.round_number, cohort, room)
            run.user_vectors[cohort] = own[cohort]


def _added(updates: Iterator[Update], n_items: int, width: int) -> Update:
    vectors, biases = np.zeros((n_items, width), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
    factors = width
    for update in updates:
        factors = update.vectors.shape[1]
        vectors[update.items, :factors] += update.vectors
        biases[update.items] += update.biases
    items = np.flatnonzero(biases).astype(np.int32)
    return Update(items, np.ascontiguousarray(vectors[items, :factors]), biases[items])


def _next_run(federation: Federation, recipe: Recipe) -> Run:
    width = padded_width(recipe.factors)
    items, own = _padded(federation.item_vectors, width), _padded(federation.user_vectors, width)
    return Run(recipe, federation.histories, items, np.array(federation.item_biases), own, (0,) * width)


def _padded(table: FloatMatrix, width: int) -> FloatMatrix:
    rows = np.zeros((len(table), width), dtype=np.float32)
    rows[:, : table.shape[1]] = table
    return rows
