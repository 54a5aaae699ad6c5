"""Virtual devices of few messages: the people of a data set, each with a history and a number of messages for its
lifetime.

They follow the federation's recipe as a simulation does. Devices that have the same version of the model share what
depends on it alone (Y'DY), so that thousands of them can play on a laptop; the message itself is each one's own, made
by the protocol's maths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealMatrix
from federank.errors import SettingError
from federank.federation.client import Model, Terms, can_afford, cost_of, split
from federank.federation.simulated import Population, in_catalogue
from federank.methods.frugal.client import broadcast_of, is_asked_for_counts, regulariser_of, spectral_message
from federank.methods.frugal.losses import FrugalSettings
from federank.methods.frugal.method import (
    FrugalPrivate,
    FrugalUpdate,
    counts_of,
    covered,
    covered_items,
    send,
    user_weight,
)
from federank.methods.frugal.objective import gram_matrix, residuals, solve_user
from federank.methods.frugal.private import Directions, Scratch, directions_of, new_scratch, sent_in_stage
from federank.methods.frugal.settings import frugal_recipe
from federank.methods.frugal.simulation import vectors_at_home
from federank.methods.frugal.wire import encode_frugal_update
from federank.privacy.population import Choices, shared_profile_of, shared_profiles_of_all
from federank.secagg.config import PRIVATE


class _KnownModel(NamedTuple):
    """What all clients of a version work out alike."""

    version: int
    items: IntVector  # that uploads cover
    vectors: FloatMatrix
    weights: FloatVector
    gram: RealMatrix

    @classmethod
    def of(cls, settings: FrugalSettings, model: Model) -> _KnownModel:
        broadcast = broadcast_of(settings, model, 0)
        vectors = np.ascontiguousarray(broadcast.vectors)
        gram = gram_matrix(vectors, broadcast.weights)
        return cls(model.version, broadcast.items, vectors, broadcast.weights, gram)


class FrugalClients:
    """The private side of a fleet of few messages: histories, and how many messages each device has sent."""

    def __init__(self, population: Population) -> None:
        info, ids, data, seed, specs, _ = population
        self.seed = seed
        specs = dict(specs)
        if specs.pop("basis", "shared") != "shared" or specs.get("sharing") == "all":
            raise SettingError(
                "This federation's devices send few messages: what stands for a history in them is decided once for "
                "life. Choose --sharing fixed-subset or randomized-response, and the basis shared."
            )
        settings = replace(info.settings, seed=seed, **specs)
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(specs.get("pi", 1.0))))
        shared_profile = shared_profiles_of_all(choices, seed, self.profiles, info.n_items)
        self.recipe = frugal_recipe(settings, self.profiles.sizes, info.n_items, shared_profile=shared_profile)
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
        self._settings = settings
        self._known_model: _KnownModel | None = None
        self._shared: tuple[int, Directions, IntVector, Scratch] | None = None
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
        return encode_frugal_update(self._update(user, model, None))

    def _update(self, user: int, model: Model, terms: Terms | None) -> FrugalUpdate:
        device = self._devices[user]
        if is_asked_for_counts(self._settings, model.tables["weights"], device.spent, terms):
            counts = counts_of(self.recipe.n_items, device.shared_profile.profile)
            return send(self.recipe, device, counts, np.zeros(0, dtype=np.float32), 1.0)
        if self._known_model is None or self._known_model.version != model.version:
            self._known_model = _KnownModel.of(self._settings, model)
        objective, (_, items, vectors, weights, gram) = self.recipe.objective, self._known_model
        profile = covered(items, device.shared_profile.profile)
        vector = solve_user(objective, regulariser_of(model), vectors, weights, gram, profile)
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
            known, items, workspace = self._known(model, terms)
            profile = covered(items, device.shared_profile.profile)
            update = sent_in_stage(offer.stage, device, profile, self.recipe.seed, known, workspace)
            return split(terms, update.whole)
        return split(terms, spectral_message(terms, self._update(user, model, terms)))

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum."""
        self._devices[user].spent -= 1
        self._told[user] -= cost_of(noise)

    def _known(self, model: Model, terms: Terms) -> tuple[Directions, IntVector, Scratch]:
        """What all clients of a round work out alike, the items that it covers, and room for a message."""
        if self._shared is None or self._shared[0] != model.version:
            weights, everything = model.tables["weights"], np.arange(self.recipe.n_items, dtype=np.int32)
            items = covered_items(self._settings.min_support, weights) if terms.offer.stage else everything
            known = directions_of(np.ascontiguousarray(model.vectors[items]), weights[items])
            self._shared = model.version, known, items, new_scratch(len(items), terms.offer.columns)
        return self._shared[1:]

    def vectors(self) -> FloatMatrix:
        """None are kept from round to round."""
        return np.zeros((len(self.profiles.sizes), 0), dtype=np.float32)

    def scores(self, model: Model, _vectors: FloatMatrix) -> FloatMatrix:
        """By vectors that are solved for at home, from full histories."""
        weights, regulariser = model.tables["weights"], regulariser_of(model)
        own = vectors_at_home(self.recipe, model.vectors, weights, regulariser, self.profiles)
        scores: FloatMatrix = own @ model.vectors.T
        if self._settings.min_support > 1:  # what is not supported is recommended to nobody
            scores[:, weights == 0] = -np.inf
        return scores


SIMULATED = {"frugal": FrugalClients}
