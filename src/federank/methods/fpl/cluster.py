"""The cluster engine: one population over many machines, the driver in the place of the server.

The clients are spread over Ray actors (shards), partition by partition. A round:

  1. distribution: the driver draws the clients and puts a Broadcast of the rows that changed into Ray's store, once;
  2. and 3. computation and transmission happen on the shards, with the compiled engine's kernels;
  4. aggregation: the driver folds the partitions' summed Updates in, in the order of partitions.

The driver also holds the state that a loss goes back to: the shared model and everyone's vectors as of some round. It
is renewed whenever the run is complete (an epoch's end, a checkpoint), and every minute besides. When a machine is
lost, its shards are started elsewhere, all shards go back to that state, and the rounds since are played again; every
draw is named by its round, so the result is the same bits as if nothing had happened.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NamedTuple

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
from federank.simulation.cluster import (
    LOCAL,
    SECONDS_BETWEEN_KNOCKS,
    ClusterGone,
    answer,
    answers,
    cluster_cpus,
    connected,
    first_line,
    losses,
    watch_head,
)

# A shard: some of a population's devices, on one machine of a cluster.


class Broadcast(NamedTuple):
    """Rows of the model that a shard lacks."""

    round_number: int
    items: IntVector
    vectors: FloatMatrix
    biases: FloatVector


class Part(NamedTuple):
    """What a shard starts with: all that a federation knows of the users from `first` on, and of no others."""

    first: int
    n_users: int  # of the population
    n_items: int
    recipe: Recipe  # what is one value per user is of these users only
    starts: LongVector
    items: IntVector  # what they take part with: their histories, unless their policies say otherwise
    allowed: np.ndarray[Any, np.dtype[np.bool_]]  # which of these may ever be sent; empty where all of them may
    vectors: FloatMatrix


def part_of(federation: Federation, first: int, last: int) -> Part:
    """The users from `first` to just before `last`."""
    recipe, histories = federation.recipe, federation.histories
    starts, n_users = histories.starts, len(federation.user_vectors)
    able = recipe.participants[(recipe.participants >= first) & (recipe.participants < last)]
    # The server decides who is online: a shard receives its clients.
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
    """Devices of one machine between two rounds."""

    def __init__(self, part: Part) -> None:
        users = slice(part.first, part.first + len(part.vectors))
        width, n_users, n_items = part.vectors.shape[1], part.n_users, part.n_items
        starts = np.zeros(n_users + 1, dtype=np.int64)
        # Anyone who comes after keeps zeros: their histories are never asked for.
        starts[users.start : users.stop + 1] = part.starts
        recipe = part.recipe._replace(
            triples=_alone(part.recipe.triples, users, n_users),
            pi=_alone(part.recipe.pi, users, n_users),
            participants=np.array(part.recipe.participants),  # what arrives through Ray cannot be written to
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
            _alone(part.vectors, users, n_users),
            (0,) * width,
        )
        self._workspace = workspace_for_clients(n_items, width)
        self._sum_clients(0, np.zeros(0, dtype=np.int32))  # no one, but the kernel is compiled now

    def version(self) -> str:
        """Which FedeRank is installed here."""
        return version("federank")

    def train(self, broadcast: Broadcast, partitions: list[IntVector]) -> list[FPLUpdate]:
        """Computation and transmission on these clients; the sum of what they send, partition by partition."""
        self._run.item_vectors[broadcast.items, : self._run.recipe.factors] = broadcast.vectors
        self._run.item_biases[broadcast.items] = broadcast.biases
        sum_clients = self._sum_noised if self._run.recipe.clip > 0 else self._sum_clients
        return [sum_clients(broadcast.round_number, np.array(clients)) for clients in partitions]

    def vectors(self) -> FloatMatrix:
        """The vectors of its users."""
        vectors: FloatMatrix = self._run.user_vectors[self._users]
        return vectors

    def restore(self, vectors: FloatMatrix) -> None:
        """Go back to these vectors: a shard elsewhere was lost, and rounds are played again."""
        self._run.user_vectors[self._users] = vectors

    def _sum_clients(self, round_number: int, clients: IntVector) -> FPLUpdate:
        return sum_of_updates(self._run, round_number, clients, self._workspace)

    def _sum_noised(self, round_number: int, clients: IntVector) -> FPLUpdate:
        """The same where Updates are clipped and noisy: device by device, with the noise that each draws for itself."""
        recipe, n_items = self._run.recipe, len(self._run.item_biases)
        vectors, biases = np.zeros((n_items, recipe.factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
        sent = np.zeros(n_items, dtype=np.bool_)
        for position, client in enumerate(clients):
            update = self._sum_clients(round_number, clients[position : position + 1])
            if len(update.items):  # a device that drops out sends no row, and no noise
                noisy = clip_and_noise(recipe, int(client), round_number, update, n_items)
                vectors[noisy.items] += noisy.vectors
                biases[noisy.items] += noisy.biases
                sent[noisy.items] = True
        items = np.flatnonzero(sent).astype(np.int32)
        return FPLUpdate(items, vectors[items], biases[items])


def _alone(values: Any, users: slice, n_users: int) -> Any:
    """The values of these users in their places of a table of all."""
    table = np.zeros((n_users, *values.shape[1:]), dtype=values.dtype)
    table[users] = values
    return table


# Partitions: fixed ranges of users whose updates are summed first, wherever these users are simulated.


MAX_PARTITIONS = 32


def partitions_of(recipe: Recipe, n_users: int, n_items: int, width: int) -> LongVector:
    """Where each partition begins, by user number, and where the last one ends."""
    able = len(recipe.participants)
    as_compiled = shard_count(recipe, n_items, width)
    all_users = recipe.clients_per_round == able and recipe.online >= 1.0 and not len(recipe.trace)
    count = as_compiled if all_users and as_compiled > 1 else min(MAX_PARTITIONS, able)
    starts = np.empty(count + 1, dtype=np.int64)
    starts[:-1] = recipe.participants[np.arange(count) * able // count]
    starts[0], starts[-1] = 0, n_users
    return starts


def clients_by_partition(recipe: Recipe, round_number: int, starts: LongVector) -> list[IntVector]:
    """Distribution: the round's clients, partition by partition, each partition's in the order of the round."""
    chosen = clients_of_round(recipe, round_number, int(starts[-1]))
    partition = np.searchsorted(starts, chosen, side="right") - 1
    ends = np.cumsum(np.bincount(partition, minlength=len(starts) - 1))
    return np.split(chosen[np.argsort(partition, kind="stable")], ends[:-1])


_SECONDS_TO_HOLD = 60.0
_MOST_LOSSES = 5


class Cluster:
    """The driver's half of a federation whose devices live on the shards of a cluster."""

    def __init__(self, ray: Any, federation: Federation, starts: LongVector, shards: int) -> None:
        self._ray = ray
        self._federation = federation
        self._starts = starts  # of partitions, by user number
        partitions = len(starts) - 1
        self._bounds = [shard * partitions // shards for shard in range(shards + 1)]  # of shards, by partition
        self._sum = workspace_for_sum(*federation.item_vectors.shape)
        self._looked_at = time.monotonic()
        self._hold()
        self._shards = [self._start(shard, cpus=1) for shard in range(shards)]
        self._send_everything()
        self._refuse_unknown()
        self._compile()

    def play(self, federation: Federation, rounds: int, _threads: int = 1) -> None:
        """Play this many rounds. The shared model is current afterwards; vectors are once they are brought home."""
        assert federation is self._federation
        self._reach(federation.round_number + rounds, gather=False)

    def bring_home(self) -> None:
        """Bring all vectors as of this round."""
        if self._held_round != self._federation.round_number:
            self._reach(self._federation.round_number, gather=True)

    def close(self) -> None:
        """End the shards."""
        for shard in self._shards:
            self._ray.kill(shard)

    def _reach(self, goal: int, gather: bool) -> None:
        """Play until this round, and again from the state that is held if a part of the cluster is lost."""
        try:
            for _ in range(_MOST_LOSSES):
                try:
                    while self._federation.round_number < goal:
                        self._play_round()
                        self._look_around()
                    if gather:
                        self._gather()
                    return
                except losses(self._ray) as loss:
                    last_loss = loss
                    self._recover()
            raise ClusterGone(
                f"Parts of the cluster were lost {_MOST_LOSSES} times before round {goal:,} was reached. The last "
                f"time: {first_line(last_loss)} Is there enough memory on its machines?"
            )
        except (ClusterGone, ConnectionError, self._ray.exceptions.RaySystemError) as gone:
            self._go_back()
            raise ClusterGone(f"The cluster went away: {first_line(gone)}") from gone

    def _look_around(self) -> None:
        """Between two rounds, now and then: is the head still there, and is it time to hold another state?"""
        now = time.monotonic()
        if now - self._looked_at > SECONDS_BETWEEN_KNOCKS:
            self._looked_at = now
            try:
                watch_head(self._ray)
            except ClusterGone:
                self._gather()  # shards outlive their head for a while: nothing that was played need be lost
                raise
        if now - self._held_at > _SECONDS_TO_HOLD:
            self._gather()

    def _play_round(self) -> None:
        if self._federation.recipe.only_adds:
            for updates in answers(self._ray, self._distribute()):
                for update in updates:
                    self._fold(update)
            self._federation.round_number += 1
        else:
            self._step(answers(self._ray, self._distribute()))

    def _distribute(self) -> list[Any]:
        """Hand every shard that has clients their names and a Broadcast; references to the Updates they will answer."""
        number = self._federation.round_number
        partitions = clients_by_partition(self._federation.recipe, number, self._starts)
        broadcasts: dict[int, Any] = {}
        references = []
        for shard, actor in enumerate(self._shards):
            theirs = partitions[self._bounds[shard] : self._bounds[shard + 1]]
            if any(len(clients) for clients in theirs):
                seen = self._seen[shard]
                if seen not in broadcasts:
                    broadcasts[seen] = self._ray.put(self._changed_since(seen))
                self._seen[shard] = number
                references.append(actor.train.remote(broadcasts[seen], theirs))
        return references

    def _changed_since(self, seen: int) -> Broadcast:
        """The rows that a shard lacks that last received the model as of a round."""
        federation = self._federation
        items = np.flatnonzero(self._changed >= seen).astype(np.int32)
        vectors = federation.item_vectors[items, : federation.recipe.factors]
        number = federation.round_number
        return Broadcast(number, items, vectors, federation.item_biases[items])

    def _fold(self, update: FPLUpdate) -> None:
        """Aggregation of one partition's sum, by the compiled engine's kernel."""
        federation, total, items = self._federation, self._sum, update.items
        total.vectors[items, : federation.recipe.factors] = update.vectors
        total.biases[items] = update.biases
        total.touched[: len(items)] = items
        fold_touched(federation.run, total, len(items))
        self._changed[items] = federation.round_number

    def _step(self, results: Iterator[list[FPLUpdate]]) -> None:
        """Aggregation by a step that needs the sum of all partitions and moves every row."""
        n_items, factors = len(self._federation.item_biases), self._federation.recipe.factors
        vectors, biases = np.zeros((n_items, factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
        rows = 0
        for update in (update for updates in results for update in updates):
            vectors[update.items] += update.vectors
            biases[update.items] += update.biases
            rows += len(update.items)
        if rows:
            self._changed[:] = self._federation.round_number
        take_step(self._federation, (vectors, biases) if rows else None)

    def _gather(self) -> None:
        parts = list(answers(self._ray, [shard.vectors.remote() for shard in self._shards]))
        for shard, vectors in enumerate(parts):
            self._federation.user_vectors[slice(*self._users_of(shard))] = vectors
        self._hold()

    def _hold(self) -> None:
        """This is the state that a loss goes back to; the vectors are the federation's own, which no round changes."""
        federation = self._federation
        self._held_round, self._held_at = federation.round_number, time.monotonic()
        self._held = {name: table.copy() for name, table in federation.tables().server.items()}

    def _go_back(self) -> None:
        federation = self._federation
        for name, table in federation.tables().server.items():
            table[:] = self._held[name]
        federation.round_number = self._held_round

    def _send_everything(self) -> None:
        """No shard knows any row of the model."""
        self._seen = [-1] * len(self._shards)
        self._changed = np.full(len(self._federation.item_biases), -1, dtype=np.int64)

    def _recover(self) -> None:
        """Everyone goes back to the state that is held; shards that are gone are started elsewhere."""
        self._go_back()
        watch_head(self._ray)  # without its head a cluster starts nothing any more
        vectors = self._federation.user_vectors
        references = [
            actor.restore.remote(vectors[slice(*self._users_of(shard))]) for shard, actor in enumerate(self._shards)
        ]
        for shard, reference in enumerate(references):
            try:
                answer(self._ray, reference)
            except losses(self._ray):
                self._ray.kill(self._shards[shard])
                # Asking for a core of its own could mean waiting for ever: beside others it is slow, but goes on.
                self._shards[shard] = self._start(shard, cpus=0)
        self._send_everything()

    def _start(self, shard: int, cpus: int) -> Any:
        where = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        return self._ray.remote(Shard).options(**where).remote(part_of(self._federation, *self._users_of(shard)))

    def _users_of(self, shard: int) -> tuple[int, int]:
        """The first person of a shard, and the first of the next."""
        return int(self._starts[self._bounds[shard]]), int(self._starts[self._bounds[shard + 1]])

    def _compile(self) -> None:
        """Draw clients and fold in nothing, so that whatever needs compiling is compiled before the first round."""
        clients_by_partition(self._federation.recipe, self._federation.round_number, self._starts)
        nothing = np.zeros(0, dtype=np.float32)
        self._fold(FPLUpdate(np.zeros(0, dtype=np.int32), nothing.reshape(0, self._federation.recipe.factors), nothing))

    def _refuse_unknown(self) -> None:
        """Machines that cannot run this very FedeRank would give other results, or none."""
        try:
            versions = set(answers(self._ray, [shard.version.remote() for shard in self._shards]))
        except losses(self._ray) as reason:
            raise ClusterGone(
                f"The cluster's machines could not take the devices: {first_line(reason)} Is FedeRank installed on all "
                "of them, and is their memory large enough?"
            ) from reason
        if versions != {version("federank")}:
            raise ClusterGone(
                f"The cluster's machines have FedeRank {', '.join(sorted(versions))}, this one has "
                f"{version('federank')}; the same version is needed everywhere."
            )


# Opening a cluster: what cannot be is refused before anything is started, then devices are spread over shards.


@contextmanager
def opened(federation: Federation, address: str = LOCAL, shards: int | None = None) -> Iterator[Cluster]:
    """A cluster with this federation's devices on it, for as long as rounds are played; `shards`: all its cores."""
    starts = _partitions(federation)
    partitions = len(starts) - 1
    _refuse_more_than(partitions, shards, f"a round of this population is summed in {partitions} partitions")
    cores = min(shards or os.cpu_count() or 1, partitions)
    with connected(address, cores, _store_bytes(federation, partitions)) as ray:
        cores = cluster_cpus(ray)
        _refuse_more_than(cores, shards, f"the cluster has {cores} cores")
        cluster = Cluster(ray, federation, starts, shards or min(cores, partitions))
        try:
            yield cluster
        finally:
            cluster.close()


def _partitions(federation: Federation) -> LongVector:
    recipe = federation.recipe
    if len(np.unique(recipe.participants)) < len(recipe.participants):
        raise SettingError(
            "The cluster engine needs people with a device each; a centralised method draws them by activity, from one "
            "place: use --engine compiled."
        )
    if len(recipe.weights):
        raise SettingError(
            "The cluster engine adds Updates up as they are; for the weights mean or profile use --engine compiled."
        )
    return partitions_of(recipe, len(federation.user_vectors), *federation.item_vectors.shape)


def _refuse_more_than(most: int, shards: int | None, why: str) -> None:
    if shards is not None and shards > most:
        raise SettingError(f"{shards} shards were asked for, but {why}; ask for at most {most}.")


def _store_bytes(federation: Federation, partitions: int) -> int:
    """Room for what passes between processes: histories and vectors once, and a round's messages twice."""
    held = federation.profiles.items.nbytes + 2 * federation.user_vectors.nbytes
    return int(1.5 * (held + 2 * (partitions + 1) * federation.item_vectors.nbytes))
