"""Simulation of FPL: the state of server and clients between two rounds, and the engines.

`item_*` belongs to the server, `user_vectors` and `profiles` to the clients; they are stored separately too. Rows are
padded (_numerics/rows.py); the padding stays zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.compiling import at_once
from federank._numerics.rows import padded_width
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.method import Client, UserVector
from federank.federation.rng import (
    DROPOUT,
    USER_FACTORS,
    first_items,
    first_word,
    happens,
    normal_rows,
    words_wrap_around,
)
from federank.methods.fpl import kernels
from federank.methods.fpl.kernels import Histories, Run, Sums
from federank.methods.fpl.method import (
    FPL,
    HOME_ROUND,
    HOME_STEPS,
    FPLModel,
    FPLRules,
    FPLState,
    FPLSums,
    FPLUpdate,
)
from federank.methods.fpl.settings import FPLSettings, Recipe, clients_of_round, recipe_for
from federank.privacy.ledger import Ledger
from federank.privacy.population import (
    AS_HISTORIES_ARE,
    Choices,
    all_shared_items,
    coins,
    shared_profile_of,
    shared_profiles_of_all,
)
from federank.simulation.cluster import (
    Part,
    Spread,
    Train,
    UserShard,
    by_partition,
    on_a_cluster,
    part_of,
    partition_starts,
)
from federank.simulation.federated import EngineName, Open, Tables, in_this_process


@dataclass(eq=False)
class Federation:
    """Server and clients of a simulation between two rounds."""

    tables_of_users: ClassVar = ("user_vectors",)
    recipe_of_users: ClassVar = ("triples", "pi")

    method: FPL
    recipe: Recipe
    profiles: Profiles  # shared profiles: the histories, unless policies say otherwise
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix
    mean: FloatMatrix  # Adam's moments; no columns for a plain server
    square: FloatMatrix
    round_number: int = 0

    @classmethod
    def established(cls, settings: FPLSettings, recipe: Recipe, histories: Profiles, n_items: int) -> Federation:
        """A federation before its first round, with initial vectors."""
        scale, factors, seed = settings.initial_scale, settings.factors, settings.seed
        width, n_users = padded_width(factors), len(histories.starts) - 1
        start = settings.initial_biases
        vectors, biases = first_items(n_items, factors, seed=seed, scale=scale, biases=start, width=width)
        users = normal_rows(n_users, factors, seed=seed, purpose=USER_FACTORS, scale=scale, width=width)
        method = settings.method(n_items)
        none = np.zeros((n_items, method.moments), dtype=np.float32)
        profiles = all_shared_items(recipe.shared_profile, histories)
        return cls(method, recipe, profiles, vectors, biases, users, none, none.copy())

    @cached_property
    def histories(self) -> Histories:
        """The clients' profiles for the compiled engine."""
        return kernels.histories_of(self.profiles, len(self.item_biases), self.recipe)

    @property
    def run(self) -> Run:
        """The data of the compiled engine's kernels."""
        width = (0,) * self.item_vectors.shape[1]
        return Run(self.recipe, self.histories, self.item_vectors, self.item_biases, self.user_vectors, width)

    @property
    def rounds_per_epoch(self) -> int:
        """Number of rounds per epoch."""
        return self.recipe.rounds_per_epoch

    @property
    def steps_per_round(self) -> float:
        """Mean number of triples per round."""
        return self.recipe.pairs_per_round

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines of this federation."""
        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change during training."""
        moments = {"mean": self.mean, "square": self.square} if self.method.moments else {}
        server = {"item_vectors": self.item_vectors, "item_biases": self.item_biases} | moments
        return Tables(server, {"user_vectors": self.user_vectors})

    @property
    def state(self) -> FPLState:
        """The server's state without padding; its vectors are a copy."""
        steps = np.full(self.method.clocks, self.round_number, dtype=np.int64)
        vectors = self.item_vectors[:, : self.recipe.factors].copy()
        return FPLState(vectors, self.item_biases, self.mean, self.square, steps)

    def take(self, state: FPLState) -> None:
        """Set the server's state; tables are updated in place, for other holders of a reference."""
        self.item_vectors[:, : self.recipe.factors] = state.vectors
        self.item_biases[:] = state.biases
        self.mean, self.square = state.mean, state.square

    def take_step(self, sums: FPLSums) -> None:
        """The server's part of a round."""
        self.take(self.method.server_update(self.state, sums))
        self.round_number += 1

    def added(self, updates: Iterable[FPLUpdate]) -> FPLSums:
        """The sum of these updates."""
        sums: FPLSums = self.method.empty()
        for update in updates:
            self.method.add(sums, update)
            sums.count += 1
        return sums

    def aggregate(self, updates: Iterable[FPLUpdate]) -> None:
        """The server's part of a round: add all updates, or none if one is invalid."""
        self.take_step(self.added(wire.checked(update, FPLUpdate, self.method) for update in updates))

    def spread(self) -> Spread:
        """The federation on a cluster."""
        return FPLSpread(self)

    def receive(self, message: Changes) -> None:
        """Set the round, and rows of the model that have changed."""
        self.round_number = message.round_number
        self.item_vectors[message.items, : self.recipe.factors] = message.vectors
        self.item_biases[message.items] = message.biases

    def sum_of(self, clients: IntVector) -> FPLUpdate:
        """The sum of these clients' updates in this round, as they are sent; their vectors move."""
        recipe, run, workspace = self.recipe, self.run, self._workspace
        if recipe.clip == 0:
            return kernels.sum_of_updates(run, self.round_number, clients, workspace)
        sums, sent = self.method.empty(), np.zeros(self.method.n_items, dtype=np.bool_)
        for position, client in enumerate(clients):
            update = kernels.sum_of_updates(run, self.round_number, clients[position : position + 1], workspace)
            if len(update.items):  # a client that drops out sends neither row nor noise
                noisy = clip_and_noise(self.method, recipe, int(client), self.round_number, update)
                self.method.add(sums, noisy)
                sent[noisy.items] = True
        items = np.flatnonzero(sent).astype(np.int32)
        return FPLUpdate(items, sums.vectors[items], sums.biases[items])

    @cached_property
    def _workspace(self) -> Any:
        return kernels.workspace_for_clients(*self.item_vectors.shape)

    def why_diverged(self) -> str:
        """The setting to blame if factors are no longer finite."""
        rate = float(self.recipe.learning_rate)
        return f"learning_rate {rate:g} is too large for this data; try a smaller one."


# The compiled engine: prepares the kernels' data, and calls the kernel for the recipe.


_PAIRS_PER_SHARD = 1024
_MOST_SHARDS = 32
_MOST_SUM_BYTES = 2**30


def play_compiled(federation: Federation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds; the number of threads does not change the result."""
    recipe, run, begin = federation.recipe, federation.run, federation.round_number
    n_items, width = federation.item_vectors.shape
    if recipe.only_adds and recipe.one_by_one:
        _play_noised(federation, rounds, adds=True)
    elif recipe.only_adds and recipe.clients_per_round == 1 and np.all(recipe.triples[recipe.participants] == 1):
        kernels.play_single_pairs(run, begin, rounds)
    else:
        sums = kernels.workspace_for_sums(shard_count(recipe, n_items, width), n_items, width)
        if not recipe.only_adds:
            if not rounds:
                next_sum(federation, sums, rounds=0)  # no client, but the kernel is compiled now
            for _ in range(rounds):
                federation.take_step(next_sum(federation, sums, threads))
            return
        thread_team = kernels.new_thread_team(len(federation.user_vectors), min(threads, len(sums.counts)))
        at_once(lambda worker: kernels.play_rounds(run, sums, thread_team, worker, begin, rounds), thread_team.workers)
    federation.round_number += rounds


def shard_count(recipe: Recipe, n_items: int, width: int) -> int:
    """Number of shards of a round's clients: it depends on the work, never on the number of threads."""
    fitting = _MOST_SUM_BYTES // (n_items * (4 * width + 16))
    pairs = recipe.pairs_per_round // _PAIRS_PER_SHARD
    most = int(max(1, min(_MOST_SHARDS, recipe.clients_per_round, pairs, fitting)))
    return 1 << (most.bit_length() - 1)  # a power of two, to divide evenly among two, four, eight workers


def next_sum(federation: Federation, sums: Sums, threads: int = 1, rounds: int = 1) -> FPLSums:
    """The clients' part of the next round, for any server step. Each shard of `sums` has its own memory."""
    run, number = federation.run, federation.round_number
    if run.recipe.one_by_one:
        aggregate: FPLSums = federation.method.empty()
        table, aggregate.count = _play_noised(federation, rounds, adds=False)
        aggregate.vectors, aggregate.biases = table[:, :-1], table[:, -1]
        return aggregate
    clients = clients_of_round(run.recipe, number, len(run.user_vectors))[: None if rounds else 0]
    shards = len(sums.counts)
    workers, updates = min(threads, shards), [FPLUpdate()] * shards

    def work(worker: int) -> None:
        buffers = kernels.new_buffers(len(run.width))
        for s in range(worker, shards, workers):
            theirs = clients[s * len(clients) // shards : (s + 1) * len(clients) // shards]
            workspace = kernels.ClientWorkspace(buffers, kernels.sum_of_shard(sums, s))
            updates[s] = kernels.sum_of_updates(run, number, theirs, workspace)

    at_once(work, workers)
    return federation.added(update for update in updates if len(update.items))


def _play_noised(federation: Federation, rounds: int, *, adds: bool) -> tuple[FloatMatrix, int]:
    """Rounds with clipped, noisy or weighted updates; the last sum, and its number of updates."""
    n_items, width = federation.item_vectors.shape
    sums = np.empty((n_items, federation.recipe.factors + 1), dtype=np.float32)
    own = kernels.sum_of_shard(kernels.workspace_for_sums(1, n_items, width), 0)
    return sums, kernels.play_noised(federation.run, own, sums, adds, federation.round_number, rounds)


# Compiled fold-in of many users: `FPL.fold_in` of method.py, as a round in which nothing is sent.


def home_vectors(method: FPL, model: FPLModel, histories: Profiles, users: IntVector, steps: int) -> FloatMatrix:
    """Fold in these users: a vector for each, learnt from its full history with fixed item factors."""
    sizes, factors = histories.sizes[users], method.factors
    able = users[(sizes > 0) & (sizes < method.n_items)]
    vectors = np.zeros((len(histories.sizes), padded_width(factors)), dtype=np.float32)
    if len(able):
        settings = _settings_of(method, triples=steps, order="as-in-code", most_triples=None)
        recipe = recipe_for(settings, histories.sizes, method.n_items, np.zeros(len(vectors)))
        items = np.zeros((method.n_items, vectors.shape[1]), dtype=np.float32)
        items[:, :factors] = model.vectors[:, :factors]
        none = np.zeros((0, 0), dtype=np.float32)
        shared = items, np.array(model.biases), vectors, none, none
        Federation(method, recipe._replace(dropout=1.0), histories, *shared, HOME_ROUND).sum_of(able)
    return vectors[users, :factors]


def _settings_of(method: FPL, **changes: Any) -> FPLSettings:
    """The settings of a simulation of this method."""
    return FPLSettings(**{name: getattr(method, name) for name in FPLRules.__dataclass_fields__} | changes)


# The reference engine: the method's own functions. Slow; the compiled engine is tested against it.


class InMemoryClients:
    """All clients in memory, each with its vector and its ledger."""

    def __init__(self, federation: Federation) -> None:
        self.method, self.recipe, n_users = federation.method, federation.recipe, len(federation.user_vectors)
        self.vectors = [vector.copy() for vector in federation.user_vectors[:, : self.method.factors]]
        self.shared_profiles = [
            shared_profile_of(self.recipe.shared_profile, federation.profiles, user) for user in range(n_users)
        ]
        self.ledgers = [Ledger() for _ in self.shared_profiles]

    def choose(self, round_number: int) -> IntVector:
        """The clients of this round."""
        clients: IntVector = clients_of_round(self.recipe, round_number, len(self.vectors))
        return clients

    def train(self, clients: IntVector, broadcast: FPLModel, round_number: int) -> Iterator[FPLUpdate]:
        """The weighted updates that arrive; clients that drop out have trained too."""
        arrived = list(self._updates(clients, broadcast, round_number))
        total = sum(self.recipe.weights[user] for user, _ in arrived) if len(self.recipe.weights) else 0.0
        for user, update in arrived:
            if total:
                weight = np.float32(self.recipe.weights[user] / total)
                update = FPLUpdate(update.items, weight * update.vectors, weight * update.biases)
            yield update

    def _updates(self, clients: IntVector, broadcast: FPLModel, round_number: int) -> Iterator[tuple[int, FPLUpdate]]:
        recipe, seed = self.recipe, self.recipe.seed
        for user in map(int, clients):
            taken, state = self.shared_profiles[user], UserVector(self.vectors[user])
            withheld = taken.profile[~taken.allowed]
            client = Client(seed, user, round_number, taken.profile, state=state, withheld=withheld)
            pi = 1.0 if taken.lifelong else float(recipe.pi[user])
            result = replace(self.method, pi=pi, triples=int(recipe.triples[user])).client_update(client, broadcast)
            self.vectors[user] = result.state.vector
            with words_wrap_around():
                lost = happens(first_word(seed, user, DROPOUT, round_number, 0), recipe.dropout)
            if not lost:
                assert result.positives is not None
                self.ledgers[user].record(round_number, taken, result.positives, result.negatives)
                yield user, clip_and_noise(self.method, recipe, user, round_number, result.update)


def clip_and_noise(method: FPL, recipe: Recipe, user: int, round_number: int, update: FPLUpdate) -> FPLUpdate:
    """The update as sent: clipped and noised, if the recipe says so. With noise it has rows of all items."""
    if recipe.clip > 0:
        update = method.bounded(update, recipe.clip)
    if recipe.deviation == 0:
        return update
    table = np.empty((method.n_items, method.factors + 1), dtype=np.float32)
    kernels.fill_with_noise(table, recipe.seed, user, round_number)
    table *= np.float32(recipe.deviation)
    table[update.items] += np.column_stack((update.vectors, update.biases))
    return FPLUpdate(np.arange(method.n_items, dtype=np.int32), table[:, :-1], table[:, -1])


def play_reference(federation: Federation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds with the functions of method.py."""
    fleet = InMemoryClients(federation)
    for _ in range(rounds):
        number, broadcast = federation.round_number, federation.method.broadcast(federation.state)
        federation.aggregate(fleet.train(fleet.choose(number), wire.read_only(broadcast), number))
    if rounds:
        federation.user_vectors[:, : federation.recipe.factors] = fleet.vectors


# Clients of a real server: all users of a data set, simulated.


class FPLClients:
    """Vectors, histories and draws of all users, played by the compiled engine's kernel."""

    def __init__(self, method: FPL, seed: int, histories: Profiles, choices: Choices) -> None:
        settings = _settings_of(method, triples=method.triples, clients_per_round="all", seed=seed)
        shared_profiles = shared_profiles_of_all(choices, seed, histories, method.n_items)
        own = choices.where(policy.triples or 0 for policy in choices.kinds)
        recipe = recipe_for(settings, histories.sizes, method.n_items, coins(choices), None, shared_profiles, own)
        self.federation = Federation.established(settings, recipe, histories, method.n_items)
        self._histories, self._at_home = histories, np.flatnonzero(choices.at_home).astype(np.int32)
        self._of: FPLModel | None = None
        self.federation.sum_of(np.zeros(0, dtype=np.int32))  # no client, but the kernel is compiled now

    @property
    def states(self) -> dict[str, wire.Array]:
        """All clients' vectors."""
        return {"vector": self.federation.user_vectors[:, : self.federation.recipe.factors]}

    def update(self, user: int, round_number: int, broadcast: FPLModel) -> FPLUpdate:
        """One client's update in this round; its vector changes."""
        if self._of is None or self._of.vectors is not broadcast.vectors:
            self._of = broadcast
            everything = np.arange(len(broadcast.biases), dtype=np.int32)
            self.federation.receive(Changes(round_number, everything, broadcast.vectors, broadcast.biases))
        self.federation.round_number = round_number
        return self.federation.sum_of(np.array([user], dtype=np.int32))

    def factors(self, broadcast: FPLModel) -> FloatMatrix:
        """The trained vectors, or local fold-ins for users whose policy withholds items."""
        vectors: FloatMatrix = self.states["vector"].copy()
        if len(self._at_home):
            users = self._at_home
            vectors[users] = home_vectors(self.federation.method, broadcast, self._histories, users, HOME_STEPS)
        return vectors


# On a cluster (simulation/cluster.py): what shards receive, and how their sums become the next model.


MAX_PARTITIONS = 32
"""Partitions are fixed ranges of users whose updates are summed first, on any machine."""


class Changes(NamedTuple):
    """Rows of the model that a shard lacks."""

    round_number: int
    items: IntVector
    vectors: FloatMatrix
    biases: FloatVector


class FPLSpread:
    """The driver's part of FPL on a cluster."""

    shard_type: ClassVar = UserShard
    client_tables: ClassVar[tuple[str, ...]] = Federation.tables_of_users

    def __init__(self, federation: Federation) -> None:
        recipe, (n_items, width) = federation.recipe, federation.item_vectors.shape
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
        self._federation, n_users, able = federation, len(federation.user_vectors), len(recipe.participants)
        as_compiled = shard_count(recipe, n_items, width)
        all_users = recipe.clients_per_round == able and recipe.online >= 1.0 and not len(recipe.trace)
        count = as_compiled if all_users and as_compiled > 1 else min(MAX_PARTITIONS, able)
        self.partitions = partition_starts(recipe.participants, n_users, count)
        self._sum = kernels.sum_of_shard(kernels.workspace_for_sums(1, n_items, width), 0)
        self._changed = np.full(n_items, -1, dtype=np.int64)  # per item: the round that last changed it

    def part(self, partitions: LongVector) -> Part:
        """What a shard starts with. The server chooses the clients; shards receive their names."""
        part = part_of(self._federation, int(partitions[0]), int(partitions[-1]))
        allowed, starts = self._federation.histories.allowed, self._federation.profiles.starts
        theirs = allowed[starts[partitions[0]] : starts[partitions[-1]]] if len(allowed) else allowed
        profile, recipe = AS_HISTORIES_ARE._replace(allowed=theirs), part.federation.recipe
        recipe = recipe._replace(shared_profile=profile, trace=np.zeros((0, part.n_users), dtype=np.bool_))
        return part._replace(federation=replace(part.federation, recipe=recipe))

    def message(self, since: int) -> Changes:
        """The rows that have changed since a round."""
        federation = self._federation
        items = np.flatnonzero(self._changed >= since).astype(np.int32)
        vectors = federation.item_vectors[items, : federation.recipe.factors]
        return Changes(federation.round_number, items, vectors, federation.item_biases[items])

    def play_round(self, train: Train) -> None:
        """One round."""
        federation, recipe = self._federation, self._federation.recipe
        clients = clients_of_round(recipe, federation.round_number, len(federation.user_vectors))
        updates = (update for _, update in train(by_partition(clients, self.partitions)) if len(update.items))
        if not recipe.only_adds:
            sums = federation.added(updates)
            if sums.count:
                self._changed[:] = federation.round_number
            federation.take_step(sums)
            return
        for update in updates:  # as the compiled engine adds its shards' sums
            total, items = self._sum, update.items
            total.vectors[items, : recipe.factors], total.biases[items] = update.vectors, update.biases
            total.touched[: len(items)] = items
            kernels.fold_touched(federation.run, total, len(items))
            self._changed[items] = federation.round_number
        federation.round_number += 1


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play_compiled),
    "reference": in_this_process(play_reference),
    "cluster": on_a_cluster,
}
