"""A round in which ratings are learnt: distribution, computation and transmission on the devices, aggregation.

In batch style everyone takes part (FedRec, 2020, Algorithm 1); in stochastic style one user, drawn uniformly and with
replacement over rounds (Algorithm 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from federank.arrays import IntVector
from federank.models.rows import inlined
from federank.protocol.draws import SELECT, SERVER, below, words
from federank.protocol.ratings.aggregation import SharedFactors, aggregate_ratings, make_rating_broadcast
from federank.protocol.ratings.messages import RatingBroadcast, RatingUpdate
from federank.protocol.ratings.recipes import RatingRecipe


class RatingFleet(Protocol):
    """Devices, wherever they are."""

    def train(self, clients: IntVector, broadcast: RatingBroadcast) -> Iterable[RatingUpdate]:
        """Hand the Broadcast to these devices; their Updates."""
        ...


@inlined
def choose_one(seed: Any, round_number: Any, participants: Any) -> Any:
    """The place, among the participants, of the one client of a stochastic round."""
    word, _, _, _ = words(seed, SERVER, SELECT, round_number, 0)
    return below(word, len(participants))


def choose_raters(recipe: RatingRecipe, round_number: int) -> IntVector:
    """The devices that take part in this round."""
    if recipe.batch:
        return recipe.participants
    place = choose_one(recipe.seed, round_number, recipe.participants)
    return recipe.participants[place : place + 1]


def play_rating_round(recipe: RatingRecipe, shared: SharedFactors, fleet: RatingFleet) -> None:
    """Distribution, computation and transmission on the devices, aggregation."""
    clients = choose_raters(recipe, shared.round_number)
    broadcast = make_rating_broadcast(shared)
    updates = fleet.train(clients, broadcast)
    aggregate_ratings(recipe, shared, updates)
