"""Virtual devices of few messages: the people of a data set, each with a history and a number of messages for life.

They follow the federation's recipe as a simulation does. Devices that have the same version of the model share what
depends on it alone (Y'DY), so that thousands of them can play on a laptop; the message itself is each one's own, made
by the protocol's maths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from federank.arrays import FloatMatrix, RealMatrix
from federank.data.interactions import Interactions
from federank.engines.squares.compiled import vectors_at_home
from federank.errors import SettingError
from federank.models.squares import gram_matrix, pulls, solve_person
from federank.protocol.policies.choices import Choices, everyones_outward, outward_of
from federank.protocol.squares.codec import encode_squares_update
from federank.protocol.squares.messages import SquaresPrivate, SquaresUpdate
from federank.protocol.squares.private.message import Directions, Scratch, directions_of, new_scratch, sent_in_stage
from federank.protocol.squares.recipes import squares_recipe
from federank.protocol.squares.transmission import send
from federank.protocol.sums.charter import PRIVATE
from federank.service.device.methods.method import Model
from federank.service.device.methods.summed import Terms, can_afford, cost_of, spectral_message, split
from federank.service.device.requests.federation import Facts
from federank.service.fleet.devices import Devices, VirtualDevices, in_catalogue, vanishes
from federank.service.fleet.ratings import RatingDevices


class FrugalDevices:
    """The private side of a fleet of few messages: histories, and how many messages each device has sent."""

    def __init__(self, facts: Facts, ids: list[str], data: Interactions, seed: int, wishes: dict[str, Any]) -> None:
        wishes = dict(wishes)
        if wishes.pop("basis", "shared") != "shared" or wishes.get("sharing") == "as-published":
            raise SettingError(
                "This federation's devices send few messages: what stands for a history in them is decided once for "
                "life. Choose --sharing sticky or deniable, and the basis shared."
            )
        settings = replace(facts.settings, seed=seed, **wishes)
        self.profiles, self.unknown_items = in_catalogue(data, ids)
        choices = Choices.alike(settings.policy(0.5), np.full(data.n_users, float(wishes.get("pi", 1.0))))
        outward = everyones_outward(choices, seed, self.profiles, facts.n_items)
        self.recipe = squares_recipe(settings, self.profiles.sizes, facts.n_items, outward=outward)
        self.participants = self.recipe.participants
        self._devices = {
            user: SquaresPrivate(
                user, self.profiles.of(user), outward_of(outward, self.profiles, user), int(self.recipe.messages[user])
            )
            for user in self.participants.tolist()
        }
        self._gram: tuple[int, RealMatrix] | None = None
        self._shared: tuple[int, Directions, Scratch] | None = None
        self._told: dict[int, float] = {}  # what each device's messages have told, as a square of mu
        gram_matrix(np.zeros((1, 1), dtype=np.float32), np.ones(1, dtype=np.float32))  # compiled now

    def take_over(self, before: FrugalDevices) -> None:
        """What has been sent stays sent."""
        for user, device in self._devices.items():
            device.spent = before._devices[user].spent if user in before._devices else 0

    def may_take_part(self, user: int) -> bool:
        """Whether a device has a message left."""
        device = self._devices[user]
        return device.spent < device.messages

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One device's part of a round: the bytes that it sends; it has one message less."""
        del round_number
        return encode_squares_update(self._update(user, model))

    def _update(self, user: int, model: Model) -> SquaresUpdate:
        device, vectors = self._devices[user], model.vectors[:, : self.recipe.factors]
        profile = device.outward.profile
        if self._gram is None or self._gram[0] != model.version:
            self._gram = model.version, gram_matrix(np.ascontiguousarray(vectors), model.weights)
        objective, gram = self.recipe.objective, self._gram[1]
        vector = solve_person(objective, model.regulariser, vectors, model.weights, gram, profile)
        return send(self.recipe, device, pulls(objective, vectors, vector, profile), vector)

    def upload(self, user: int, model: Model, terms: Terms) -> bytes | None:
        """One device's part of a round that no single server reads, split; nothing where its promise has no room.

        Rounding follows the draws of a simulation, so that without noise the model is the simulation's. What splits a
        message is the operating system's.
        """
        device, offer = self._devices[user], terms.offer
        if not can_afford(terms.charter, offer, self._told.get(user, 0.0)):
            return None
        self._told[user] = self._told.get(user, 0.0) + cost_of(offer.noise)
        if terms.charter.recipe == PRIVATE:
            known, room = self._known(model, terms)
            update = sent_in_stage(offer.stage, device, self.recipe.seed, known, room)
            return split(terms, update.whole)
        return split(terms, spectral_message(terms, self._update(user, model)))

    def release(self, user: int, noise: int) -> None:
        """Give back a device's last upload, which is in no sum."""
        self._devices[user].spent -= 1
        self._told[user] -= cost_of(noise)

    def _known(self, model: Model, terms: Terms) -> tuple[Directions, Scratch]:
        """What all devices of a round work out alike, and room for a message."""
        if self._shared is None or self._shared[0] != model.version:
            vectors = np.ascontiguousarray(model.vectors[:, : self.recipe.factors])
            room = new_scratch(terms.charter.items, terms.offer.columns)
            self._shared = model.version, directions_of(vectors, model.weights), room
        return self._shared[1:]

    def vanishes(self, user: int, round_number: int, share: float) -> bool:
        """Whether a device is gone before it has answered, by the draw that a simulation's `dropout` makes."""
        return vanishes(self.recipe.seed, user, round_number, share)

    def vectors(self) -> FloatMatrix:
        """None are kept from round to round."""
        return np.zeros((len(self.profiles.sizes), 0), dtype=np.float32)

    def scores(self, model: Model, vectors: FloatMatrix) -> FloatMatrix:
        """By vectors that are solved for at home, from everybody's whole history."""
        del vectors
        own = vectors_at_home(self.recipe, model.vectors, model.weights, model.regulariser, self.profiles)
        scores: FloatMatrix = own @ model.vectors.T
        return scores


def virtual_devices(facts: Facts, ids: list[str], data: Interactions, seed: int, wishes: dict[str, Any]) -> Devices:
    """The devices of everybody in a data set, of the federation's method."""
    made: Devices = DEVICES_OF[facts.method](facts, ids, data, seed, wishes)
    return made


DEVICES_OF: dict[str, type[Any]] = {
    "frugal": FrugalDevices,
    "fpl": VirtualDevices,
    "pmf": RatingDevices,
    "svdpp": RatingDevices,
}
