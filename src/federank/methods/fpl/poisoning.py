"""FPL with malicious clients: rounds played by the engine, with forged updates among them.

The engine's kernel plays honest clients, and malicious clients that follow the protocol with synthetic histories. The
updates of other malicious clients are forged here, from what every client receives: the model and the settings.

    loud       one row of maximal norm: the target's bias (sabotage: the biases of the most liked items, downwards)
    noise      the maximal number of rows, each of maximal norm, in random directions
    adaptive   knows the defences: T pairs that the equations allow, each with the target as the positive, g = 1, and
               the vector of a common taste, learnt locally from the model; aims at the largest row that the bounds
               accept (sabotage: the least liked items as positives, the most liked as negatives)
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
"""An adaptive malicious client averages this many synthetic users, with this many well-liked items each, over this many
steps."""
BEYOND = 1.3
"""How far above the longest rows an adaptive malicious client aims; the bounds scale it down."""


class PoisoningAttack(NamedTuple):
    """What a malicious client knows when it forges its update."""

    recipe: Recipe
    vectors: FloatMatrix
    biases: FloatVector
    target: int
    triples: int
    accomplices: float  # expected malicious clients per round
    most_norm: float
    taste: FloatVector  # the taste of most users, as estimated from the model
    rng: np.random.Generator


def play_pairs(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """Simulate FPL; without `defences` the server aggregates every update."""
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
            updates += _forged(world, settings, federation, malicious_users, triples, judged)
        _aggregate(federation, updates, defences)
    factors = recipe.factors
    tastes = federation.user_vectors[: world.honest, :factors]
    return measured(world, tastes @ federation.item_vectors[:, :factors].T + federation.item_biases)


def _aggregate(federation: Federation, updates: list[FPLUpdate], defences: Defences | None) -> None:
    before = Rows(federation.state.vectors, federation.item_biases.copy())
    federation.aggregate(updates)
    if defences is not None:
        rows = defend(defences, before, Rows(federation.state.vectors, federation.item_biases)).rows
        assert rows.biases is not None
        federation.take(replace(federation.state, vectors=rows.vectors, biases=rows.biases))


def _forged(
    world: World,
    settings: PoisonSettings,
    federation: Federation,
    malicious_users: IntVector,
    triples: int,
    judged: bool,
) -> list[FPLUpdate]:
    """The updates of these malicious clients that the server accepts: clipped, and refused if implausible."""
    recipe, number = federation.recipe, federation.round_number
    vectors = federation.item_vectors[:, : recipe.factors]
    rng = np.random.default_rng([settings.seed, number, 3])
    taste = np.zeros(recipe.factors, dtype=np.float32)  # only the adaptive attack needs it
    if settings.attack == "adaptive":
        taste = common_taste(recipe, vectors, federation.item_biases, world.target, rng)
    accomplices = recipe.clients_per_round * world.malicious_users / world.people
    seen = (recipe, vectors, federation.item_biases, world.target, triples, accomplices, settings.most_norm, taste)
    updates = []
    for malicious_user in malicious_users:
        poisoning_attack = PoisoningAttack(*seen, np.random.default_rng([settings.seed, number, int(malicious_user)]))
        forged = POISONING_ATTACKS[settings.attack, settings.aim](poisoning_attack)
        update = shortened(forged, settings.most_norm).update
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
    """The mean vector of users who like what the model shows as liked, from public data alone."""
    order = np.argsort(-biases, kind="stable")
    liked = order[order != target][: max(TASTE_ITEMS, len(biases) // 8)]
    size = min(TASTE_ITEMS, len(liked) - 1)
    histories = [np.sort(rng.choice(liked, size, replace=False)) for _ in range(TASTES)]
    starts = np.arange(TASTES + 1, dtype=np.int64) * size
    profiles = Profiles(starts, np.concatenate(histories).astype(np.int32))
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
    """T pairs of a user with this vector, all ranked wrongly (g = 1)."""
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
