"""Simulation of FPL: the state of server and clients between two rounds, and the engines.

`item_*` belongs to the server, `user_vectors` and `profiles` to the clients; they are stored separately too. Rows are
padded (_numerics/rows.py); the padding stays zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.compiling import at_once, compiled
from federank._numerics.rows import load_row, padded_width, store_row
from federank.data.interactions import Profiles
from federank.federation import wire
from federank.federation.method import Client, UserVector
from federank.federation.rng import (
    DROPOUT,
    USER_FACTORS,
    first_items,
    happens,
    normal_rows,
    words,
    words_wrap_around,
)
from federank.methods.fpl.bpr import pair_slope, user_gradient
from federank.methods.fpl.communication import clients_of_round
from federank.methods.fpl.kernels import (
    Histories,
    Run,
    Sums,
    histories_of,
    new_buffers,
    new_thread_team,
    play_clients,
    play_rounds,
    play_single_pairs,
    sum_of_shard,
    sum_of_updates,
    workspace_for_clients,
    workspace_for_sums,
)
from federank.methods.fpl.method import (
    FPL,
    HOME_ROUND,
    HOME_STEPS,
    NO_BITS,
    Draw,
    FPLModel,
    FPLRules,
    FPLState,
    FPLSums,
    FPLUpdate,
    Profile,
    draw_pair,
)
from federank.methods.fpl.privacy import clip_and_noise, noised_sum, play_noised
from federank.methods.fpl.settings import FPLSettings, Recipe, choose_clients, recipe_for
from federank.privacy.ledger import Ledger
from federank.privacy.population import Choices, coins, shared_profile_of, shared_profiles_of_all
from federank.simulation.cluster import Spread, on_a_cluster
from federank.simulation.federated import EngineName, Open, Tables, in_this_process


@dataclass(eq=False)
class Federation:
    """Server and clients of a simulation between two rounds."""

    method: FPL
    recipe: Recipe
    profiles: Profiles
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix
    mean: FloatMatrix  # Adam's moments; no columns for a plain server
    square: FloatMatrix
    round_number: int = 0

    @cached_property
    def histories(self) -> Histories:
        """The clients' profiles for the compiled engine."""
        return histories_of(self.profiles, len(self.item_biases), self.recipe)

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
        return self.recipe.clients_per_round * float(np.mean(self.recipe.triples[self.recipe.participants]))

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines of this federation."""
        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change during training."""
        remembered = {"mean": self.mean, "square": self.square} if self.recipe.adam else {}
        return Tables(
            server={"item_vectors": self.item_vectors, "item_biases": self.item_biases} | remembered,
            devices={"user_vectors": self.user_vectors},
        )

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

    def aggregate(self, updates: Iterable[FPLUpdate]) -> None:
        """The server's part of a round: add all updates, or none if one is invalid."""
        sums = self.method.empty()
        for update in updates:
            self.method.add(sums, wire.checked(update, FPLUpdate, self.method))
            sums.count += 1
        self.take(self.method.server_update(self.state, sums))
        self.round_number += 1

    def spread(self) -> Spread:
        """The federation on a cluster."""
        from federank.methods.fpl.cluster import FPLSpread  # imports this module

        return FPLSpread(self)

    def why_diverged(self) -> str:
        """The setting to blame if factors are no longer finite."""
        rate = float(self.recipe.learning_rate)
        return f"learning_rate {rate:g} is too large for this data; try a smaller one."

    @classmethod
    def established(cls, settings: FPLSettings, recipe: Recipe, profiles: Profiles, n_items: int) -> Federation:
        """A federation before its first round, with initial vectors."""
        scale, factors, seed = settings.initial_scale, settings.factors, settings.seed
        width = padded_width(factors)
        vectors, biases = first_items(
            n_items, factors, seed=seed, scale=scale, biases=settings.initial_biases, width=width
        )
        method = settings.method(n_items)
        users = normal_rows(
            len(profiles.starts) - 1, factors, seed=seed, purpose=USER_FACTORS, scale=scale, width=width
        )
        return cls.of_model(method, recipe, profiles, vectors, biases, users)

    @classmethod
    def of_model(
        cls,
        method: FPL,
        recipe: Recipe,
        profiles: Profiles,
        vectors: FloatMatrix,
        biases: FloatVector,
        users: FloatMatrix,
    ) -> Federation:
        """A federation with this model; the server step has no past."""
        none = np.zeros((len(biases), method.moments), dtype=np.float32)
        return cls(method, recipe, profiles, vectors, biases, users, none, none.copy())


# Rounds with a server step other than adding: Adam, or weight decay.


Total = tuple[FloatMatrix, FloatVector]
"""Vectors and biases of all items: the sum of a round's updates."""


def get_ready(federation: Federation, sums: Sums) -> None:
    """Compile before the first round, with no client."""
    if federation.recipe.one_by_one:
        noised_sum(federation, rounds=0)
    else:
        _sum_shards(federation, sums, 1, no_users=True)


def next_sum(federation: Federation, sums: Sums, threads: int = 1) -> Total | None:
    """The clients' part of the next round; `take_step` is the server's. Each shard of `sums` has its own memory."""
    return noised_sum(federation) if federation.recipe.one_by_one else _sum_shards(federation, sums, threads)


def _sum_shards(federation: Federation, sums: Sums, threads: int, no_users: bool = False) -> Total | None:
    run, number = federation.run, federation.round_number
    clients = clients_of_round(run.recipe, number, len(run.user_vectors))[: 0 if no_users else None]
    shards = len(sums.counts)
    workers = min(threads, shards)

    def work(worker: int) -> None:
        buffers = new_buffers(len(run.width))
        for s in range(worker, shards, workers):
            theirs = clients[s * len(clients) // shards : (s + 1) * len(clients) // shards]
            sums.counts[s] = play_clients(run, number, theirs, buffers, sum_of_shard(sums, s))

    at_once(work, workers)
    return added_up(sums, run.recipe.factors)


def added_up(sums: Sums, factors: int) -> Total | None:
    """The sum over all shards, for all items; None without updates."""
    if not sums.counts.any():
        return None
    n_items = sums.stamps.shape[1]
    vectors, biases = np.zeros((n_items, factors), dtype=np.float32), np.zeros(n_items, dtype=np.float32)
    for s, count in enumerate(sums.counts):
        rows = sums.touched[s, :count]
        vectors[rows] += sums.vectors[s, rows, :factors]
        biases[rows] += sums.biases[s, rows]
    return vectors, biases


def take_step(federation: Federation, total: Total | None) -> None:
    """Aggregation of a round's sum, if there is one."""
    if total is not None:
        sums = FPLSums(vectors=total[0], biases=total[1], count=1)
        federation.take(federation.method.server_update(federation.state, sums))
    federation.round_number += 1


# The compiled engine: prepares the kernels' data, and calls the kernel for the recipe.


_PAIRS_PER_SHARD = 1024
_MOST_SHARDS = 32
_MOST_SUM_BYTES = 2**30


def play_compiled(federation: Federation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds; the number of threads does not change the result."""
    recipe = federation.recipe
    n_items, width = federation.item_vectors.shape
    if not recipe.only_adds:
        sums = workspace_for_sums(shard_count(recipe, n_items, width), n_items, width)
        if not rounds:
            get_ready(federation, sums)
        for _ in range(rounds):
            take_step(federation, next_sum(federation, sums, threads))
        return
    if recipe.one_by_one:
        play_noised(federation, rounds)
        return
    run, begin = federation.run, federation.round_number
    if recipe.clients_per_round == 1 and np.all(recipe.triples[recipe.participants] == 1):
        play_single_pairs(run, begin, rounds)
    else:
        sums = workspace_for_sums(shard_count(recipe, n_items, width), n_items, width)
        thread_team = new_thread_team(len(federation.user_vectors), min(threads, len(sums.counts)))
        at_once(lambda worker: play_rounds(run, sums, thread_team, worker, begin, rounds), thread_team.workers)
    federation.round_number += rounds


def shard_count(recipe: Recipe, n_items: int, width: int) -> int:
    """Number of shards of a round's clients: it depends on the work, never on the number of threads."""
    pairs = recipe.clients_per_round * float(np.mean(recipe.triples[recipe.participants]))
    fitting = _MOST_SUM_BYTES // (n_items * (4 * width + 16))
    most = int(max(1, min(_MOST_SHARDS, recipe.clients_per_round, pairs // _PAIRS_PER_SHARD, fitting)))
    return 1 << (most.bit_length() - 1)  # a power of two, to divide evenly among two, four, eight workers


# Compiled fold-in of many users: `FPL.fold_in` of method.py.


def home_vectors(
    recipe: Recipe,
    histories: Profiles,
    item_vectors: FloatMatrix,
    item_biases: FloatVector,
    users: IntVector,
    steps: int = HOME_STEPS,
) -> FloatMatrix:
    """Fold in these users: a vector for each, learnt from its full history with fixed item factors."""
    factors = recipe.factors
    width = padded_width(factors)
    Q = np.zeros((len(item_biases), width), dtype=np.float32)
    Q[:, :factors] = item_vectors[:, :factors]
    vectors = np.zeros((len(users), width), dtype=np.float32)
    starts, items = np.array(histories.starts), np.array(histories.items)
    numbers = (recipe.seed, recipe.learning_rate, recipe.user_regulariser)
    b = np.array(item_biases)
    _learn_at_home(*numbers, starts, items, Q, b, np.array(users, np.int32), vectors, steps, NO_BITS, (0,) * width)
    return vectors[:, :factors]


@compiled
def _learn_at_home(
    seed: int,
    rate: Any,
    regulariser: Any,
    starts: LongVector,
    items: IntVector,
    Q: FloatMatrix,
    b: FloatVector,
    users: IntVector,
    vectors: FloatMatrix,
    steps: int,
    no_bits: Any,
    width: Any,
) -> None:
    for row in range(len(users)):
        user = users[row]
        start = starts[user]
        size = starts[user + 1] - start
        if size == 0 or size == len(b):
            continue
        p, profile = load_row(vectors, row, width), Profile(items, start, size, no_bits, len(b))
        for counter in range(steps):
            position, j, _ = draw_pair(Draw(seed, user, HOME_ROUND, counter), profile)
            i = items[position]
            q_i, q_j = load_row(Q, i, width), load_row(Q, j, width)
            g = pair_slope(p, q_i, q_j, b[i], b[j])
            p = p + rate * user_gradient(g, p, q_i, q_j, regulariser)
        store_row(vectors, row, p)


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
        self._marks = np.zeros(n_users, dtype=np.int64)

    def choose(self, round_number: int) -> IntVector:
        """The clients of this round."""
        chosen = np.empty(len(self.vectors), dtype=np.int32)
        recipe = self.recipe
        with words_wrap_around():
            count = choose_clients(recipe, round_number, recipe.clients_per_round, self._marks, chosen)
        return chosen[:count]

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
                word, _, _, _ = words(seed, user, DROPOUT, round_number, 0)
            if not happens(word, recipe.dropout):
                assert result.positives is not None
                self.ledgers[user].record(round_number, taken, result.positives, result.negatives)
                yield user, clip_and_noise(recipe, user, round_number, result.update, self.method.n_items)


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
        rules = {name: getattr(method, name) for name in FPLRules.__dataclass_fields__}
        settings = FPLSettings(
            factors=method.factors, seed=seed, triples=method.triples, clients_per_round="all", **rules
        )
        shared_profiles = shared_profiles_of_all(choices, seed, histories, method.n_items)
        own = choices.where(policy.triples or 0 for policy in choices.kinds)
        recipe = recipe_for(settings, histories.sizes, method.n_items, coins(choices), None, shared_profiles, own)
        self.federation = Federation.established(settings, recipe, histories, method.n_items)
        self._at_home = np.flatnonzero(choices.at_home).astype(np.int32)
        self._run = self.federation.run
        self._workspace = workspace_for_clients(*self.federation.item_vectors.shape)
        self._of: FPLModel | None = None
        # No client, but the kernel is compiled now.
        sum_of_updates(self._run, 0, np.zeros(0, dtype=np.int32), self._workspace)

    @property
    def states(self) -> dict[str, wire.Array]:
        """All clients' vectors."""
        return {"vector": self.federation.user_vectors[:, : self.federation.recipe.factors]}

    def update(self, user: int, round_number: int, broadcast: FPLModel) -> FPLUpdate:
        """One client's update in this round; its vector changes."""
        if self._of is None or self._of.vectors is not broadcast.vectors:
            padded = np.zeros(self.federation.item_vectors.shape, dtype=np.float32)
            padded[:, : broadcast.vectors.shape[1]] = broadcast.vectors
            self._of, self._run = broadcast, self._run._replace(item_vectors=padded, item_biases=broadcast.biases)
        return sum_of_updates(self._run, round_number, np.array([user], dtype=np.int32), self._workspace)

    def factors(self, broadcast: FPLModel) -> FloatMatrix:
        """The trained vectors, or local fold-ins for users whose policy withholds items."""
        vectors: FloatMatrix = self.states["vector"].copy()
        if len(self._at_home):
            federation, model = self.federation, (broadcast.vectors, broadcast.biases)
            vectors[self._at_home] = home_vectors(federation.recipe, federation.profiles, *model, self._at_home)
        return vectors


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play_compiled),
    "reference": in_this_process(play_reference),
    "cluster": on_a_cluster,
}
