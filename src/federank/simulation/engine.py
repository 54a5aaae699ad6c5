"""Simulation of a method on the interface: one process, one client after the other.

Server and clients exchange real messages: a broadcast is a read-only copy, updates are checked as on a server, and
bytes are counted from the wire format. With `uploads = secure`, updates are clipped, rounded, summed and noised as the
two servers do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np

from federank._numerics.arrays import IntVector, LongVector
from federank.data.interactions import Interactions, Profiles
from federank.errors import BadMessage, Diverged
from federank.federation import wire
from federank.federation.method import NO_ITEMS, NO_RATINGS, Client, ClientResult, FederatedMethod
from federank.federation.rng import HELPER, SERVER
from federank.federation.schedule import Schedule, arriving, selected
from federank.federation.secure import aggregate_from, length_of, secure_message, simulated_chances, simulated_noise
from federank.privacy.population import AS_HISTORIES_ARE, SharedProfiles, all_shared_items
from federank.simulation.cluster import Spread, Train, by_partition, on_a_cluster, partition_starts
from federank.simulation.federated import EngineName, Open, Tables, in_this_process, traffic

Watch = Callable[[int, Any, ClientResult], None]
"""Called with each update that arrives: its user, the broadcast, and the client's result."""
_UPLOADS, _ROWS_UP, _BYTES_UP, _DOWNLOADS, _ROWS_DOWN, _BYTES_DOWN = range(6)
RING_BYTES = 4
"""Bytes of one number of a secure upload."""


class RoundSum(NamedTuple):
    """The sum of a round's uploads."""

    aggregate: Any
    total: LongVector  # of secure uploads, in the ring; else empty


class Simulation:
    """Server and clients between two rounds."""

    def __init__(
        self, method: FederatedMethod, schedule: Schedule, shared_profiles: SharedProfiles, data: Interactions
    ) -> None:
        """A federation before its first round."""
        self.method, self.schedule, self.shared_profiles = method, schedule, shared_profiles
        self.profiles: Profiles = all_shared_items(shared_profiles, data.profiles)
        self._histories, self._ratings = data.profiles, data.ratings
        self.held_out: Profiles | None = None
        """Items of each user that are never drawn as negatives, for the setting `leak`."""
        self.first = 0  # number of the first user of a shard
        self.round_number = 0
        self.watch: Watch | None = None
        self.sent: IntVector = np.zeros(data.n_users, dtype=np.int32)
        self.counted = np.zeros(6, dtype=np.int64)
        self.trained = np.zeros(data.n_users, dtype=np.int8)  # whether a client has a state
        # A checkpoint restores tables as attributes of these names (training.py).
        self._keep(method.initial_state())
        for name, array in self._no_state().items():
            setattr(self, f"clients/{name}", np.zeros((data.n_users, *array.shape), array.dtype))

    def _no_state(self) -> dict[str, wire.Array]:
        kind = self.method.records.client
        return {} if kind is None else wire.values(wire.zeros(kind, self.method))

    @property
    def state(self) -> Any:
        """The server's state."""
        kind = self.method.records.state
        return kind(**{part.name: getattr(self, f"server/{part.name}") for part in wire.arrays(kind)})

    def _keep(self, state: Any) -> None:
        if not all(np.isfinite(array).all() for array in wire.values(state).values()):
            raise Diverged(f"In round {self.round_number + 1:,} the model stopped being finite: {self.why_diverged()}")
        for name, array in wire.values(wire.checked(state, self.method.records.state, self.method)).items():
            setattr(self, f"server/{name}", array)

    @property
    def client_states(self) -> dict[str, wire.Array]:
        """The clients' states between rounds: one row each."""
        return {name: getattr(self, f"clients/{name}") for name in self._no_state()}

    def broadcast(self) -> Any:
        """What clients download now."""
        kind = self.method.records.sent
        return wire.read_only(wire.checked(self.method.broadcast(self.state), kind, self.method))

    def received(self, user: int, broadcast: Any) -> Any:
        """What this client downloads: the broadcast, unless the method has another one for each client."""
        own, kind = self.method.broadcast_for(user, broadcast, self.state), self.method.records.sent
        return broadcast if own is broadcast else wire.read_only(wire.checked(own, kind, self.method))

    def client(self, user: int, round_number: int) -> Client:
        """A client's view of this round."""
        state = state_of(self.method, self.client_states, user) if self.trained[user] else None
        held_out = NO_ITEMS if self.held_out is None else self.held_out.of(user)
        items, ratings = self.profiles.of(user), NO_RATINGS
        if self._ratings is not None:
            here = slice(self._histories.starts[user], self._histories.starts[user + 1])
            ratings = self._ratings[here][np.isin(self._histories.of(user), items)]
        return Client(self.method.seed, self.first + user, round_number, items, ratings, state, held_out=held_out)

    def play_round(self) -> None:
        """Play one round; a round without uploads changes nothing."""
        clients, broadcast = self.begin()
        stage = self.method.stage(self.state)
        self.finish(stage, [self.sum(clients, broadcast, stage)])

    def begin(self) -> tuple[IntVector, Any]:
        """The clients of the next round, and their broadcast. Uploads that get lost are sent too."""
        clients, broadcast = selected(self.schedule, self.round_number, self.sent), self.broadcast()
        self._count(_DOWNLOADS, len(clients), broadcast, wire.size_of_rows(broadcast))
        self.sent[clients] += 1
        return clients, broadcast

    def sum(self, clients: IntVector, broadcast: Any, stage: int) -> RoundSum:
        """The sum of these clients' uploads; their states change."""
        method, number = self.method, self.round_number
        summed = self._nothing(stage)
        arrives = set(arriving(self.schedule, number, clients + self.first).tolist())
        for user in clients.tolist():
            mine = self.received(user, broadcast)
            result = self._train(user, mine)
            if user + self.first not in arrives:
                continue
            summed.aggregate.count += 1
            self._count(_UPLOADS, 1, result.update, self._upload_size(result.update, len(summed.total)))
            if self.watch is not None:
                self.watch(user, mine, result)
            if method.uploads == "secure":
                chances = simulated_chances(method.seed, user + self.first, number, len(summed.total))
                np.add(summed.total, secure_message(method, stage, result.update, chances), out=summed.total)
            else:
                method.add(summed.aggregate, result.update)
        return summed

    def _nothing(self, stage: int) -> RoundSum:
        length = length_of(self.method, stage) if self.method.uploads == "secure" else 0
        return RoundSum(self.method.empty(stage), np.zeros(length, dtype=np.int64))

    def finish(self, stage: int, sums: Iterable[RoundSum]) -> None:
        """The server's part of a round, from the sums of all clients."""
        method, (aggregate, total) = self.method, self._nothing(stage)
        arrays = wire.values(aggregate)
        for one in sums:
            aggregate.count += one.aggregate.count
            np.add(total, one.total, out=total)
            for name, part in wire.values(one.aggregate).items():
                np.add(arrays[name], part, out=arrays[name])
        if count := aggregate.count:
            if method.uploads == "secure":
                for server in (SERVER, HELPER):
                    total += simulated_noise(method.seed, self.round_number, method.noise, len(total), server)
                aggregate = aggregate_from(method, stage, total)
            aggregate.count, aggregate.enrolled = count, len(self.schedule.participants)
            self._keep(method.server_update(self.state, aggregate))
        self.round_number += 1

    def _train(self, user: int, broadcast: Any) -> ClientResult:
        """A client's part of a round."""
        method = self.method
        result = method.client_update(self.client(user, self.round_number), broadcast)
        if not isinstance(result, ClientResult):
            raise BadMessage(
                f"client_update of {method.name} returned a {type(result).__name__}; a ClientResult is needed."
            )
        update = wire.checked(result.update, method.records.update, method)
        if method.clip and method.uploads == "plain":
            update = method.bounded(update, method.clip)
        if method.records.client is not None:
            state = wire.checked(result.state, method.records.client, method)
            for name, table in self.client_states.items():
                table[user] = getattr(state, name)
            self.trained[user] = 1
        return result._replace(update=update)

    def _upload_size(self, update: Any, length: int) -> int:
        return wire.size(update) if self.method.uploads == "plain" else RING_BYTES * length

    def _count(self, first: int, messages: int, record: Any, size: int) -> None:
        rows = max((len(part) for part in wire.values(record).values() if part.ndim), default=1)
        self.counted[first : first + 3] += np.array([1, rows, size]) * messages

    # The interface that training needs (federated.py).

    @property
    def rounds_per_epoch(self) -> int:
        """1: an epoch is a round, in which every online client takes part."""
        return 1

    @property
    def steps_per_round(self) -> float:
        """Mean number of interactions per round."""
        return max(1.0, float(self.profiles.sizes[self.schedule.participants].sum()) * self.schedule.online)

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """All engines call the method's functions. Shards of a cluster get one broadcast for all."""
        engines: dict[EngineName, Open] = {"compiled": in_this_process(play)}
        return engines | {"cluster": on_a_cluster} if self.method.one_broadcast() else engines

    def spread(self) -> Spread:
        """The federation on a cluster."""
        return SimulationSpread(self)

    def part(self, first: int, last: int) -> Simulation:
        """The users from `first` to before `last` alone, for a shard."""
        part = copy(self)
        part.first, part.watch = first, None
        part.profiles, part._histories = (table.between(first, last) for table in (self.profiles, self._histories))
        part.held_out = None if self.held_out is None else self.held_out.between(first, last)
        if self._ratings is not None:
            part._ratings = self._ratings[self._histories.starts[first] : self._histories.starts[last]]
        no_users = np.zeros(0, dtype=np.int32)
        part.schedule = self.schedule._replace(participants=no_users, uploads=no_users)
        part.shared_profiles = AS_HISTORIES_ARE
        for name in SimulationSpread.client_tables_of(self):
            setattr(part, name, getattr(self, name)[first:last])
        part.sent, part.counted = no_users, np.zeros_like(self.counted)
        return part

    def tables(self) -> Tables:
        """The arrays that change during training."""
        server = {f"server/{name}": array for name, array in wire.values(self.state).items()}
        clients = {f"clients/{name}": table for name, table in self.client_states.items()}
        return Tables(server | {"counted": self.counted}, clients | {"sent": self.sent, "trained": self.trained})

    def why_diverged(self) -> str:
        """What to blame if the server's numbers are no longer finite."""
        return "the method's steps are too large for this data; try smaller ones."

    def communication(self) -> dict[str, Any]:
        """Uploads, downloads, rows and bytes so far: totals and per round."""
        counted, rounds = self.counted.tolist(), max(1, self.round_number)
        return {
            "rounds": self.round_number,
            "uploads": counted[_UPLOADS],
            "downloads": counted[_DOWNLOADS],
            "up": traffic(counted[_ROWS_UP], counted[_BYTES_UP], rounds),
            "down_dense": traffic(counted[_ROWS_DOWN], counted[_BYTES_DOWN], rounds),
        }


def play(simulation: Simulation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds."""
    for _ in range(rounds):
        simulation.play_round()


# On a cluster (cluster.py), shards call the method's functions too.


MAX_PARTITIONS = 32


class SimulationShard:
    """Some of the clients, on one machine of a cluster."""

    def __init__(self, part: Simulation) -> None:
        self._simulation, self._client_tables = part, SimulationSpread.client_tables_of(part)
        for name in self._client_tables:  # arrays that come through Ray are read-only
            setattr(part, name, np.array(getattr(part, name)))

    def train(self, message: tuple[int, int, Any], partitions: list[IntVector]) -> list[tuple[RoundSum, LongVector]]:
        """The sums of these clients' uploads, and their communication."""
        simulation, answers = self._simulation, []
        simulation.round_number, stage, broadcast = message
        for clients in partitions:
            simulation.counted = np.zeros_like(simulation.counted)
            summed = simulation.sum(clients - np.int32(simulation.first), wire.read_only(broadcast), stage)
            answers.append((summed, simulation.counted))
        return answers

    def states(self) -> dict[str, wire.Array]:
        """The states of its clients."""
        return {name: getattr(self._simulation, name) for name in self._client_tables}

    def restore(self, states: dict[str, wire.Array]) -> None:
        """Restore these states."""
        for name, table in states.items():
            setattr(self._simulation, name, np.array(table))


class SimulationSpread:
    """The driver's part of a simulation on a cluster."""

    shard_type: ClassVar = SimulationShard

    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self.client_tables = simulation, self.client_tables_of(simulation)
        able, n_users = simulation.schedule.participants, len(simulation.sent)
        self.partitions = partition_starts(able, n_users, min(MAX_PARTITIONS, len(able)))

    @staticmethod
    def client_tables_of(simulation: Simulation) -> tuple[str, ...]:
        """The tables of client states."""
        states = simulation.client_states
        return (*(f"clients/{name}" for name in states), "trained") if states else ()

    def part(self, partitions: LongVector) -> Simulation:
        """What a shard starts with."""
        return self._simulation.part(int(partitions[0]), int(partitions[-1]))

    def message(self, _since: int) -> tuple[int, int, Any]:
        """The round, its stage and the full broadcast."""
        simulation = self._simulation
        return simulation.round_number, simulation.method.stage(simulation.state), simulation.broadcast()

    def play_round(self, train: Train) -> None:
        """One round."""
        simulation = self._simulation
        clients, _ = simulation.begin()
        sums = []
        for _, (summed, counted) in train(by_partition(clients, self.partitions)):
            sums.append(summed)
            simulation.counted += counted
        simulation.finish(simulation.method.stage(simulation.state), sums)


def state_of(method: FederatedMethod, tables: Mapping[str, wire.Array], user: int) -> Any:
    """One client's state, from the tables of all clients."""
    kind = method.records.client
    return None if kind is None else kind(**{name: table[user].copy() for name, table in tables.items()})
