"""The reference engine of few messages: plain Python, slow, and the place to read first.

Real Broadcasts and Updates pass between a server and devices that share no array. The compiled engine is tested
against it. For a few dozen users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import SettingError
from federank.federation.rng import words_wrap_around
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.private_messages import known_from, new_scratch, sent_privately
from federank.methods.frugal.protocol import (
    FrugalBroadcast,
    FrugalPrivate,
    FrugalUpdate,
    PrivateUpdate,
    choose_cohort,
    compute_frugal,
    send,
    who_answers,
)
from federank.methods.frugal.server_update import private_columns
from federank.methods.frugal.settings import FrugalRecipe
from federank.methods.frugal.simulation import FrugalFederation
from federank.privacy.ledger import Ledger
from federank.privacy.population import shared_profile_of
from federank.simulation.cluster import on_a_cluster
from federank.simulation.federated import EngineName, Open, in_this_process


def play_round(recipe: FrugalRecipe, shared: Any, fleet: Any) -> None:
    """Distribution, computation and transmission on the clients, aggregation: all uploads or none."""
    clients = fleet.choose(shared.round_number)
    updates = fleet.train(clients, shared.distribute(recipe))
    shared.aggregate(recipe, updates)


class FrugalFleetInMemory:
    """Devices that live in this process, each with its own private state and its own ledger."""

    def __init__(self, recipe: FrugalRecipe, devices: list[FrugalPrivate]) -> None:
        self.recipe = recipe
        self.devices = devices
        self.ledgers = [Ledger() for _ in devices]

    @property
    def spent(self) -> IntVector:
        """How many messages each device has sent."""
        return np.array([device.spent for device in self.devices], dtype=np.int32)

    def choose(self, round_number: int) -> IntVector:
        """The devices that take part in this round."""
        return choose_cohort(self.recipe, round_number, self.spent)

    def train(self, clients: IntVector, broadcast: FrugalBroadcast) -> Iterator[FrugalUpdate | PrivateUpdate]:
        """Computation and transmission on each of these devices; a message that is lost on the way is spent too."""
        recipe, number = self.recipe, broadcast.round_number
        answering = set(who_answers(recipe, number, clients).tolist())
        known, workspace = known_from(broadcast), new_scratch(len(broadcast.items), private_columns(recipe, number))
        for user in clients:
            device = self.devices[user]
            update: FrugalUpdate | PrivateUpdate
            if recipe.private is not None:
                update = sent_privately(broadcast, device, recipe.seed, known, workspace)
            else:
                update = send(recipe, device, *compute_frugal(recipe, device, broadcast))
            self.ledgers[user].record_message(number, device.shared_profile, device.spent, device.messages)
            if user in answering:
                yield update


def play(federation: FrugalFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    recipe, profiles = federation.recipe, federation.profiles
    if recipe.rounds_on_average:
        raise SettingError("rounding is mean, and the reference engine rounds every message; leave rounding out.")
    devices = [
        FrugalPrivate(
            user,
            profiles.of(user),
            shared_profile_of(recipe.shared_profile, profiles, user),
            int(recipe.messages[user]),
            int(federation.spent[user]),
        )
        for user in range(len(federation.spent))
    ]
    fleet = FrugalFleetInMemory(recipe, devices)
    shared = federation.shared
    with words_wrap_around():
        for _ in range(rounds):
            play_round(federation.recipe, shared, fleet)
    federation.take(shared)
    federation.spent = fleet.spent


# The engines that play rounds of few messages, by name.


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(play),
    "cluster": on_a_cluster,
}
