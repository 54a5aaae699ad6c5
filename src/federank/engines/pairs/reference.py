"""The reference engine: plain Python, slow, and the place to read first.

It plays rounds exactly as `protocol/round.py` tells them: real Broadcasts and Updates pass between a server and
devices that share no array. The compiled engine is tested against it. For worlds of a few dozen people.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federank.arrays import FloatMatrix, IntVector
from federank.data.interactions import Profiles
from federank.engines.in_memory import play_in_memory
from federank.engines.pairs.federation import Federation
from federank.protocol.draws import DROPOUT, happens, words, words_wrap_around
from federank.protocol.ledger import Ledger
from federank.protocol.messages import Broadcast, Private, Update
from federank.protocol.pairs.computation import compute
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.noise import disguise
from federank.protocol.pairs.recipes import Recipe
from federank.protocol.pairs.transmission import share
from federank.protocol.pairs.weights import weighted
from federank.protocol.policies.choices import outward_of


class FleetInMemory:
    """Devices that live in this process, each with its own private state and its own ledger."""

    def __init__(self, recipe: Recipe, profiles: Profiles, vectors: FloatMatrix) -> None:
        self.recipe = recipe
        self.outwards = [outward_of(recipe.outward, profiles, user) for user in range(len(vectors))]
        self.ledgers = [Ledger() for _ in self.outwards]
        self.devices = [
            Private(
                user,
                vectors[user].copy(),
                outward.profile,
                float(recipe.pi[user]),
                outward.allowed,
                int(recipe.triples[user]),
                outward.lifelong,
            )
            for user, outward in enumerate(self.outwards)
        ]
        self._marks = np.zeros(len(self.devices), dtype=np.int64)

    def choose(self, round_number: int) -> IntVector:
        """The devices that take part in this round."""
        chosen = np.empty(len(self.devices), dtype=np.int32)
        recipe = self.recipe
        with words_wrap_around():
            count = choose_clients(recipe, round_number, recipe.clients_per_round, self._marks, chosen)
        return chosen[:count]

    def train(self, clients: IntVector, broadcast: Broadcast) -> Iterator[Update]:
        """Computation and transmission on each of these devices; one that drops out has learnt but does not answer."""
        return weighted(self.recipe, self._answers(clients, broadcast))

    def _answers(self, clients: IntVector, broadcast: Broadcast) -> Iterator[tuple[int, Update]]:
        for user in clients:
            device = self.devices[user]
            gradients = compute(self.recipe, device, broadcast)
            word, _, _, _ = words(self.recipe.seed, user, DROPOUT, broadcast.round_number, 0)
            if not happens(word, self.recipe.dropout):
                update = share(self.recipe, device, broadcast.round_number, gradients)
                self.ledgers[user].record(broadcast.round_number, self.outwards[user], update)
                sent = disguise(self.recipe, int(user), broadcast.round_number, update, len(broadcast.items))
                yield int(user), sent


def play(federation: Federation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    del threads  # one device after the other: this engine is for reading
    recipe, factors = federation.recipe, federation.recipe.factors
    fleet = FleetInMemory(recipe, federation.profiles, federation.user_vectors[:, :factors])
    play_in_memory(federation, fleet, rounds)
    federation.user_vectors[:, :factors] = [device.vector for device in fleet.devices]
