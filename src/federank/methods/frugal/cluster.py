"""Frugal and FCF on a cluster (simulation/cluster.py).

A client keeps no vector between rounds, so a shard is its users' profiles: it receives the model, sums its clients'
messages partition by partition with the compiled engine's kernels, and keeps nothing. The result has the compiled
engine's bits.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.methods.frugal.kernels import RoundContext
from federank.methods.frugal.protocol import supported_items
from federank.methods.frugal.settings import FrugalRecipe
from federank.methods.frugal.simulation import (
    FrugalFederation,
    Partitions,
    as_broadcast,
    partitions_of,
    play_with,
    restricted,
    sum_partitions,
    workspace_for,
)
from federank.privacy.population import AS_HISTORIES_ARE
from federank.simulation.cluster import Train, by_partition


class FrugalPart(NamedTuple):
    """What a shard is started with: its users' shared profiles, by their numbers in the full population."""

    recipe: FrugalRecipe  # without what is one value per user
    partitions: LongVector  # where its partitions begin, and where the last one ends
    starts: LongVector
    items: IntVector


class Message(NamedTuple):
    """The model of a round."""

    items: IntVector  # that its messages cover
    vectors: FloatMatrix
    weights: FloatVector
    regulariser: float


class FrugalShard:
    """Some of a population's clients, on one machine of a cluster."""

    def __init__(self, part: FrugalPart) -> None:
        self._recipe = part.recipe
        first, last = int(part.partitions[0]), int(part.partitions[-1])
        starts = np.zeros(last + 1, dtype=np.int64)
        starts[first:] = part.starts
        self._profiles = Profiles(starts, np.array(part.items))
        self._starts = np.array(part.partitions)

    def train(self, message: Message, partitions: list[IntVector]) -> list[Any]:
        """Sums of what these clients send of these items: own parts, squares, counts."""
        items, vectors, weights, regulariser = message
        recipe = self._recipe._replace(n_items=len(items))
        workspace = workspace_for(recipe, self._starts)
        context = as_broadcast(recipe, np.array(vectors), np.array(weights), regulariser)
        profiles = restricted(self._profiles, np.array(items), self._recipe.n_items)
        sum_partitions(recipe, profiles, context, np.concatenate(partitions), workspace)
        return list(zip(workspace.own, workspace.squares, workspace.messages, strict=True))

    def states(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    def restore(self, _states: dict[str, Any]) -> None:
        """Nothing was kept."""


class FrugalSpread:
    """The driver's part of a federation on a cluster."""

    shard_type: ClassVar = FrugalShard
    client_tables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, federation: FrugalFederation) -> None:
        if federation.recipe.private is not None:
            raise SettingError(
                "The cluster engine does not play rounds with noise; leave out epsilon and sigma, or use the engine "
                "compiled."
            )
        self._federation = federation
        self.partitions = partitions_of(federation.recipe, len(federation.spent))
        self._message: Message | None = None

    def part(self, partitions: LongVector) -> FrugalPart:
        """What a shard starts with."""
        profiles, first, last = self._federation.shared_profile, partitions[0], partitions[-1]
        no_users = np.zeros(0, dtype=np.int32)
        recipe = self._federation.recipe._replace(
            participants=no_users,
            cohort=no_users,
            messages=no_users,
            shared_profile=AS_HISTORIES_ARE,
            trace=np.zeros((0, 0), np.bool_),
        )
        return FrugalPart(recipe, partitions, *profiles.between(int(first), int(last)))

    def message(self, _since: int) -> Message | None:
        """All of the model: every row has changed."""
        return self._message

    def play_round(self, train: Train) -> None:
        """One round."""

        def fill(played: FrugalFederation, context: RoundContext, users: IntVector, sums: Partitions) -> None:
            recipe, weights = self._federation.recipe, self._federation.weights
            items = supported_items(recipe, weights)
            vectors = context.vectors[:, : played.recipe.factors]
            self._message = Message(items, vectors, context.weights, context.regulariser)
            for empty in (sums.own, sums.squares, sums.messages):
                empty[:] = 0
            for partition, (own, squares, messages) in train(by_partition(users, self.partitions)):
                sums.own[partition], sums.squares[partition], sums.messages[partition] = own, squares, messages

        play_with(self._federation, 1, fill)
