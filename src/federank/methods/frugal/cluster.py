"""Few messages on a cluster: one population over many machines, the driver in the place of the server.

A device of few messages keeps no vector between rounds, so a shard is only its people's profiles: it is told the model,
sums its people's messages district by district with the compiled engine's kernels, and forgets everything. The driver
adds partitions up in their order, which gives the compiled engine's bits for any number of shards. A shard that is lost
is started elsewhere, and the round is asked for again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.data.interactions import Profiles
from federank.errors import ClusterGone, SettingError
from federank.methods.frugal.kernels import RoundContext
from federank.methods.frugal.method import is_counting, supported_items
from federank.methods.frugal.settings import FrugalRecipe
from federank.methods.frugal.simulation import (
    FrugalFederation,
    Partitions,
    as_broadcast,
    district_starts,
    play_with,
    restricted,
    sum_partitions,
    workspace_for,
)
from federank.privacy.population import AS_HISTORIES_ARE
from federank.simulation.cluster import LOCAL, answer, cluster_cpus, connected, first_line, losses
from federank.simulation.federated import Engine, Machines

_MOST_LOSSES = 5


class FrugalPart(NamedTuple):
    """What a shard is started with: its people's shared profiles, by their numbers in the whole population."""

    recipe: FrugalRecipe  # without what is one value per user
    partitions: LongVector  # where its partitions begin, and where the last one ends
    starts: LongVector
    items: IntVector


class FrugalShard:
    """Some of a population's devices, on one machine of a cluster."""

    def __init__(self, part: FrugalPart) -> None:
        self._recipe = part.recipe
        first, last = int(part.partitions[0]), int(part.partitions[-1])
        starts = np.zeros(last + 1, dtype=np.int64)
        starts[first:] = part.starts
        self._profiles = Profiles(starts, np.array(part.items))
        self._starts = np.array(part.partitions)

    def sums(
        self, vectors: FloatMatrix, weights: FloatVector, regulariser: float, items: IntVector, people: IntVector
    ) -> tuple[Any, Any, Any]:
        """What these of its people send of these items, summed by partition: own parts, squares, counts."""
        recipe = self._recipe._replace(n_items=len(items))
        workspace = workspace_for(recipe, self._starts)
        context = as_broadcast(recipe, np.array(vectors), np.array(weights), regulariser)
        profiles = restricted(self._profiles, np.array(items), self._recipe.n_items)
        sum_partitions(recipe, profiles, context, np.array(people), workspace)
        return workspace.own, workspace.squares, workspace.messages


class FrugalCluster:
    """The driver's half of a federation whose devices live on the shards of a cluster."""

    def __init__(self, ray: Any, federation: FrugalFederation, starts: LongVector, shards: int) -> None:
        self._ray, self._federation, self._starts = ray, federation, starts
        self._bounds = [shard * (len(starts) - 1) // shards for shard in range(shards + 1)]
        self._shards = [self._start(shard, cpus=1) for shard in range(shards)]

    def play(self, federation: FrugalFederation, rounds: int, _threads: int = 1) -> None:
        """Play this many rounds."""
        play_with(federation, rounds, self._fill)

    def close(self) -> None:
        """End the shards."""
        for shard in self._shards:
            self._ray.kill(shard)

    def _fill(
        self, federation: FrugalFederation, context: RoundContext, people: IntVector, workspace: Partitions
    ) -> None:
        vectors = context.vectors[:, : federation.recipe.factors]
        recipe, weights = self._federation.recipe, self._federation.weights
        everything = np.arange(recipe.n_items, dtype=np.int32)
        items = everything if is_counting(recipe, weights) else supported_items(recipe, weights)
        model = [self._ray.put(part) for part in (vectors, context.weights, context.regulariser, items)]
        try:
            asked = [self._asked(shard, model, people) for shard in range(len(self._shards))]
            for shard, reference in enumerate(asked):
                own, squares, messages = self._answered(shard, reference, model, people)
                here = slice(self._bounds[shard], self._bounds[shard + 1])
                workspace.own[here], workspace.squares[here], workspace.messages[here] = own, squares, messages
        except (ConnectionError, self._ray.exceptions.RaySystemError) as gone:
            raise ClusterGone(f"The cluster went away: {first_line(gone)}") from gone

    def _asked(self, shard: int, model: list[Any], people: IntVector) -> Any:
        first, last = np.searchsorted(people, self._people(shard))
        return self._shards[shard].sums.remote(*model, people[first:last])

    def _answered(self, shard: int, reference: Any, model: list[Any], people: IntVector) -> Any:
        for _ in range(_MOST_LOSSES):
            try:
                return answer(self._ray, reference)
            except losses(self._ray) as loss:
                last_loss = loss
                # Asking for a core of its own could mean waiting for ever: beside others it is slow, but goes on.
                self._shards[shard] = self._start(shard, cpus=0)
                reference = self._asked(shard, model, people)
        raise ClusterGone(
            f"A part of the cluster was lost {_MOST_LOSSES} times in one round. The last time: {first_line(last_loss)} "
            "Is there enough memory on its machines?"
        )

    def _people(self, shard: int) -> tuple[int, int]:
        """The first person of a shard, and the first of the next."""
        return int(self._starts[self._bounds[shard]]), int(self._starts[self._bounds[shard + 1]])

    def _start(self, shard: int, cpus: int) -> Any:
        first, last = self._people(shard)
        shared_profile, no_users = self._federation.shared_profile, np.zeros(0, dtype=np.int32)
        recipe = self._federation.recipe._replace(
            participants=no_users,
            cohort=no_users,
            messages=no_users,
            shared_profile=AS_HISTORIES_ARE,
            trace=np.zeros((0, 0), np.bool_),
        )
        part = FrugalPart(
            recipe,
            self._starts[self._bounds[shard] : self._bounds[shard + 1] + 1],
            shared_profile.starts[first : last + 1] - shared_profile.starts[first],
            shared_profile.items[shared_profile.starts[first] : shared_profile.starts[last]],
        )
        where = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        return self._ray.remote(FrugalShard).options(**where).remote(part)


@contextmanager
def on_a_cluster(federation: FrugalFederation, machines: Machines) -> Iterator[Engine]:
    """A cluster with this federation's devices on it, for as long as rounds are played."""
    if federation.recipe.private is not None:
        raise SettingError(
            "Sums with noise are played on one machine, by the compiled or the reference engine; leave out epsilon and "
            "sigma, or the cluster."
        )
    starts = district_starts(federation.recipe, len(federation.spent))
    partitions, wanted = len(starts) - 1, machines.shards
    if wanted is not None and wanted > partitions:
        raise SettingError(
            f"{wanted} shards were asked for, but a round of this population is summed in {partitions} partitions; ask "
            f"for at most {partitions}."
        )
    cores = min(wanted or os.cpu_count() or 1, partitions)
    passing = federation.shared_profile.items.nbytes + 3 * (partitions + 2) * federation.item_vectors.nbytes
    with connected(machines.address or LOCAL, cores, 2 * passing) as ray:
        cluster = FrugalCluster(ray, federation, starts, wanted or min(cluster_cpus(ray), partitions))
        try:
            yield Engine(cluster.play, lambda: None)
        finally:
            cluster.close()
