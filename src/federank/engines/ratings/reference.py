"""The reference engine of learning ratings: plain Python, slow, and the place to read first.

It plays rounds exactly as `protocol/round.py` tells them: real Broadcasts and Updates pass between a server and
devices that share no array. Without a federation it runs the plain loops of unfederated.py, interpreted.
"""

from __future__ import annotations

from collections.abc import Iterator

from federank.arrays import IntVector
from federank.engines.ratings import unfederated as rating_unfederated
from federank.engines.ratings.federation import RatingFederation
from federank.protocol.draws import words_wrap_around
from federank.protocol.ratings.aggregation import SharedFactors
from federank.protocol.ratings.computation import compute_ratings
from federank.protocol.ratings.distribution import choose_raters
from federank.protocol.ratings.messages import RatingBroadcast, RatingPrivate, RatingUpdate
from federank.protocol.ratings.recipes import RatingRecipe
from federank.protocol.ratings.transmission import share_ratings
from federank.protocol.round import play_round


class RatersInMemory:
    """Devices that live in this process, each with its own private state."""

    def __init__(self, federation: RatingFederation) -> None:
        self.recipe: RatingRecipe = federation.recipe
        profiles, factors = federation.profiles, federation.recipe.factors
        self.devices = [
            RatingPrivate(
                user,
                federation.user_vectors[user, :factors].copy(),
                profiles.of(user).copy(),
                federation.ratings[profiles.starts[user] : profiles.starts[user + 1]].copy(),
                federation.means[user],
                int(federation.recipe.virtual[user]),
                int(federation.participations[user]),
            )
            for user in range(len(federation.user_vectors))
        ]

    def choose(self, round_number: int) -> IntVector:
        """The devices that take part in this round."""
        return choose_raters(self.recipe, round_number)

    def train(self, clients: IntVector, broadcast: RatingBroadcast) -> Iterator[RatingUpdate]:
        """Computation and transmission on each of these devices."""
        for user in clients:
            yield share_ratings(compute_ratings(self.recipe, self.devices[user], broadcast))


def play(federation: RatingFederation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    del threads  # one device after the other: this engine is for reading
    recipe, factors = federation.recipe, federation.recipe.factors
    with words_wrap_around():
        if not recipe.federated:
            rating_unfederated.play_plainly(federation, rounds)
            return
        fleet = RatersInMemory(federation)
        shared = SharedFactors(
            federation.item_vectors[:, :factors].copy(),
            federation.implicit_vectors[:, :factors].copy(),
            federation.round_number,
        )
        for _ in range(rounds):
            play_round(recipe, shared, fleet)
    federation.item_vectors[:, :factors] = shared.vectors
    federation.implicit_vectors[:, :factors] = shared.implicit_vectors
    federation.user_vectors[:, :factors] = [device.vector for device in fleet.devices]
    federation.participations[:] = [device.participations for device in fleet.devices]
    federation.round_number = shared.round_number
