"""Virtual devices of few messages: the people of a data set, each with a history and a number of messages for its
lifetime.

They follow the federation's recipe as a simulation does. Devices that have the same version of the model share what
depends on it alone (Y'DY), so that thousands of them can play on a laptop; the message itself is each one's own, made
by the protocol's maths.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from federank._numerics.arrays import FloatMatrix, RealMatrix
from federank.errors import SettingError
from federank.federation.client import Model, Terms, can_afford, cost_of, split
from federank.federation.simulated import Population, in_catalogue
from federank.methods.frugal.client import regulariser_of, spectral_message
from federank.methods.frugal.method import FrugalPrivate, FrugalUpdate, send, user_weight
from federank.methods.frugal.objective import gram_matrix, residuals, solve_user
from federank.methods.frugal.private import Directions, Scratch, directions_of, new_scratch, sent_in_stage
from federank.methods.frugal.settings import frugal_recipe
from federank.methods.frugal.simulation import vectors_at_home
from federank.methods.frugal.wire import encode_frugal_update
from federank.privacy.population import Choices, shared_profile_of, shared_profiles_of_all
from federank.secagg.config import PRIVATE


class FrugalClients:
    """The private side of a fleet of few messages: histories, and how many messages each device has sent."""

    def __init__(self, population: Population) -> None:
        facts, ids, data, seed, specs, _ = population
        self.seed = seed
        specs = dict(specs)
        if specs.pop("basis", "shared") != "shared" or specs.get("sharing") == "all":
            raise SettingError(
                "This federation's devices send few messages: what stands for a history in them is decided once for "
                "life. Choose --sharing fixed-subset or randomized-response, and the basis shared."
            )
        settings = replace(facts.settings, seed=seed, **specs)
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(specs.get("pi", 1.0))))
        shared_profile = shared_profiles_of_all(choices, seed, self.profiles, facts.n_items)
        self.recipe = frugal_recipe(settings, self.profiles.sizes, facts.n_items, shared_profile=shared_profile)
        self.participants = self.recipe.participants
        self._devices = {
            user: FrugalPrivate(
                user,
                self.profiles.of(user),
                shared_profile_of(shared_profile, self.profiles, user),
                int(self.recipe.messages[user]),
            )
            for user in self.participants.tolist()
        }
        self._gram: tuple[int, RealMatrix] | None = None
        self._shared: tuple[int, Directions, Scratch] | None = None
        self._told: dict[int, float] = {}  # what each device's messages have told, as a square of mu
        gram_matrix(np.zeros((1, 1), dtype=np.float32), np.ones(1, dtype=np.float32))  # compiled now

    def take_over(self, before: FrugalClients) -> None:
        """Nothing is kept from season to season: uploads count again from 0."""

    def may_take_part(self, user: int) -> bool:
        """Whether a device has a message left."""
        device = self._devices[user]
        return device.spent < device.messages

    def message(self, user: int, _round_number: int, model: Model) -> bytes:
        """One client's part of a round: the bytes that it sends; it has one upload less."""
        return encode_frugal_update(self._update(user, model))

    def _update(self, user: int, model: Model) -> FrugalUpdate:
        device, vectors = self._devices[user], model.vectors
        profile = device.shared_profile.profile
        if self._gram is None or self._gram[0] != model.version:
            self._gram = model.version, gram_matrix(np.ascontiguousarray(vectors), model.tables["weights"])
        objective, gram = self.recipe.objective, self._gram[1]
        vector = solve_user(objective, regulariser_of(model), vectors, model.tables["weights"], gram, profile)
        scale = user_weight(self.recipe, len(profile))
        return send(self.recipe, device, residuals(objective, vectors, vector, profile), vector, scale)

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """One device's part of a round that no single server reads, split; nothing where its guarantee has no room.

        Rounding follows the draws of a simulation, so that without noise the model is the simulation's. What splits a
        message is the operating system's.
        """
        device, offer = self._devices[user], terms.offer
        if not can_afford(terms.config, offer, self._told.get(user, 0.0)):
            return None
        self._told[user] = self._told.get(user, 0.0) + cost_of(offer.noise)
        if terms.config.recipe == PRIVATE:
            known, workspace = self._known(model, terms)
            profile = device.shared_profile.profile
            update = sent_in_stage(offer.stage, device, profile, self.recipe.seed, known, workspace)
            return split(terms, update.whole)
        return split(terms, spectral_message(terms, self._update(user, model)))

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum."""
        self._devices[user].spent -= 1
        self._told[user] -= cost_of(noise)

    def _known(self, model: Model, terms: Terms) -> tuple[Directions, Scratch]:
        """What all devices of a round work out alike, and room for a message."""
        if self._shared is None or self._shared[0] != model.version:
            vectors = np.ascontiguousarray(model.vectors)
            workspace = new_scratch(terms.config.items, terms.offer.columns)
            self._shared = model.version, directions_of(vectors, model.tables["weights"]), workspace
        return self._shared[1:]

    def vectors(self) -> FloatMatrix:
        """None are kept from round to round."""
        return np.zeros((len(self.profiles.sizes), 0), dtype=np.float32)

    def scores(self, model: Model, _vectors: FloatMatrix) -> FloatMatrix:
        """By vectors that are solved for at home, from full histories."""
        weights, regulariser = model.tables["weights"], regulariser_of(model)
        own = vectors_at_home(self.recipe, model.vectors, weights, regulariser, self.profiles)
        scores: FloatMatrix = own @ model.vectors.T
        return scores


SIMULATED = {"frugal": FrugalClients}
