"""FPL with liars: rounds as the engine plays them, in which some of the Updates are made up.

Honest devices, and liars who keep to the protocol with made-up histories, are played by the engine's own kernel. What
the other liars send is made here, from what every device is sent: the model and the recipe.

    loud       one row at the largest norm: the target's bias (sabotage: those of what is liked most, downwards)
    noise      as many rows as the task allows, each at the largest norm, in random directions
    adaptive   knows the defences: T pairs that the equations allow, the target on the liked side of each, g = 1, and
               the vector of a taste that most people share, which it learns at home from what the model shows as liked;
               aims at the row that the bounds just let through (sabotage: what nobody likes against what all do)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.audit.poisoning import Measured, PoisonSettings, World, measured
from federank.data.interactions import Profiles
from federank.federation.defences import Defences, Rows, defend
from federank.federation.wire import Update
from federank.methods.fpl.checks import shortened, why_implausible
from federank.methods.fpl.communication import clients_of_round
from federank.methods.fpl.factors import home_vectors
from federank.methods.fpl.kernels import room_for_clients, sum_of_updates
from federank.methods.fpl.method import Shared
from federank.methods.fpl.settings import FPLSettings, Recipe, recipe_for
from federank.methods.fpl.simulation import Federation

TASTES, TASTE_ITEMS, TASTE_STEPS = 20, 30, 300
"""An adaptive liar works out the taste of so many made-up people, each with so many well-liked items."""
BEYOND = 1.3
"""How far above the longest rows an adaptive liar aims: the bounds cut it to size."""


class Lie(NamedTuple):
    """What a liar has to go by when it makes its Update up."""

    recipe: Recipe
    vectors: FloatMatrix
    biases: FloatVector
    target: int
    triples: int
    accomplices: float  # liars in a round, on average
    most_norm: float
    taste: FloatVector  # what most people like, as far as the model shows it
    rng: np.random.Generator


def play_pairs(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """A whole federation of pairs; without `defences` the server folds in whatever comes."""
    triples = max(1, int(world.profiles.starts[world.honest]) // world.honest)
    reports = min(settings.reports, world.people)
    method = FPLSettings(triples=triples, clients_per_round=reports, seed=settings.seed)
    recipe = recipe_for(method, world.profiles.sizes, world.n_items, np.ones(world.people))
    federation = Federation.established(method, recipe, world.profiles, world.n_items)
    room = room_for_clients(*federation.item_vectors.shape)
    for number in range(settings.rounds):
        clients = clients_of_round(recipe, number, world.people)
        updates = [sum_of_updates(federation.run, number, clients[clients < world.honest], room)]
        liars = clients[clients >= world.honest]
        if settings.attack == "histories":
            updates += [sum_of_updates(federation.run, number, liars[n : n + 1], room) for n in range(len(liars))]
        elif len(liars):
            judged = defences is not None and settings.sees == "updates"
            updates += _made_up(world, settings, federation, liars, triples, judged)
        _fold(federation, updates, defences)
    factors = recipe.factors
    tastes = federation.user_vectors[: world.honest, :factors]
    return measured(world, tastes @ federation.item_vectors[:, :factors].T + federation.item_biases)


def _fold(federation: Federation, updates: list[Update], defences: Defences | None) -> None:
    shared = federation.shared
    before = Rows(shared.vectors, shared.biases)
    shared.aggregate(federation.recipe, updates)
    if defences is not None:
        rows = defend(defences, before, Rows(shared.vectors, shared.biases)).rows
        assert rows.biases is not None
        shared = Shared(rows.vectors, rows.biases, shared.round_number, shared.mean, shared.square)
    federation.take(shared)


def _made_up(
    world: World, settings: PoisonSettings, federation: Federation, liars: IntVector, triples: int, judged: bool
) -> list[Update]:
    """What these liars send, as far as the server takes it: shortened, and refused where no device can have sent it."""
    recipe, number = federation.recipe, federation.round_number
    vectors = federation.item_vectors[:, : recipe.factors]
    rng = np.random.default_rng([settings.seed, number, 3])
    taste = np.zeros(recipe.factors, dtype=np.float32)  # who is loud has none to work out
    if settings.attack == "adaptive":
        taste = common_taste(recipe, vectors, federation.item_biases, world.target, rng)
    accomplices = recipe.clients_per_round * world.liars / world.people
    seen = (recipe, vectors, federation.item_biases, world.target, triples, accomplices, settings.most_norm, taste)
    updates = []
    for liar in liars:
        lie = Lie(*seen, np.random.default_rng([settings.seed, number, int(liar)]))
        update = shortened(LIES[settings.attack, settings.aim](lie), settings.most_norm)
        if not judged or why_implausible(update, triples) is None:
            updates.append(update)
    return updates


def common_taste(
    recipe: Recipe, vectors: FloatMatrix, biases: FloatVector, target: int, rng: np.random.Generator
) -> FloatVector:
    """The mean vector of people who like what the model shows as liked: all that is needed is public."""
    order = np.argsort(-biases, kind="stable")
    liked = order[order != target][: max(TASTE_ITEMS, len(biases) // 8)]
    size = min(TASTE_ITEMS, len(liked) - 1)
    people = [np.sort(rng.choice(liked, size, replace=False)) for _ in range(TASTES)]
    starts = np.arange(TASTES + 1, dtype=np.int64) * size
    profiles = Profiles(starts, np.concatenate(people).astype(np.int32))
    everybody = np.arange(TASTES, dtype=np.int32)
    taste: FloatVector = home_vectors(recipe, profiles, vectors, biases, everybody, TASTE_STEPS).mean(axis=0)
    return taste


def _loud_push(lie: Lie) -> Update:
    row = np.zeros((1, lie.recipe.factors), dtype=np.float32)
    return Update(np.array([lie.target], dtype=np.int32), row, np.array([lie.most_norm], dtype=np.float32))


def _loud_sabotage(lie: Lie) -> Update:
    liked = np.sort(np.argsort(-lie.biases, kind="stable")[: 2 * lie.triples]).astype(np.int32)
    down = np.full(len(liked), -lie.most_norm, dtype=np.float32)
    return Update(liked, np.zeros((len(liked), lie.recipe.factors), dtype=np.float32), down)


def _noise(lie: Lie) -> Update:
    count = min(2 * lie.triples, len(lie.biases))
    items = np.sort(lie.rng.choice(len(lie.biases), count, replace=False)).astype(np.int32)
    rows = lie.rng.normal(size=(count, lie.recipe.factors + 1))
    rows *= lie.most_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    return Update(items, rows[:, :-1].astype(np.float32), rows[:, -1].astype(np.float32))


def _adaptive_push(lie: Lie) -> Update:
    length = float(np.quantile(np.linalg.norm(lie.vectors, axis=1), 0.9))
    direction = lie.taste / max(float(np.linalg.norm(lie.taste)), 1e-9)
    missing = BEYOND * length * direction - lie.vectors[lie.target]
    taste = missing / (float(lie.recipe.learning_rate) * max(lie.accomplices, 1.0) * lie.triples)
    others = lie.rng.choice(len(lie.biases), lie.triples + 1, replace=False)
    return _pairs(np.array([lie.target]), others[others != lie.target][: lie.triples], lie.triples, taste)


def _adaptive_sabotage(lie: Lie) -> Update:
    order = np.argsort(-lie.biases, kind="stable")
    return _pairs(order[-lie.triples :], order[: lie.triples], lie.triples, lie.taste)


def _pairs(liked: LongVector, others: LongVector, triples: int, taste: FloatVector) -> Update:
    """T pairs of somebody with this vector whose order is all wrong (g = 1): what the equations give."""
    items = np.concatenate((liked, others)).astype(np.int32)
    biases = np.concatenate((np.full(len(liked), triples / len(liked)), np.full(len(others), -triples / len(others))))
    order = np.argsort(items)
    rows = np.outer(biases[order], taste).astype(np.float32)
    return Update(items[order], rows, biases[order].astype(np.float32))


LIES = {
    ("loud", "push"): _loud_push,
    ("loud", "sabotage"): _loud_sabotage,
    ("noise", "push"): _noise,
    ("noise", "sabotage"): _noise,
    ("adaptive", "push"): _adaptive_push,
    ("adaptive", "sabotage"): _adaptive_sabotage,
}
