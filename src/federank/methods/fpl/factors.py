"""What FPL and BPR-MF share: item factors with biases, user factors, and how they score and are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import load_row, padded_width, store_row
from federank.data.interactions import Interactions, Profiles
from federank.methods.fpl.bpr import pair_slope, user_gradient
from federank.methods.fpl.method import HOME_ROUND, HOME_STEPS, NO_BITS, Draw, Profile, draw_pair
from federank.methods.fpl.settings import FPLSettings, Recipe, recipe_for
from federank.methods.fpl.simulation import Federation
from federank.methods.recommender import Arrays, Recommender, put_back, restored_table, run_identity
from federank.simulation.options import TrainingOptions
from federank.simulation.training import train

# Home vectors of many people at once: protocol/pairs/home.py, compiled.


def home_vectors(
    recipe: Recipe,
    histories: Profiles,
    item_vectors: FloatMatrix,
    item_biases: FloatVector,
    people: IntVector,
    steps: int = HOME_STEPS,
) -> FloatMatrix:
    """A vector for each of these people, learnt from their full history with the item factors as they are."""
    factors = recipe.factors
    width = padded_width(factors)
    Q = np.zeros((len(item_biases), width), dtype=np.float32)
    Q[:, :factors] = item_vectors[:, :factors]
    vectors = np.zeros((len(people), width), dtype=np.float32)
    starts, items = np.array(histories.starts), np.array(histories.items)
    numbers = (recipe.seed, recipe.learning_rate, recipe.user_regulariser)
    b = np.array(item_biases)
    _learn(*numbers, starts, items, Q, b, np.array(people, np.int32), vectors, steps, NO_BITS, (0,) * width)
    return vectors[:, :factors]


@compiled
def _learn(
    seed: int,
    rate: Any,
    regulariser: Any,
    starts: LongVector,
    items: IntVector,
    Q: FloatMatrix,
    b: FloatVector,
    people: IntVector,
    vectors: FloatMatrix,
    steps: int,
    no_bits: Any,
    width: Any,
) -> None:
    for row in range(len(people)):
        user = people[row]
        start = starts[user]
        size = starts[user + 1] - start
        if size == 0 or size == len(b):
            continue
        p, profile = load_row(vectors, row, width), Profile(items, start, size, no_bits, len(b))
        for counter in range(steps):
            position, j, _ = draw_pair(Draw(seed, user, HOME_ROUND, counter), profile)
            i = items[position]
            q_i, q_j = load_row(Q, i, width), load_row(Q, j, width)
            g = pair_slope(p, q_i, q_j, b[i], b[j])
            p = p + rate * user_gradient(g, p, q_i, q_j, regulariser)
        store_row(vectors, row, p)


_SENDS_NOTHING: dict[str, Any] = {
    name: FPLSettings.__dataclass_fields__[name].default
    for name in ("trace", "online", "pi", "sharing", "item_epsilon", "basis", "budget", "policies")
}
"""Defaults of the settings about uploads, which a fold-in has no use for."""


class PairwiseFactors(Recommender):
    """Scores b_i + p_u . q_i, learnt from pairs by the rounds of a federation."""

    in_rounds = True
    _warm = ("item_vectors", "item_biases", "user_vectors")
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix

    def pairs(self) -> FPLSettings:
        """The method's settings as those of federated pair-wise learning."""
        raise NotImplementedError

    def _run(
        self,
        settings: FPLSettings,
        recipe: Recipe,
        data: Interactions,
        training_options: TrainingOptions,
        chosen: str = "",
    ) -> None:
        """Found a federation and play its rounds; the factors follow it while it runs.

        `chosen` names what people chose where the settings do not tell it, for the identity of a checkpoint.
        """
        federation = Federation.established(settings, recipe, data.profiles, data.n_items)
        put_back(self._earlier, data, {name: getattr(federation, name) for name in self._warm})
        self._follow(federation)
        seconds = train(
            federation, settings.epochs, training_options, run_identity(self.name + chosen, self.settings, data)
        )
        self._follow(federation)
        triples = int(recipe.triples[recipe.participants].mean() * recipe.clients_per_round * federation.round_number)
        always_there = recipe.online >= 1.0 and not len(recipe.trace)
        self.report |= ({"triples": triples} if always_there else {}) | {
            "seconds": seconds,
            "rounds": federation.round_number,
            "rounds_per_epoch": recipe.rounds_per_epoch,
            "skipped_users": int(data.n_users - len(np.unique(recipe.participants))),
        }

    def _follow(self, federation: Federation) -> None:
        """Views of the federation's tables without their padding: no copy, so they are current during training."""
        factors = federation.recipe.factors
        self.item_vectors = federation.item_vectors[:, :factors]
        self.item_biases = federation.item_biases
        self.user_vectors = federation.user_vectors[:, :factors]

    def _tastes(self, users: IntVector) -> FloatMatrix:
        """The vectors that these users are recommended to from, as a copy."""
        return self.user_vectors[users]

    def fold_in(self, histories: Profiles, users: IntVector) -> FloatMatrix:
        """The vectors of these users by the fold-in of a client (protocol/pairs/home.py), from their full history."""
        settings = replace(self.pairs(), **_SENDS_NOTHING)
        settings = replace(settings, triples=1, clients_per_round=1)
        recipe = recipe_for(settings, histories.sizes, len(self.item_biases), np.zeros(len(histories.sizes)))
        return home_vectors(recipe, histories, self.item_vectors, self.item_biases, users)

    def enrolled(self, profile: IntVector) -> FloatVector:
        """The vector of a new user with this history; nothing is sent."""
        alone = Profiles(np.array([0, len(profile)], dtype=np.int64), profile)
        vector: FloatVector = self.fold_in(alone, np.zeros(1, dtype=np.int32))[0]
        return vector

    def scores_of(self, vector: FloatVector) -> FloatVector:
        """The scores of the full catalogue for someone with this vector."""
        scores: FloatVector = self.item_vectors @ vector + self.item_biases
        return scores

    def _score_users(self, users: IntVector) -> FloatMatrix:
        with np.errstate(over="ignore", invalid="ignore"):  # factors on their way out of range: training says so
            return self._tastes(users) @ self.item_vectors.T + self.item_biases

    def _shared_arrays(self) -> Arrays:
        return {"item_vectors": self.item_vectors, "item_biases": self.item_biases}

    def _private_arrays(self) -> Arrays:
        return {"user_vectors": self.user_vectors}

    def _restore(self, shared: Arrays, private: Arrays) -> None:
        n_users, n_items, factors = self.training.n_users, self.training.n_items, self.pairs().factors
        self.item_vectors = restored_table(shared, "item_vectors", (n_items, factors))
        self.item_biases = restored_table(shared, "item_biases", (n_items,))
        self.user_vectors = restored_table(private, "user_vectors", (n_users, factors))
