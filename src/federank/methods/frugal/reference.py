"""The reference engine: the method's functions for each client, plain Python and slow.

Real broadcasts and uploads pass between a server and clients that share no array. The compiled engine is tested
against it. For a few dozen users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from federank._numerics.arrays import IntVector
from federank.errors import SettingError
from federank.federation.method import Client
from federank.federation.rng import words_wrap_around
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.private_messages import directions_of, new_scratch, private_message
from federank.methods.frugal.protocol import (
    FrugalBroadcast,
    choose_cohort,
    covered,
    is_counting,
    rows_of,
    who_answers,
)
from federank.methods.frugal.records import FrugalModel
from federank.methods.frugal.server_update import placed, private_columns
from federank.methods.frugal.settings import FrugalRecipe
from federank.methods.frugal.simulation import FrugalFederation
from federank.privacy.ledger import Ledger
from federank.privacy.population import shared_profile_of
from federank.simulation.cluster import on_a_cluster
from federank.simulation.federated import EngineName, Open, in_this_process


def method_of(recipe: FrugalRecipe) -> Frugal:
    """The method as clients of a simulation run it."""
    return Frugal(
        n_items=recipe.n_items,
        factors=recipe.factors,
        messages=max(2, recipe.rounds),
        min_support=recipe.min_support,
        alpha=float(recipe.objective.liked) - 1,
        unobserved_weight=float(recipe.objective.unobserved),
        activity=recipe.activity,
        clip=recipe.clip or None,
    )


def model_of(broadcast: FrugalBroadcast, n_items: int) -> FrugalModel:
    """The model of a broadcast: items that it does not name have no vector and no weight."""
    vectors, weights = (placed(rows, broadcast.items, n_items) for rows in (rows_of(broadcast), broadcast.weights))
    return FrugalModel(vectors, weights, np.array([broadcast.regulariser]))


class FrugalClients:
    """Clients that live in this process, each with its own ledger."""

    def __init__(self, federation: FrugalFederation) -> None:
        self.recipe, self._method = federation.recipe, method_of(federation.recipe)
        users = range(len(federation.spent))
        shared, profiles = federation.recipe.shared_profile, federation.profiles
        self.shared_profiles = [shared_profile_of(shared, profiles, user) for user in users]
        self.spent = federation.spent.copy()
        self.ledgers = [Ledger() for _ in users]

    def choose(self, round_number: int) -> IntVector:
        """The clients that take part in this round."""
        return choose_cohort(self.recipe, round_number, self.spent)

    def train(self, clients: IntVector, broadcast: FrugalBroadcast) -> Iterator[Any]:
        """The uploads of these clients; one that is lost on the way is spent too."""
        recipe, number = self.recipe, broadcast.round_number
        answering = set(who_answers(recipe, number, clients).tolist())
        model = model_of(broadcast, recipe.n_items)
        for user in clients.tolist():
            assert self.spent[user] < recipe.messages[user], "a client that has spent its uploads is not asked"
            taken = self.shared_profiles[user]
            update: Any = (
                self._integers(user, broadcast)
                if recipe.private is not None
                else self._method.client_update(
                    Client(recipe.seed, user, number, taken.profile, stage=int(not is_counting(recipe, model.weights))),
                    model,
                ).update
            )
            self.spent[user] += 1
            self.ledgers[user].record_message(number, taken, int(self.spent[user]), int(recipe.messages[user]))
            if user in answering:
                yield update

    def _integers(self, user: int, broadcast: FrugalBroadcast) -> IntVector:
        """A private upload, rounded with the named draws of a simulation."""
        recipe, number = self.recipe, broadcast.round_number
        known = directions_of(rows_of(broadcast), broadcast.weights)
        scratch = new_scratch(len(broadcast.items), private_columns(recipe, number))
        profile = covered(broadcast.items, self.shared_profiles[user].profile)
        if not private_message(known, profile, recipe.seed, user, number, scratch):
            scratch.whole[:] = 0
        return scratch.whole


def play_round(recipe: FrugalRecipe, shared: Any, clients: FrugalClients) -> None:
    """Distribution, computation and transmission on the clients, aggregation: all uploads or none."""
    chosen = clients.choose(shared.round_number)
    shared.aggregate(recipe, clients.train(chosen, shared.distribute(recipe)))


def play(federation: FrugalFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    if federation.recipe.rounds_on_average:
        raise SettingError("rounding is mean, and the reference engine rounds every message; leave rounding out.")
    clients, shared = FrugalClients(federation), federation.shared
    with words_wrap_around():
        for _ in range(rounds):
            play_round(federation.recipe, shared, clients)
    federation.take(shared)
    federation.spent = clients.spent


# The engines that play rounds of few messages, by name.


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(play),
    "cluster": on_a_cluster,
}
