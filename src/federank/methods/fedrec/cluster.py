"""PMF in batch style on a cluster (simulation/cluster.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.methods.fedrec.kernels import Sums, sum_pmf_batch
from federank.methods.fedrec.simulation import RatingFederation, no_sums, workspace_for_raters
from federank.simulation.cluster import Train, by_partition, in_their_places, partition_starts

MAX_PARTITIONS = 16


class Part(NamedTuple):
    """What a shard starts with: all that is known of the users from `first` on, and of no others."""

    first: int
    n_users: int  # of the population
    federation: RatingFederation  # whatever has a row per user is of these users only


class RatingShard:
    """Some of a population's clients, on one machine of a cluster."""

    def __init__(self, part: Part) -> None:
        federation, recipe = part.federation, part.federation.recipe
        self._users = users = slice(part.first, part.first + len(federation.means))
        sizes = in_their_places(federation.profiles.sizes, users, part.n_users)

        def placed(values: Any) -> Any:
            return in_their_places(values, users, part.n_users)

        # What arrives through Ray cannot be written to.
        self._federation = replace(
            federation,
            recipe=recipe._replace(participants=np.array(recipe.participants), virtual=placed(recipe.virtual)),
            profiles=Profiles(np.concatenate(([0], np.cumsum(sizes))), np.array(federation.profiles.items)),
            ratings=np.array(federation.ratings),
            item_vectors=np.array(federation.item_vectors),
            implicit_vectors=np.array(federation.implicit_vectors),
            **{name: placed(getattr(federation, name)) for name in ("means", *RatingSpread.kept)},
        )
        self._workspace = workspace_for_raters(self._federation)

    def train(self, message: tuple[int, FloatMatrix], partitions: list[IntVector]) -> list[Sums]:
        """The sums of these clients' gradients, partition by partition."""
        number, vectors = message
        self._federation.item_vectors[:] = vectors
        answers = []
        for clients in partitions:
            sums = no_sums(self._federation)
            sum_pmf_batch(self._federation.run, sums, self._workspace, number, np.array(clients))
            answers.append(sums)
        return answers

    def states(self) -> dict[str, FloatMatrix]:
        """What its clients keep."""
        return {name: getattr(self._federation, name)[self._users] for name in RatingSpread.kept}

    def restore(self, states: dict[str, FloatMatrix]) -> None:
        """Return to these states."""
        for name, table in states.items():
            getattr(self._federation, name)[self._users] = table


class RatingSpread:
    """The driver's part of a federation on a cluster."""

    shard_type: ClassVar = RatingShard
    kept: ClassVar[tuple[str, ...]] = ("user_vectors", "participations")

    def __init__(self, federation: RatingFederation) -> None:
        if not federation.recipe.batch:
            raise SettingError(
                "The cluster engine needs rounds with many clients; in stochastic style each has one. Choose the style "
                "batch, or the engine compiled."
            )
        self._federation = federation
        able, n_users = federation.recipe.participants, len(federation.user_vectors)
        self.partitions = partition_starts(able, n_users, min(MAX_PARTITIONS, len(able)))

    def part(self, partitions: LongVector) -> Part:
        """What a shard starts with."""
        federation, first, last = self._federation, int(partitions[0]), int(partitions[-1])
        able, starts = federation.recipe.participants, federation.profiles.starts
        able = able[(able >= first) & (able < last)]
        own = replace(
            federation,
            recipe=federation.recipe._replace(participants=able, virtual=federation.recipe.virtual[first:last]),
            profiles=federation.profiles.between(first, last),
            ratings=federation.ratings[starts[first] : starts[last]],
            **{name: getattr(federation, name)[first:last] for name in ("means", *self.kept)},
        )
        return Part(first, len(federation.user_vectors), own)

    def message(self, _since: int) -> tuple[int, FloatMatrix]:
        """The round, and all of V."""
        return self._federation.round_number, self._federation.item_vectors

    def play_round(self, train: Train) -> None:
        """One round."""
        total, able = no_sums(self._federation), self._federation.recipe.participants
        for _, sums in train(by_partition(able, self.partitions)):
            np.add(total.vectors, sums.vectors, out=total.vectors)
            np.add(total.counts, sums.counts, out=total.counts)
        self._federation.take_step(total)
