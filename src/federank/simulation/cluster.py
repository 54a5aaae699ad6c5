"""The cluster engine: one population on the machines of a Ray cluster; the driver acts as the server.

Users are divided by number into partitions, and partitions over Ray actors (shards). A round:

  1. the driver selects the clients, and sends each shard the rows of the model that it lacks;
  2. shards train their clients, and return one sum per partition;
  3. the driver adds the sums in the order of partitions, and takes the server step.

So the number of shards does not change a bit of the result. A method adds its `Spread`: partitions, shards and sums.

The driver also holds a recovery state: the server's tables and all client states as of some round. It is renewed when
client states are collected (at an epoch's end or a checkpoint), every minute, and after every round if shards have no
state. If a machine is lost, its shards are restarted elsewhere, all return to the recovery state, and the rounds since
are repeated. Every random draw is keyed by its round, so the result has the same bits.

Ray is an extra (`pip install "federank[cluster]"`), imported only when a cluster is needed. Addresses:

    local               a cluster of this machine alone, started now and ended with the work
    ray://head:10001    another cluster, through Ray's client port
    head:6379           the same from a machine that is part of it

By default Ray waits minutes for a head that does not exist, and ends the program when a head goes away. So the head is
contacted before Ray is called, and again whenever a result is late.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from federank._numerics.arrays import IntVector, LongVector
from federank.errors import ClusterGone as ClusterGone
from federank.errors import SettingError
from federank.extras import need
from federank.simulation.federated import Engine, Machines

# Connecting to a cluster.


LOCAL = "local"
_SECONDS_TO_KNOCK = 5.0
SECONDS_BETWEEN_KNOCKS = 2.0
_LEAST_STORE_BYTES = 96 * 2**20


def ray_module() -> Any:
    """Ray, if it is installed."""
    # Disable Ray's usage reports.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    need("cluster", "A cluster")
    import ray

    return ray


def check_address(address: str) -> None:
    """Refuse an invalid address of a cluster."""
    if address != LOCAL and not re.fullmatch(r"(ray://)?[^\s:/]+:\d{1,5}", address):
        raise SettingError(
            f"{address!r} is not the address of a cluster; it can be {LOCAL}, ray://HOST:10001, or HOST:6379 on a "
            "machine that is part of the cluster."
        )


@contextmanager
def connected(address: str, cpus: int, store_bytes: int) -> Iterator[Any]:
    """Connect Ray to this cluster for the duration of the work, or use an existing connection.

    `cpus` and `store_bytes` (memory for messages between processes) apply if the cluster is started here.
    """
    check_address(address)
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address == LOCAL:
            store = max(_LEAST_STORE_BYTES, store_bytes)
            ray.init(LOCAL, num_cpus=cpus, include_dashboard=False, object_store_memory=store, **quiet)
        else:
            knock(address)
            ray.init(address, **quiet)
    except ClusterGone:
        raise
    except Exception as reason:  # Ray raises no specific exception for a cluster that does not start
        ray.shutdown()
        raise ClusterGone(
            f"The cluster {address} cannot be used: {first_line(reason)} Check the address, and that its machines have "
            "the same versions of Python, Ray and FedeRank as this one."
        ) from reason
    try:
        yield ray
    finally:
        ray.shutdown()


def knock(address: str) -> None:
    """Check that something listens at the head of a cluster."""
    host, port = address.removeprefix("ray://").rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_KNOCK).close()
    except (OSError, OverflowError) as reason:
        raise ClusterGone(
            f"No cluster answers at {address} ({reason}); start its head with `ray start --head`, or check the address."
        ) from reason


def answer(ray: Any, reference: Any) -> Any:
    """The result of a remote call; the head is watched while waiting."""
    while not ray.wait([reference], timeout=SECONDS_BETWEEN_KNOCKS)[0]:
        watch_head(ray)
    return ray.get(reference)


def watch_head(ray: Any) -> None:
    """Raise if the head of the cluster has gone away, before Ray ends this program."""
    if ray.util.client.ray.is_connected():
        return  # losing the client port raises ConnectionError anyway
    knock(ray.get_runtime_context().gcs_address)


def losses(ray: Any) -> tuple[type[Exception], ...]:
    """The exceptions for a lost worker or node in a cluster that still runs."""
    raised = ray.exceptions
    return (
        raised.RayActorError,
        raised.ObjectLostError,
        raised.NodeDiedError,
        raised.WorkerCrashedError,
        raised.OutOfMemoryError,
    )


def cluster_cpus(ray: Any) -> int:
    """Number of cores of the cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def first_line(reason: Exception) -> str:
    """The first line of an exception of Ray."""
    line = (str(reason).strip().splitlines() or [type(reason).__name__])[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."


# The interface of federations on a cluster.


Train = Callable[[list[IntVector]], Iterator[tuple[int, Any]]]
"""Trains the clients of each partition; returns the sums of all partitions with clients, by number, ascending."""


class Spread(Protocol):
    """A federation whose rounds are sums over partitions of its users: what its function `spread` makes."""

    shard_type: ClassVar[type[Any]]
    """Clients on one machine between two rounds, created from their `part`: `train(message, partitions)` returns the
    sum of the updates of each partition's clients; `states()` the states of its users by table, and `restore(states)`
    sets them, because another shard was lost."""

    @property
    def client_tables(self) -> tuple[str, ...]:
        """The tables of client states, which shards hold."""
        ...

    @property
    def partitions(self) -> LongVector:
        """The first user of each partition, and the end of the last one."""
        ...

    def part(self, partitions: LongVector) -> Any:
        """What a shard starts with: the data of these partitions' users."""
        ...

    def message(self, since: int) -> Any:
        """The part of the model that changed since this round; all of it for -1."""
        ...

    def play_round(self, train: Train) -> None:
        """Play one round; `train` returns the sums of given clients."""
        ...


def partition_starts(participants: IntVector, n_users: int, count: int) -> LongVector:
    """The first user of each of `count` partitions, and the end of the last one; participants are divided evenly."""
    starts = np.empty(count + 1, dtype=np.int64)
    starts[:-1] = participants[np.arange(count) * len(participants) // count]
    starts[0], starts[-1] = 0, n_users
    return starts


def by_partition(clients: IntVector, partitions: LongVector) -> list[IntVector]:
    """These clients, by partition; those of a partition keep their order."""
    of_client = np.searchsorted(partitions[1:-1], clients, side="right")
    ends = np.cumsum(np.bincount(of_client, minlength=len(partitions) - 1))
    return np.split(clients[np.argsort(of_client, kind="stable")], ends[:-1])


def in_their_places(values: Any, users: slice, n_users: int) -> Any:
    """A table of all users with the values of these; other rows are zero."""
    table = np.zeros((n_users, *values.shape[1:]), dtype=values.dtype)
    table[users] = values
    return table


# Federations with compiled clients: a recipe, profiles, and tables with a row per user.


class Part(NamedTuple):
    """What a shard starts with: all that is known of the users from `first` on, and of no others."""

    first: int
    n_users: int  # of the population
    federation: Any  # tables with a row per user have the rows of these users only


class UserShard:
    """Some of a federation's clients, on one machine. Kernels name users by number, so other users have rows of zeros.

    The federation has `receive` for a message and `sum_of` for the sum of some clients' updates.
    """

    def __init__(self, part: Part) -> None:
        federation = deepcopy(part.federation)  # arrays that come through Ray are read-only
        self._users = slice(part.first, part.first + len(federation.profiles.sizes))

        def placed(values: Any) -> Any:
            return in_their_places(values, self._users, part.n_users)

        starts = np.concatenate(([0], np.cumsum(placed(federation.profiles.sizes))))
        profiles = federation.profiles._replace(starts=starts)
        self._federation: Any = replace(_with_users(federation, placed), profiles=profiles)

    def train(self, message: Any, partitions: list[IntVector]) -> list[Any]:
        """The sums of these clients' updates, by partition."""
        self._federation.receive(message)
        return [self._federation.sum_of(np.array(clients)) for clients in partitions]

    def states(self) -> dict[str, Any]:
        """What these clients keep."""
        return {name: table[self._users] for name, table in self._federation.tables().clients.items()}

    def restore(self, states: dict[str, Any]) -> None:
        """Restore these states."""
        for name, table in states.items():
            getattr(self._federation, name)[self._users] = table


def part_of(federation: Any, first: int, last: int) -> Part:
    """The users from `first` to before `last`."""
    able = federation.recipe.participants
    own = _with_users(federation, lambda values: values[first:last])
    recipe = own.recipe._replace(participants=able[(able >= first) & (able < last)])
    profiles = federation.profiles.between(first, last)
    return Part(first, len(federation.profiles.sizes), replace(own, recipe=recipe, profiles=profiles))


def _with_users(federation: Any, change: Callable[[Any], Any]) -> Any:
    """The federation with all tables that have a row per user changed."""
    recipe = {name: change(getattr(federation.recipe, name)) for name in federation.recipe_of_users}
    tables = {name: change(getattr(federation, name)) for name in federation.tables_of_users}
    return replace(federation, recipe=federation.recipe._replace(**recipe), **tables)


_SECONDS_TO_HOLD = 60.0
_MOST_LOSSES = 5


class Cluster:
    """The driver's part of a federation whose clients are on shards."""

    def __init__(self, ray: Any, federation: Any, spread: Spread, shards: int) -> None:
        self._ray, self._federation, self._spread = ray, federation, spread
        partitions = len(spread.partitions) - 1
        self._bounds = [shard * partitions // shards for shard in range(shards + 1)]  # by partition
        self._looked_at = time.monotonic()
        self._hold()
        self._shards = [self._start(shard, cpus=1) for shard in range(shards)]
        self._received = [-1] * shards  # per shard: the round of its model
        self._refuse_other_versions()

    def play(self, federation: Any, rounds: int, _threads: int = 1) -> None:
        """Play this many rounds. Afterwards the server's tables are current; client states are after `bring_home`."""
        assert federation is self._federation
        self._reach(federation.round_number + rounds, gather=False)

    def bring_home(self) -> None:
        """Collect all client states as of this round."""
        if self._held_round != self._federation.round_number:
            self._reach(self._federation.round_number, gather=True)

    def close(self) -> None:
        """Stop the shards."""
        for shard in self._shards:
            self._ray.kill(shard)

    def _reach(self, goal: int, gather: bool) -> None:
        """Play until this round; repeat from the recovery state if a part of the cluster is lost."""
        try:
            for _ in range(_MOST_LOSSES):
                try:
                    while self._federation.round_number < goal:
                        self._spread.play_round(self._train)
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
        """Between two rounds, from time to time: check the head, and renew the recovery state if it is due."""
        now = time.monotonic()
        if now - self._looked_at > SECONDS_BETWEEN_KNOCKS:
            self._looked_at = now
            try:
                watch_head(self._ray)
            except ClusterGone:
                self._gather()  # shards outlive their head for a while, so their state can still be collected
                raise
        if not self._spread.client_tables or now - self._held_at > _SECONDS_TO_HOLD:
            self._gather()

    def _train(self, partitions: list[IntVector]) -> Iterator[tuple[int, Any]]:
        for shard, reference in self._distribute(partitions):
            yield from enumerate(answer(self._ray, reference), start=self._bounds[shard])

    def _distribute(self, partitions: list[IntVector]) -> list[tuple[int, Any]]:
        """Send each shard with clients their names and its model rows; returns references to their sums."""
        messages: dict[int, Any] = {}
        references = []
        for shard, actor in enumerate(self._shards):
            theirs = partitions[self._bounds[shard] : self._bounds[shard + 1]]
            if any(len(clients) for clients in theirs):
                since = self._received[shard]
                if since not in messages:
                    messages[since] = self._ray.put(self._spread.message(since))
                self._received[shard] = self._federation.round_number
                references.append((shard, actor.train.remote(messages[since], theirs)))
        return references

    def _gather(self) -> None:
        if self._spread.client_tables:
            parts = [answer(self._ray, reference) for reference in [shard.states.remote() for shard in self._shards]]
            for shard, states in enumerate(parts):
                for name in self._spread.client_tables:
                    getattr(self._federation, name)[self._users_of(shard)] = states[name]
        self._hold()

    def _hold(self) -> None:
        """Make this the recovery state. Client states are not copied: no round changes the federation's own."""
        self._held_round, self._held_at = self._federation.round_number, time.monotonic()
        tables = self._federation.tables().all
        self._held = {name: table.copy() for name, table in tables.items() if name not in self._spread.client_tables}

    def _go_back(self) -> None:
        for name, table in self._held.items():
            setattr(self._federation, name, table.copy())
        self._federation.round_number = self._held_round

    def _recover(self) -> None:
        """Return to the recovery state, and restart lost shards elsewhere."""
        self._go_back()
        watch_head(self._ray)  # a cluster without its head cannot start shards
        for shard, actor in enumerate(self._shards):
            users = self._users_of(shard)
            states = {name: getattr(self._federation, name)[users] for name in self._spread.client_tables}
            try:
                answer(self._ray, actor.restore.remote(states))
            except losses(self._ray):
                self._ray.kill(actor)
                # Reserving a core could wait for ever; without it a shard may be slow, but it runs.
                self._shards[shard] = self._start(shard, cpus=0)
        self._received = [-1] * len(self._shards)

    def _start(self, shard: int, cpus: int) -> Any:
        where = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        own = self._spread.partitions[self._bounds[shard] : self._bounds[shard + 1] + 1]
        return self._ray.remote(self._spread.shard_type).options(**where).remote(self._spread.part(own))

    def _users_of(self, shard: int) -> slice:
        starts = self._spread.partitions
        return slice(int(starts[self._bounds[shard]]), int(starts[self._bounds[shard + 1]]))

    def _refuse_other_versions(self) -> None:
        """Refuse machines with another version of FedeRank."""
        try:
            references = [shard.__ray_call__.remote(_version_of) for shard in self._shards]
            versions = {answer(self._ray, reference) for reference in references}
        except losses(self._ray) as reason:
            raise ClusterGone(
                f"The cluster's machines could not take the clients: {first_line(reason)} Is FedeRank installed on all "
                "of them, and is their memory large enough?"
            ) from reason
        if versions != {version("federank")}:
            raise ClusterGone(
                f"The cluster's machines have FedeRank {', '.join(sorted(versions))}, this one has "
                f"{version('federank')}; the same version is needed everywhere."
            )


def _version_of(_shard: Any) -> str:
    return version("federank")


@contextmanager
def opened(federation: Any, address: str = LOCAL, shards: int | None = None) -> Iterator[Cluster]:
    """A cluster with this federation's clients; `shards` defaults to all its cores."""
    spread = federation.spread()
    partitions = len(spread.partitions) - 1
    _refuse_more_than(partitions, shards, f"a round of this population is summed in {partitions} partitions")
    cores = min(shards or os.cpu_count() or 1, partitions)
    with connected(address, cores, _store_bytes(federation, spread)) as ray:
        cores = cluster_cpus(ray)
        _refuse_more_than(cores, shards, f"the cluster has {cores} cores")
        cluster = Cluster(ray, federation, spread, shards or min(cores, partitions))
        try:
            yield cluster
        finally:
            cluster.close()


@contextmanager
def on_a_cluster(federation: Any, machines: Machines) -> Iterator[Engine]:
    """The cluster engine of a federation."""
    with opened(federation, machines.address or LOCAL, machines.shards) as cluster:
        yield Engine(cluster.play, cluster.bring_home)


def _refuse_more_than(most: int, shards: int | None, why: str) -> None:
    if shards is not None and shards > most:
        raise SettingError(f"shards is {shards}, but {why}; choose at most {most}.")


def _store_bytes(federation: Any, spread: Spread) -> int:
    """Memory for messages between processes: histories and client states once, and a round's messages twice."""
    tables = federation.tables()
    states = sum(tables.clients[name].nbytes for name in spread.client_tables)
    model = sum(table.nbytes for table in tables.server.values())
    return int(1.5 * (federation.profiles.items.nbytes + 2 * states + 2 * (len(spread.partitions) + 1) * model))
