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
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate
from federank.methods.fpl.settings import FPLSettings, clients_of_round, recipe_for
from federank.methods.fpl.simulation import Federation, home_vectors

TASTES, TASTE_ITEMS, TASTE_STEPS = 20, 30, 300
"""An adaptive malicious client averages this many synthetic users, with this many well-liked items each, over this many
steps."""
BEYOND = 1.3
"""How far above the longest rows an adaptive malicious client aims; the bounds scale it down."""


class PoisoningAttack(NamedTuple):
    """What a malicious client knows when it forges its update."""

    method: FPL
    vectors: FloatMatrix
    biases: FloatVector
    target: int
    accomplices: float  # expected malicious clients per round
    most_norm: float
    taste: FloatVector  # the taste of most users, as estimated from the model
    rng: np.random.Generator

    @property
    def by_bias(self) -> LongVector:
        """All items, those of the highest biases first."""
        return np.argsort(-self.biases, kind="stable")


def play_pairs(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """Simulate FPL; without `defences` the server aggregates every update."""
    triples = max(1, int(world.profiles.starts[world.honest]) // world.honest)
    reports = min(settings.reports, world.people)
    fpl = FPLSettings(triples=triples, clients_per_round=reports, seed=settings.seed)
    recipe = recipe_for(fpl, world.profiles.sizes, world.n_items, np.ones(world.people))
    federation = Federation.established(fpl, recipe, world.profiles, world.n_items)
    federation.method = replace(federation.method, triples=triples)
    for number in range(settings.rounds):
        clients = clients_of_round(recipe, number, world.people)
        updates = [federation.sum_of(clients[clients < world.honest])]
        malicious_users = clients[clients >= world.honest]
        if settings.attack == "histories":
            updates += [federation.sum_of(malicious_users[n : n + 1]) for n in range(len(malicious_users))]
        elif len(malicious_users):
            judged = defences is not None and settings.sees == "updates"
            updates += _forged(world, settings, federation, malicious_users, judged)
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
    world: World, settings: PoisonSettings, federation: Federation, malicious_users: IntVector, judged: bool
) -> list[FPLUpdate]:
    """The updates of these malicious clients that the server accepts: clipped, and refused if implausible."""
    method, number = federation.method, federation.round_number
    model = method.broadcast(federation.state)
    taste = np.zeros(method.factors, dtype=np.float32)  # only the adaptive attack needs it
    if settings.attack == "adaptive":
        taste = common_taste(method, model, world.target, np.random.default_rng([settings.seed, number, 3]))
    accomplices = federation.recipe.clients_per_round * world.malicious_users / world.people
    updates = []
    for malicious_user in malicious_users:
        rng = np.random.default_rng([settings.seed, number, int(malicious_user)])
        known = (method, model.vectors, model.biases, world.target, accomplices, settings.most_norm, taste, rng)
        forged = POISONING_ATTACKS[settings.attack, settings.aim](PoisoningAttack(*known))
        update = shortened(forged, settings.most_norm).update
        if not judged or _is_plausible(method, model, update):
            updates.append(update)
    return updates


def _is_plausible(method: FPL, model: FPLModel, update: FPLUpdate) -> bool:
    try:
        method.check(model, update)
    except BadMessage:
        return False
    return True


def common_taste(method: FPL, model: FPLModel, target: int, rng: np.random.Generator) -> FloatVector:
    """The mean vector of users who like what the model shows as liked, from public data alone."""
    order = np.argsort(-model.biases, kind="stable")
    liked = order[order != target][: max(TASTE_ITEMS, len(order) // 8)]
    size = min(TASTE_ITEMS, len(liked) - 1)
    histories = [np.sort(rng.choice(liked, size, replace=False)) for _ in range(TASTES)]
    starts = np.arange(TASTES + 1, dtype=np.int64) * size
    profiles = Profiles(starts, np.concatenate(histories).astype(np.int32))
    all_users = np.arange(TASTES, dtype=np.int32)
    taste: FloatVector = home_vectors(method, model, profiles, all_users, TASTE_STEPS).mean(axis=0)
    return taste


def _scaled_push(known: PoisoningAttack) -> FPLUpdate:
    return _only_biases(known, np.array([known.target]), known.most_norm)


def _scaled_sabotage(known: PoisoningAttack) -> FPLUpdate:
    return _only_biases(known, np.sort(known.by_bias[: 2 * known.method.triples]), -known.most_norm)


def _only_biases(known: PoisoningAttack, items: LongVector, bias: float) -> FPLUpdate:
    vectors = np.zeros((len(items), known.method.factors), dtype=np.float32)
    return FPLUpdate(items.astype(np.int32), vectors, np.full(len(items), bias, dtype=np.float32))


def _noise(known: PoisoningAttack) -> FPLUpdate:
    count = known.method.max_rows()
    items = np.sort(known.rng.choice(len(known.biases), count, replace=False)).astype(np.int32)
    rows = known.rng.normal(size=(count, known.method.factors + 1))
    rows *= known.most_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    return FPLUpdate(items, rows[:, :-1].astype(np.float32), rows[:, -1].astype(np.float32))


def _adaptive_push(known: PoisoningAttack) -> FPLUpdate:
    triples, rate = known.method.triples, float(np.float32(known.method.learning_rate))
    length = float(np.quantile(np.linalg.norm(known.vectors, axis=1), 0.9))
    direction = known.taste / max(float(np.linalg.norm(known.taste)), 1e-9)
    missing = BEYOND * length * direction - known.vectors[known.target]
    others = known.rng.choice(len(known.biases), triples + 1, replace=False)
    others = others[others != known.target][:triples]
    return _pairs(np.array([known.target]), others, triples, missing / (rate * max(known.accomplices, 1.0) * triples))


def _adaptive_sabotage(known: PoisoningAttack) -> FPLUpdate:
    triples = known.method.triples
    return _pairs(known.by_bias[-triples:], known.by_bias[:triples], triples, known.taste)


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
