"""The cluster engine: one population over many machines, the driver in the place of the server.

The devices are spread over Ray actors (`shard.py`), district by district (`districts.py`). A round:

  1. distribution: the driver draws the clients and puts a Broadcast of the rows that changed into Ray's store, once;
  2. and 3. computation and transmission happen on the shards, with the compiled engine's kernels;
  4. aggregation: the driver folds the districts' summed Updates in, in the order of districts.

The driver also holds the state that a loss goes back to: the shared model and everybody's vectors as of some round. It
is renewed whenever the run is made whole (an epoch's end, a checkpoint), and every minute besides. When a machine is
lost, its shards are started elsewhere, all shards go back to that state, and the rounds since are played again; every
draw is named by its round, so the result is the same bits as if nothing had happened.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from federank.arrays import LongVector
from federank.engines.cluster.districts import clients_by_district
from federank.engines.cluster.machines import (
    SECONDS_BETWEEN_KNOCKS,
    ClusterGone,
    answer,
    answers,
    first_line,
    losses,
    watch_head,
)
from federank.engines.cluster.shard import Shard, part_of
from federank.engines.pairs.clients import room_for_sum
from federank.engines.pairs.federation import Federation
from federank.engines.pairs.kernels import fold_touched
from federank.engines.pairs.stepped import take_step
from federank.protocol.messages import Broadcast, Update

_SECONDS_TO_HOLD = 60.0
_MOST_LOSSES = 5


class Cluster:
    """The driver's half of a federation whose devices live on the shards of a cluster."""

    def __init__(self, ray: Any, federation: Federation, starts: LongVector, shards: int) -> None:
        self._ray = ray
        self._federation = federation
        self._starts = starts  # of districts, by user number
        districts = len(starts) - 1
        self._bounds = [shard * districts // shards for shard in range(shards + 1)]  # of shards, by district
        self._sum = room_for_sum(*federation.item_vectors.shape)
        self._looked_at = time.monotonic()
        self._hold()
        self._shards = [self._start(shard, cpus=1) for shard in range(shards)]
        self._send_everything()
        self._refuse_strangers()
        self._compile()

    def play(self, federation: Federation, rounds: int, threads: int = 1) -> None:
        """Play this many rounds. The shared model is current afterwards; vectors are once they are brought home."""
        assert federation is self._federation
        del threads  # a shard is one core's work
        self._reach(federation.round_number + rounds, whole=False)

    def bring_home(self) -> None:
        """Make the federation whole: everybody's vectors as of this round."""
        if self._held_round != self._federation.round_number:
            self._reach(self._federation.round_number, whole=True)

    def close(self) -> None:
        """End the shards."""
        for shard in self._shards:
            self._ray.kill(shard)

    def _reach(self, goal: int, whole: bool) -> None:
        """Play until this round, and again from the state that is held if a part of the cluster is lost."""
        try:
            for _ in range(_MOST_LOSSES):
                try:
                    while self._federation.round_number < goal:
                        self._play_round()
                        self._look_around()
                    if whole:
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
        districts = clients_by_district(self._federation.recipe, number, self._starts)
        broadcasts: dict[int, Any] = {}
        asked = []
        for shard, actor in enumerate(self._shards):
            theirs = districts[self._bounds[shard] : self._bounds[shard + 1]]
            if any(len(clients) for clients in theirs):
                seen = self._seen[shard]
                if seen not in broadcasts:
                    broadcasts[seen] = self._ray.put(self._changed_since(seen))
                self._seen[shard] = number
                asked.append(actor.train.remote(broadcasts[seen], theirs))
        return asked

    def _changed_since(self, seen: int) -> Broadcast:
        """The rows that a shard lacks which was last told of the model as a round found it."""
        federation = self._federation
        items = np.flatnonzero(self._changed >= seen).astype(np.int32)
        vectors = federation.item_vectors[items, : federation.recipe.factors]
        number = federation.round_number
        return Broadcast(number, number, items, vectors, federation.item_biases[items])

    def _fold(self, update: Update) -> None:
        """Aggregation of one district's sum, by the compiled engine's kernel."""
        federation, total, items = self._federation, self._sum, update.items
        total.vectors[items, : federation.recipe.factors] = update.vectors
        total.biases[items] = update.biases
        total.touched[: len(items)] = items
        fold_touched(federation.run, total, len(items))
        self._changed[items] = federation.round_number

    def _step(self, answered: Iterator[list[Update]]) -> None:
        """Aggregation by a step that needs the sum of all districts and moves every row."""
        n_items, factors = len(self._federation.item_biases), self._federation.recipe.factors
        vectors, biases = np.zeros((n_items, factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
        rows = 0
        for update in (update for updates in answered for update in updates):
            vectors[update.items] += update.vectors
            biases[update.items] += update.biases
            rows += len(update.items)
        if rows:
            self._changed[:] = self._federation.round_number
        take_step(self._federation, (vectors, biases) if rows else None)

    def _gather(self) -> None:
        parts = list(answers(self._ray, [shard.vectors.remote() for shard in self._shards]))
        for shard, vectors in enumerate(parts):
            self._federation.user_vectors[slice(*self._people(shard))] = vectors
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
        asked = [actor.restore.remote(vectors[slice(*self._people(shard))]) for shard, actor in enumerate(self._shards)]
        for shard, reference in enumerate(asked):
            try:
                answer(self._ray, reference)
            except losses(self._ray):
                self._ray.kill(self._shards[shard])
                # Asking for a core of its own could mean waiting for ever: beside others it is slow, but goes on.
                self._shards[shard] = self._start(shard, cpus=0)
        self._send_everything()

    def _start(self, shard: int, cpus: int) -> Any:
        where = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        return self._ray.remote(Shard).options(**where).remote(part_of(self._federation, *self._people(shard)))

    def _people(self, shard: int) -> tuple[int, int]:
        """The first person of a shard, and the first of the next."""
        return int(self._starts[self._bounds[shard]]), int(self._starts[self._bounds[shard + 1]])

    def _compile(self) -> None:
        """Draw clients and fold in nothing, so that whatever needs compiling is compiled before the first round."""
        clients_by_district(self._federation.recipe, self._federation.round_number, self._starts)
        nothing = np.zeros(0, dtype=np.float32)
        self._fold(Update(np.zeros(0, dtype=np.int32), nothing.reshape(0, self._federation.recipe.factors), nothing))

    def _refuse_strangers(self) -> None:
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
