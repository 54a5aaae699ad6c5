"""The reference engine of learning ratings: plain Python, slow, and the place to read first.

It plays rounds exactly as `protocol/round.py` tells them: real Broadcasts and Updates pass between a server and
devices that share no array. Without a federation it runs the plain loops of unfederated.py, interpreted.
"""

from __future__ import annotations

from collections.abc import Iterator

from federank._numerics.arrays import IntVector
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec import simulation as compiled
from federank.methods.fedrec.method import compute_ratings, share_ratings
from federank.methods.fedrec.simulation import RatingFederation, play_plainly
from federank.methods.fedrec.wire import RatingBroadcast, RatingUpdate, choose_raters
from federank.simulation.federated import EngineName, Open, in_this_process, play_in_memory


class RatersInMemory:
    """Devices that live in this process, each with its own private state."""

    def __init__(self, federation: RatingFederation) -> None:
        self.recipe = federation.recipe
        self.devices = [federation.device(user) for user in range(len(federation.user_vectors))]

    def choose(self, round_number: int) -> IntVector:
        """The devices that take part in this round."""
        return choose_raters(self.recipe, round_number)

    def train(self, clients: IntVector, broadcast: RatingBroadcast) -> Iterator[RatingUpdate]:
        """Computation and transmission on each of these devices."""
        for user in clients:
            yield share_ratings(compute_ratings(self.recipe, self.devices[user], broadcast))


def play(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    if not federation.recipe.federated:
        with words_wrap_around():
            play_plainly(federation, rounds)
        return
    fleet = RatersInMemory(federation)
    play_in_memory(federation, fleet, rounds)
    federation.user_vectors[:, : federation.recipe.factors] = [device.vector for device in fleet.devices]
    federation.participations[:] = [device.participations for device in fleet.devices]


# The engines of learning ratings, by name.


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(play),
}
