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
from federank.protocol.choices import Choices, everyones_outward, outward_of
from federank.protocol.squares.codec import encode_squares_update
from federank.protocol.squares.messages import SquaresPrivate
from federank.protocol.squares.recipes import squares_recipe
from federank.protocol.squares.transmission import send
from federank.service.device.federation import Facts
from federank.service.device.methods.method import Model
from federank.service.fleet.devices import Devices, VirtualDevices, in_catalogue, vanishes


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
        gram_matrix(np.zeros((1, 1), dtype=np.float32), np.ones(1, dtype=np.float32))  # compiled now

    def may_take_part(self, user: int) -> bool:
        """Whether a device has a message left."""
        device = self._devices[user]
        return device.spent < device.messages

    def message(self, user: int, round_number: int, model: Model) -> bytes:
        """One device's part of a round: the bytes that it sends; it has one message less."""
        del round_number
        device, vectors = self._devices[user], model.vectors[:, : self.recipe.factors]
        profile = device.outward.profile
        if self._gram is None or self._gram[0] != model.version:
            self._gram = model.version, gram_matrix(np.ascontiguousarray(vectors), model.weights)
        objective, gram = self.recipe.objective, self._gram[1]
        vector = solve_person(objective, model.regulariser, vectors, model.weights, gram, profile)
        return encode_squares_update(send(self.recipe, device, pulls(objective, vectors, vector, profile), vector))

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
    by_method: type[Any] = FrugalDevices if facts.method == "frugal" else VirtualDevices
    made: Devices = by_method(facts, ids, data, seed, wishes)
    return made
