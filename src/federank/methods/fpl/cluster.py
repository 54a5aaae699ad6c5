"""FPL on a cluster (simulation/cluster.py): its shards, and how their sums become the next model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.methods.fpl.communication import clients_of_round
from federank.methods.fpl.kernels import (
    Run,
    fold_touched,
    histories_of,
    sum_of_updates,
    workspace_for_clients,
    workspace_for_sum,
)
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.privacy import clip_and_noise
from federank.methods.fpl.settings import Recipe
from federank.methods.fpl.simulation import Federation, shard_count, take_step
from federank.privacy.population import AS_HISTORIES_ARE
from federank.simulation.cluster import Train, in_their_places, partition_starts

# A shard: some of the clients, on one machine of a cluster.


class Broadcast(NamedTuple):
    """Rows of the model that a shard lacks."""

    round_number: int
    items: IntVector
    vectors: FloatMatrix
    biases: FloatVector


class Part(NamedTuple):
    """What a shard starts with: the data of users from `first` on."""

    first: int
    n_users: int  # of the population
    n_items: int
    recipe: Recipe  # one value per user of this shard
    starts: LongVector
    items: IntVector  # shared profiles: the histories, unless policies say otherwise
    allowed: np.ndarray[Any, np.dtype[np.bool_]]  # which of these items may be sent; empty: all
    vectors: FloatMatrix


def part_of(federation: Federation, first: int, last: int) -> Part:
    """The users from `first` to just before `last`."""
    recipe, histories = federation.recipe, federation.histories
    starts, n_users = histories.starts, len(federation.user_vectors)
    able = recipe.participants[(recipe.participants >= first) & (recipe.participants < last)]
    # The server chooses the clients; shards receive them.
    none_away = np.zeros((0, n_users), dtype=np.bool_)
    entries = slice(starts[first], starts[last])
    return Part(
        first,
        n_users,
        len(federation.item_biases),
        recipe._replace(
            triples=recipe.triples[first:last],
            pi=recipe.pi[first:last],
            participants=able,
            trace=none_away,
            shared_profile=AS_HISTORIES_ARE,
        ),
        starts[first : last + 1] - starts[first],
        histories.items[entries],
        histories.allowed[entries] if len(histories.allowed) else histories.allowed,
        federation.user_vectors[first:last],
    )


class Shard:
    """The clients of one machine between two rounds."""

    def __init__(self, part: Part) -> None:
        users = slice(part.first, part.first + len(part.vectors))
        width, n_users, n_items = part.vectors.shape[1], part.n_users, part.n_items
        starts = np.zeros(n_users + 1, dtype=np.int64)
        # Users after the last keep zeros: their histories are never read.
        starts[users.start : users.stop + 1] = part.starts
        recipe = part.recipe._replace(
            triples=in_their_places(part.recipe.triples, users, n_users),
            pi=in_their_places(part.recipe.pi, users, n_users),
            participants=np.array(part.recipe.participants),  # arrays that come through Ray are read-only
            trace=np.array(part.recipe.trace),
            shared_profile=AS_HISTORIES_ARE,
        )
        histories = histories_of(Profiles(starts, np.array(part.items)), n_items, recipe)
        self._users = users
        self._run = Run(
            recipe,
            histories._replace(allowed=np.array(part.allowed)),
            np.zeros((n_items, width), dtype=np.float32),
            np.zeros(n_items, dtype=np.float32),
            in_their_places(part.vectors, users, n_users),
            (0,) * width,
        )
        self._workspace = workspace_for_clients(n_items, width)
        self._sum_clients(0, np.zeros(0, dtype=np.int32))  # no client, but the kernel is compiled now

    def train(self, broadcast: Broadcast, partitions: list[IntVector]) -> list[FPLUpdate]:
        """Computation and transmission of these clients; the sum of their updates, by partition."""
        self._run.item_vectors[broadcast.items, : self._run.recipe.factors] = broadcast.vectors
        self._run.item_biases[broadcast.items] = broadcast.biases
        sum_clients = self._sum_noised if self._run.recipe.clip > 0 else self._sum_clients
        return [sum_clients(broadcast.round_number, np.array(clients)) for clients in partitions]

    def states(self) -> dict[str, FloatMatrix]:
        """The vectors of this shard's users."""
        return {"user_vectors": self._run.user_vectors[self._users]}

    def restore(self, states: dict[str, FloatMatrix]) -> None:
        """Restore these vectors."""
        self._run.user_vectors[self._users] = states["user_vectors"]

    def _sum_clients(self, round_number: int, clients: IntVector) -> FPLUpdate:
        return sum_of_updates(self._run, round_number, clients, self._workspace)

    def _sum_noised(self, round_number: int, clients: IntVector) -> FPLUpdate:
        """The same for clipped and noisy updates: client by client, with each client's own noise."""
        recipe, n_items = self._run.recipe, len(self._run.item_biases)
        vectors, biases = np.zeros((n_items, recipe.factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
        sent = np.zeros(n_items, dtype=np.bool_)
        for position, client in enumerate(clients):
            update = self._sum_clients(round_number, clients[position : position + 1])
            if len(update.items):  # a client that drops out sends neither row nor noise
                noisy = clip_and_noise(recipe, int(client), round_number, update, n_items)
                vectors[noisy.items] += noisy.vectors
                biases[noisy.items] += noisy.biases
                sent[noisy.items] = True
        items = np.flatnonzero(sent).astype(np.int32)
        return FPLUpdate(items, vectors[items], biases[items])


# Partitions: fixed ranges of users whose updates are summed first, on any machine.


MAX_PARTITIONS = 32


def partitions_of(recipe: Recipe, n_users: int, n_items: int, width: int) -> LongVector:
    """The first user of each partition, and the end of the last one."""
    able = len(recipe.participants)
    as_compiled = shard_count(recipe, n_items, width)
    all_users = recipe.clients_per_round == able and recipe.online >= 1.0 and not len(recipe.trace)
    count = as_compiled if all_users and as_compiled > 1 else min(MAX_PARTITIONS, able)
    return partition_starts(recipe.participants, n_users, count)


def clients_by_partition(recipe: Recipe, round_number: int, starts: LongVector) -> list[IntVector]:
    """Distribution: the round's clients by partition, in the order of the round."""
    chosen = clients_of_round(recipe, round_number, int(starts[-1]))
    partition = np.searchsorted(starts, chosen, side="right") - 1
    ends = np.cumsum(np.bincount(partition, minlength=len(starts) - 1))
    return np.split(chosen[np.argsort(partition, kind="stable")], ends[:-1])


class FPLSpread:
    """The driver's part of FPL on a cluster."""

    shard_type: ClassVar = Shard
    kept: ClassVar[tuple[str, ...]] = ("user_vectors",)

    def __init__(self, federation: Federation) -> None:
        recipe = federation.recipe
        if len(np.unique(recipe.participants)) < len(recipe.participants):
            raise SettingError(
                "The cluster engine needs each user once; user_draw activity counts a user once per interaction. "
                "Use the engine compiled."
            )
        if len(recipe.weights):
            raise SettingError(
                "The cluster engine adds updates without weights; for the weights mean or profile use the engine "
                "compiled."
            )
        self._federation = federation
        self.partitions = partitions_of(recipe, len(federation.user_vectors), *federation.item_vectors.shape)
        self._sum = workspace_for_sum(*federation.item_vectors.shape)
        self._changed = np.full(
            len(federation.item_biases), -1, dtype=np.int64
        )  # per item: the round that last changed it
        # No client and no row, but compile before the first round.
        clients_by_partition(recipe, federation.round_number, self.partitions)
        nothing = np.zeros(0, dtype=np.float32)
        self._add(FPLUpdate(np.zeros(0, dtype=np.int32), nothing.reshape(0, recipe.factors), nothing))

    def part(self, partitions: LongVector) -> Part:
        """What a shard starts with."""
        return part_of(self._federation, int(partitions[0]), int(partitions[-1]))

    def message(self, since: int) -> Broadcast:
        """The rows that have changed since a round."""
        federation = self._federation
        items = np.flatnonzero(self._changed >= since).astype(np.int32)
        vectors = federation.item_vectors[items, : federation.recipe.factors]
        return Broadcast(federation.round_number, items, vectors, federation.item_biases[items])

    def play_round(self, train: Train) -> None:
        """One round."""
        federation = self._federation
        sums = train(clients_by_partition(federation.recipe, federation.round_number, self.partitions))
        if not federation.recipe.only_adds:
            self._step(update for _, update in sums)
            return
        for _, update in sums:
            self._add(update)
        federation.round_number += 1

    def _add(self, update: FPLUpdate) -> None:
        """Aggregation of one partition's sum, by the compiled engine's kernel."""
        federation, total, items = self._federation, self._sum, update.items
        total.vectors[items, : federation.recipe.factors] = update.vectors
        total.biases[items] = update.biases
        total.touched[: len(items)] = items
        fold_touched(federation.run, total, len(items))
        self._changed[items] = federation.round_number

    def _step(self, updates: Iterator[FPLUpdate]) -> None:
        """Aggregation for a server step that needs the sum of all partitions and changes every row."""
        n_items, factors = len(self._federation.item_biases), self._federation.recipe.factors
        vectors, biases = np.zeros((n_items, factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
        rows = 0
        for update in updates:
            vectors[update.items] += update.vectors
            biases[update.items] += update.biases
            rows += len(update.items)
        if rows:
            self._changed[:] = self._federation.round_number
        take_step(self._federation, (vectors, biases) if rows else None)
