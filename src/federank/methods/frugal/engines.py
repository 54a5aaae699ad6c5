"""The engines beside the compiled one (simulation.py): the reference, and the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector, LongVector
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.method import Client
from federank.federation.secure import secure_message, simulated_chances
from federank.methods.frugal.kernels import RoundContext
from federank.methods.frugal.protocol import check_frugal_update, dense
from federank.methods.frugal.records import FrugalModel, SummedMessages
from federank.methods.frugal.simulation import (
    FrugalFederation,
    Partitions,
    partitions_of,
    play,
    play_with,
    published_sum,
    restricted,
    sum_partitions,
    workspace_for,
)
from federank.privacy.ledger import Ledger
from federank.privacy.population import shared_profile_of
from federank.secagg.ring import in_ring
from federank.simulation.cluster import Train, by_partition, on_a_cluster
from federank.simulation.federated import EngineName, Open, in_this_process

# The reference engine: the method's functions for each client, plain Python and slow. For a few dozen users.


class FrugalClients:
    """Clients that share no array with the server, each with its own ledger."""

    def __init__(self, federation: FrugalFederation) -> None:
        self._federation = federation
        users = range(len(federation.sent))
        self.shared_profiles = [
            shared_profile_of(federation.shared_profiles, federation.profiles, user) for user in users
        ]
        self.ledgers = [Ledger() for _ in users]

    def train(self, clients: IntVector, model: FrugalModel) -> Iterator[Any]:
        """The uploads of these clients in the next round."""
        federation = self._federation
        method, number, stage = federation.method, federation.round_number, federation.stage
        for user in clients.tolist():
            sent, allowed = int(federation.sent[user]), int(federation.schedule.uploads[user])
            assert sent < allowed, "a client that has spent its uploads is not asked"
            taken = self.shared_profiles[user]
            client = Client(method.seed, user, number, taken.profile, sent=sent, stage=stage)
            self.ledgers[user].record_message(number, taken, sent + 1, allowed)
            yield method.client_update(client, model).update


def play_reference(federation: FrugalFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    if federation.rounds_on_average:
        raise SettingError("rounding is mean, and the reference engine rounds every message; leave rounding out.")
    clients = FrugalClients(federation)
    for _ in range(rounds):
        asked, answering = federation.invite()
        updates = dict(zip(asked.tolist(), clients.train(asked, wire.read_only(federation.model)), strict=True))
        federation.finish(asked, added_up(federation, {user: updates[user] for user in answering.tolist()}))


def added_up(federation: FrugalFederation, updates: Mapping[int, Any]) -> SummedMessages:
    """The sums of these clients' uploads in the next round, each checked; with noise where there is any."""
    method, items, stage = federation.method, federation.items, federation.stage
    if federation.is_private:
        total = np.zeros(len(items) * (method.columns if stage else 1), dtype=np.uint32)
        part = replace(method, n_items=len(items))
        for user, update in updates.items():
            chances = simulated_chances(method.seed, user, federation.round_number, len(total))
            total += in_ring(secure_message(part, stage, update, chances))
        return published_sum(federation, total, len(updates))
    columns = method.columns if stage else 1
    sums = SummedMessages(np.zeros((len(items), columns)), np.zeros((columns, columns)), len(updates))
    for update in updates.values():
        check_frugal_update(update, columns - 1, len(items))
        message = dense(update)
        np.add(sums.residuals, message.residuals, out=sums.residuals)
        np.add(sums.squares, message.squares, out=sums.squares)
    return sums


# On a cluster (simulation/cluster.py), shards sum their clients' uploads with the same kernels, and keep nothing.


class FrugalPart(NamedTuple):
    """What a shard is started with: its users' shared profiles, by their numbers in the full population."""

    partitions: LongVector  # where its partitions begin, and where the last one ends
    starts: LongVector
    items: IntVector
    n_items: int


class Message(NamedTuple):
    """What a round's clients need."""

    items: IntVector  # that its uploads cover
    context: RoundContext


class FrugalShard:
    """Some of a population's clients, on one machine of a cluster."""

    def __init__(self, part: FrugalPart) -> None:
        first, last = int(part.partitions[0]), int(part.partitions[-1])
        starts = np.zeros(last + 1, dtype=np.int64)
        starts[first:] = part.starts
        self._profiles, self._starts = Profiles(starts, np.array(part.items)), np.array(part.partitions)
        self._n_items = part.n_items

    def train(self, message: Message, partitions: list[IntVector]) -> list[Any]:
        """Sums of what these clients send of these items: own parts, squares, counts."""
        # Arrays that come through Ray are read-only, and kernels are compiled once for arrays of one kind.
        items = np.array(message.items)
        context = RoundContext._make(
            np.array(part) if isinstance(part, np.ndarray) else part for part in message.context
        )
        workspace = workspace_for(len(context.gram), len(items), self._starts)
        sum_partitions(context, restricted(self._profiles, items, self._n_items), np.concatenate(partitions), workspace)
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
        if federation.is_private:
            raise SettingError(
                "The cluster engine does not play rounds with noise; leave out epsilon and sigma, or use the engine "
                "compiled."
            )
        self._federation = federation
        self.partitions = partitions_of(federation)
        self._message: Message | None = None

    def part(self, partitions: LongVector) -> FrugalPart:
        """What a shard starts with."""
        profiles = self._federation.shared_profile.between(int(partitions[0]), int(partitions[-1]))
        return FrugalPart(partitions, *profiles, self._federation.method.n_items)

    def message(self, _since: int) -> Message | None:
        """All of the model: every row has changed."""
        return self._message

    def play_round(self, train: Train) -> None:
        """One round."""

        def fill(context: RoundContext, _: Profiles, users: IntVector, sums: Partitions) -> None:
            self._message = Message(self._federation.items, context)
            for empty in (sums.own, sums.squares, sums.messages):
                empty[:] = 0
            for partition, (own, squares, messages) in train(by_partition(users, self.partitions)):
                sums.own[partition], sums.squares[partition], sums.messages[partition] = own, squares, messages

        play_with(self._federation, 1, fill)


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play),
    "reference": in_this_process(play_reference),
    "cluster": on_a_cluster,
}
"""The engines that play rounds of Frugal, by name."""
