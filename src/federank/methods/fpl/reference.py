"""The reference engine: plain Python, slow, and the place to read first.

It plays rounds exactly as `protocol/round.py` tells them: real Broadcasts and Updates pass between a server and
devices that share no array. The compiled engine is tested against it. For worlds of a few dozen people.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector
from federank.data.interactions import Profiles
from federank.federation.rng import DROPOUT, happens, words, words_wrap_around
from federank.methods.fpl import simulation as compiled
from federank.methods.fpl.method import choose_clients, compute, share, weighted
from federank.methods.fpl.privacy import clip_and_noise
from federank.methods.fpl.settings import Recipe
from federank.methods.fpl.simulation import Federation
from federank.methods.fpl.wire import Broadcast, Private, Update, by_sign
from federank.privacy.ledger import Ledger
from federank.privacy.population import shared_profile_of
from federank.simulation.federated import Engine, EngineName, Machines, Open, in_this_process, play_in_memory


class FleetInMemory:
    """Devices that live in this process, each with its own private state and its own ledger."""

    def __init__(self, recipe: Recipe, profiles: Profiles, vectors: FloatMatrix) -> None:
        self.recipe = recipe
        self.shared_profiles = [
            shared_profile_of(recipe.shared_profile, profiles, user) for user in range(len(vectors))
        ]
        self.ledgers = [Ledger() for _ in self.shared_profiles]
        self.devices = [
            Private(
                user,
                vectors[user].copy(),
                shared_profile.profile,
                float(recipe.pi[user]),
                shared_profile.allowed,
                int(recipe.triples[user]),
                shared_profile.lifelong,
            )
            for user, shared_profile in enumerate(self.shared_profiles)
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
                self.ledgers[user].record(broadcast.round_number, self.shared_profiles[user], *by_sign(update))
                sent = clip_and_noise(self.recipe, int(user), broadcast.round_number, update, len(broadcast.items))
                yield int(user), sent


def play(federation: Federation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    recipe, factors = federation.recipe, federation.recipe.factors
    fleet = FleetInMemory(recipe, federation.profiles, federation.user_vectors[:, :factors])
    play_in_memory(federation, fleet, rounds)
    federation.user_vectors[:, :factors] = [device.vector for device in fleet.devices]


# The engines of pair-wise learning, by name.


@contextmanager
def _on_a_cluster(federation: Federation, machines: Machines) -> Iterator[Engine]:
    from federank.methods.fpl.cluster import opened

    with opened(federation, machines.address or "local", machines.shards) as cluster:
        yield Engine(cluster.play, cluster.bring_home)


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(play),
    "cluster": _on_a_cluster,
}
