"""Simulated clients of FPL: they follow the federation's settings with the draws of a simulation.

A federation in which every client answers learns what the simulation learns. A client's part of a round is played by
the compiled engine's own kernel, so thousands of clients share a laptop with the server that they test.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from federank._numerics.arrays import FloatMatrix
from federank.federation.client import Model, Terms
from federank.federation.simulated import Population, in_catalogue
from federank.methods.fpl.kernels import sum_of_updates, workspace_for_clients
from federank.methods.fpl.settings import recipe_for
from federank.methods.fpl.simulation import Federation, home_vectors
from federank.methods.fpl.wire import Update, encode
from federank.privacy.population import Choices, coins, shared_profiles_of_all


class FPLClients:
    """Vectors, histories and draws of all users of a data set."""

    def __init__(self, population: Population) -> None:
        facts, ids, data, seed, specs, _ = population
        self.seed = seed
        settings = replace(facts.settings, seed=seed, clients_per_round="all", **specs)
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(specs.get("pi", 1.0))))
        shared_profile = shared_profiles_of_all(choices, seed, self.profiles, facts.n_items)
        recipe = recipe_for(settings, self.profiles.sizes, facts.n_items, coins(choices), None, shared_profile)
        self.federation = Federation.established(settings, recipe, self.profiles, facts.n_items)
        self.choices, self.recipe, self.participants = choices, recipe, recipe.participants
        self._run = self.federation.run
        self._padded: tuple[int, FloatMatrix] | None = None  # the item vectors of a version, as the kernels take them
        self._workspace = workspace_for_clients(*self.federation.item_vectors.shape)
        sum_of_updates(
            self._run, 0, np.zeros(0, dtype=np.int32), self._workspace
        )  # no one, but the kernel is compiled now

    def play(self, user: int, round_number: int, model: Model) -> Update:
        """One client's part of a round: its vector moves, and an Update comes out."""
        if self._padded is None or self._padded[0] != model.version:
            padded = np.zeros(self.federation.item_vectors.shape, dtype=np.float32)
            padded[:, : self.recipe.factors] = model.vectors
            self._padded = model.version, padded
        run = self._run._replace(item_vectors=self._padded[1], item_biases=model.tables["biases"])
        return sum_of_updates(run, round_number, np.array([user], dtype=np.int32), self._workspace)

    def take_over(self, before: FPLClients) -> None:
        """Everyone keeps the vector that was learnt so far."""
        self.federation.user_vectors[:] = before.federation.user_vectors

    def may_take_part(self, _user: int) -> bool:
        """Uploads are not counted."""
        return True

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One client's part of a round: the bytes that it sends."""
        return encode(self.play(user, round_number, model))

    def upload(self, _user: int, _model: Model, _terms: Terms) -> bytes | None:
        """There is no secure aggregation of FPL."""
        raise AssertionError("a federation of fpl has no config of secure aggregation")

    def release(self, user: int, noise: int) -> None:
        """Nothing was charged."""

    def vectors(self) -> FloatMatrix:
        """Everyone's vector of the rounds."""
        return self.federation.user_vectors[:, : self.recipe.factors].copy()

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """By the vector of the rounds, or by one that was learnt at home where a policy keeps the history there."""
        at_home = np.flatnonzero(self.choices.at_home).astype(np.int32)
        if len(at_home):
            vectors = vectors.copy()
            vectors[at_home] = home_vectors(self.recipe, self.profiles, model.vectors, model.tables["biases"], at_home)
        scores: FloatMatrix = vectors @ model.vectors.T + model.tables["biases"]
        return scores


SIMULATED = {"fpl": FPLClients}
