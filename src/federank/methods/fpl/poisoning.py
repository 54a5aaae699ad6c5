"""FPL with malicious clients: rounds as the engine plays them, in which some of the Updates are made up.

Honest devices, and malicious clients who keep to the protocol with synthetic histories, are played by the engine's
own kernel. What
the other malicious clients send is made here, from what every device is sent: the model and the recipe.

    loud       one row at the largest norm: the target's bias (sabotage: those of what is liked most, downwards)
    noise      as many rows as the task allows, each at the largest norm, in random directions
    adaptive   knows the defences: T pairs that the equations allow, the target on the liked side of each, g = 1, and
               the vector of a taste that most people share, which it learns at home from what the model shows as liked;
               aims at the row that the bounds just let through (sabotage: what no one likes against what all do)
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.audit.poisoning import Measured, PoisonSettings, World, measured
from federank.data.interactions import Profiles
from federank.errors import BadMessage
from federank.federation.defences import Defences, Rows, defend, shortened
from federank.methods.fpl.communication import clients_of_round
from federank.methods.fpl.kernels import sum_of_updates, workspace_for_clients
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.settings import FPLSettings, Recipe, recipe_for
from federank.methods.fpl.simulation import Federation, home_vectors

TASTES, TASTE_ITEMS, TASTE_STEPS = 20, 30, 300
"""An adaptive malicious client works out the taste of this many synthetic people, each with this many well-liked
items.
"""
BEYOND = 1.3
"""How far above the longest rows an adaptive malicious client aims: the bounds cut it to size."""


class PoisoningAttack(NamedTuple):
    """What a malicious client has to go by when it makes its Update up."""

    recipe: Recipe
    vectors: FloatMatrix
    biases: FloatVector
    target: int
    triples: int
    accomplices: float  # malicious clients in a round, on average
    most_norm: float
    taste: FloatVector  # what most people like, as far as the model shows it
    rng: np.random.Generator


def play_pairs(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """A federation of FPL; without `defences` the server aggregates every update."""
    triples = max(1, int(world.profiles.starts[world.honest]) // world.honest)
    reports = min(settings.reports, world.people)
    method = FPLSettings(triples=triples, clients_per_round=reports, seed=settings.seed)
    recipe = recipe_for(method, world.profiles.sizes, world.n_items, np.ones(world.people))
    federation = Federation.established(method, recipe, world.profiles, world.n_items)
    workspace = workspace_for_clients(*federation.item_vectors.shape)
    for number in range(settings.rounds):
        clients = clients_of_round(recipe, number, world.people)
        updates = [sum_of_updates(federation.run, number, clients[clients < world.honest], workspace)]
        malicious_users = clients[clients >= world.honest]
        if settings.attack == "histories":
            updates += [
                sum_of_updates(federation.run, number, malicious_users[n : n + 1], workspace)
                for n in range(len(malicious_users))
            ]
        elif len(malicious_users):
            judged = defences is not None and settings.sees == "updates"
            updates += _made_up(world, settings, federation, malicious_users, triples, judged)
        _fold(federation, updates, defences)
    factors = recipe.factors
    tastes = federation.user_vectors[: world.honest, :factors]
    return measured(world, tastes @ federation.item_vectors[:, :factors].T + federation.item_biases)


def _fold(federation: Federation, updates: list[FPLUpdate], defences: Defences | None) -> None:
    before = Rows(federation.state.vectors, federation.item_biases.copy())
    federation.aggregate(updates)
    if defences is not None:
        rows = defend(defences, before, Rows(federation.state.vectors, federation.item_biases)).rows
        assert rows.biases is not None
        federation.take(replace(federation.state, vectors=rows.vectors, biases=rows.biases))


def _made_up(
    world: World,
    settings: PoisonSettings,
    federation: Federation,
    malicious_users: IntVector,
    triples: int,
    judged: bool,
) -> list[FPLUpdate]:
    """What these malicious clients send, as far as the server takes it: shortened, and refused where no device can
    have sent it.
    """
    recipe, number = federation.recipe, federation.round_number
    vectors = federation.item_vectors[:, : recipe.factors]
    rng = np.random.default_rng([settings.seed, number, 3])
    taste = np.zeros(recipe.factors, dtype=np.float32)  # who is loud has none to work out
    if settings.attack == "adaptive":
        taste = common_taste(recipe, vectors, federation.item_biases, world.target, rng)
    accomplices = recipe.clients_per_round * world.malicious_users / world.people
    seen = (recipe, vectors, federation.item_biases, world.target, triples, accomplices, settings.most_norm, taste)
    updates = []
    for malicious_user in malicious_users:
        poisoning_attack = PoisoningAttack(*seen, np.random.default_rng([settings.seed, number, int(malicious_user)]))
        made_up = POISONING_ATTACKS[settings.attack, settings.aim](poisoning_attack)
        update = shortened(made_up, settings.most_norm).update
        if not judged or _is_plausible(federation, update, triples):
            updates.append(update)
    return updates


def _is_plausible(federation: Federation, update: FPLUpdate, triples: int) -> bool:
    method = replace(federation.method, triples=triples)
    try:
        method.check(method.broadcast(federation.state), update)
    except BadMessage:
        return False
    return True


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
    all_users = np.arange(TASTES, dtype=np.int32)
    taste: FloatVector = home_vectors(recipe, profiles, vectors, biases, all_users, TASTE_STEPS).mean(axis=0)
    return taste


def _scaled_push(poisoning_attack: PoisoningAttack) -> FPLUpdate:
    row = np.zeros((1, poisoning_attack.recipe.factors), dtype=np.float32)
    return FPLUpdate(
        np.array([poisoning_attack.target], dtype=np.int32),
        row,
        np.array([poisoning_attack.most_norm], dtype=np.float32),
    )


def _scaled_sabotage(poisoning_attack: PoisoningAttack) -> FPLUpdate:
    liked = np.sort(np.argsort(-poisoning_attack.biases, kind="stable")[: 2 * poisoning_attack.triples]).astype(
        np.int32
    )
    down = np.full(len(liked), -poisoning_attack.most_norm, dtype=np.float32)
    return FPLUpdate(liked, np.zeros((len(liked), poisoning_attack.recipe.factors), dtype=np.float32), down)


def _noise(poisoning_attack: PoisoningAttack) -> FPLUpdate:
    count = min(2 * poisoning_attack.triples, len(poisoning_attack.biases))
    items = np.sort(poisoning_attack.rng.choice(len(poisoning_attack.biases), count, replace=False)).astype(np.int32)
    rows = poisoning_attack.rng.normal(size=(count, poisoning_attack.recipe.factors + 1))
    rows *= poisoning_attack.most_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    return FPLUpdate(items, rows[:, :-1].astype(np.float32), rows[:, -1].astype(np.float32))


def _adaptive_push(poisoning_attack: PoisoningAttack) -> FPLUpdate:
    length = float(np.quantile(np.linalg.norm(poisoning_attack.vectors, axis=1), 0.9))
    direction = poisoning_attack.taste / max(float(np.linalg.norm(poisoning_attack.taste)), 1e-9)
    missing = BEYOND * length * direction - poisoning_attack.vectors[poisoning_attack.target]
    taste = missing / (
        float(poisoning_attack.recipe.learning_rate) * max(poisoning_attack.accomplices, 1.0) * poisoning_attack.triples
    )
    others = poisoning_attack.rng.choice(len(poisoning_attack.biases), poisoning_attack.triples + 1, replace=False)
    return _pairs(
        np.array([poisoning_attack.target]),
        others[others != poisoning_attack.target][: poisoning_attack.triples],
        poisoning_attack.triples,
        taste,
    )


def _adaptive_sabotage(poisoning_attack: PoisoningAttack) -> FPLUpdate:
    order = np.argsort(-poisoning_attack.biases, kind="stable")
    return _pairs(
        order[-poisoning_attack.triples :],
        order[: poisoning_attack.triples],
        poisoning_attack.triples,
        poisoning_attack.taste,
    )


def _pairs(liked: LongVector, others: LongVector, triples: int, taste: FloatVector) -> FPLUpdate:
    """T pairs of someone with this vector whose order is all wrong (g = 1): what the equations give."""
    items = np.concatenate((liked, others)).astype(np.int32)
    biases = np.concatenate((np.full(len(liked), triples / len(liked)), np.full(len(others), -triples / len(others))))
    order = np.argsort(items)
    rows = np.outer(biases[order], taste).astype(np.float32)
    return FPLUpdate(items[order], rows, biases[order].astype(np.float32))


POISONING_ATTACKS = {
    ("loud", "push"): _scaled_push,
    ("loud", "sabotage"): _scaled_sabotage,
    ("noise", "push"): _noise,
    ("noise", "sabotage"): _noise,
    ("adaptive", "push"): _adaptive_push,
    ("adaptive", "sabotage"): _adaptive_sabotage,
}


POISONED = {"fpl": play_pairs}
USUAL_DEFENCES = {"fpl": Defences()}
