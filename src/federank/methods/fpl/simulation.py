"""A simulation of FPL: what server and clients hold between two rounds, and the engines.

The two halves are kept apart, as they are on disk: `item_*` is the server's, `user_vectors` and `profiles` are the
clients'. Rows are padded (_numerics/rows.py); the padding stays zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.compiling import at_once, compiled
from federank._numerics.rows import load_row, padded_width, store_row
from federank.data.interactions import Profiles
from federank.federation.rng import (
    DROPOUT,
    SERVER,
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
    ShardSum,
    Sums,
    histories_of,
    new_bench,
    new_thread_team,
    play_clients,
    play_rounds,
    play_single_pairs,
    sum_of_shard,
    workspace_for_sum,
    workspace_for_sums,
)
from federank.methods.fpl.method import (
    HOME_ROUND,
    HOME_STEPS,
    NO_BITS,
    Draw,
    Profile,
    Shared,
    choose_clients,
    compute,
    draw_pair,
    first_moments,
    fold,
    no_moments,
    share,
    weighted,
)
from federank.methods.fpl.privacy import clip_and_noise, fill_with_noise
from federank.methods.fpl.settings import FPLSettings, Recipe
from federank.methods.fpl.wire import Broadcast, Private, Update, by_sign
from federank.privacy.ledger import Ledger
from federank.privacy.population import shared_profile_of
from federank.simulation.federated import (
    Engine,
    EngineName,
    Machines,
    Open,
    Tables,
    in_this_process,
    play_in_memory,
)


@dataclass(eq=False)
class Federation:
    """Server and devices of a simulation between two rounds."""

    recipe: Recipe
    profiles: Profiles
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix
    round_number: int = 0
    mean: FloatMatrix = field(default_factory=no_moments)  # what the server's step remembers, where it does
    square: FloatMatrix = field(default_factory=no_moments)

    @cached_property
    def histories(self) -> Histories:
        """The devices' profiles as the compiled engine wants them."""
        return histories_of(self.profiles, len(self.item_biases), self.recipe)

    @property
    def run(self) -> Run:
        """What the compiled engine's kernels are handed."""
        width = (0,) * self.item_vectors.shape[1]
        return Run(self.recipe, self.histories, self.item_vectors, self.item_biases, self.user_vectors, width)

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds make an epoch."""
        return self.recipe.rounds_per_epoch

    @property
    def steps_per_round(self) -> float:
        """How many triples a round learns from on average."""
        return self.recipe.clients_per_round * float(np.mean(self.recipe.triples[self.recipe.participants]))

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        remembered = {"mean": self.mean, "square": self.square} if self.recipe.adam else {}
        return Tables(
            server={"item_vectors": self.item_vectors, "item_biases": self.item_biases} | remembered,
            devices={"user_vectors": self.user_vectors},
        )

    @property
    def shared(self) -> Shared:
        """What the server holds, as the protocol speaks of it: a copy."""
        vectors = self.item_vectors[:, : self.recipe.factors].copy()
        return Shared(vectors, self.item_biases.copy(), self.round_number, self.mean.copy(), self.square.copy())

    def take(self, shared: Shared) -> None:
        """Keep what the server holds now; tables stay where they are, so that anyone who looks at them sees it."""
        self.item_vectors[:, : self.recipe.factors] = shared.vectors
        self.item_biases[:] = shared.biases
        self.mean, self.square, self.round_number = shared.mean, shared.square, shared.round_number

    def why_diverged(self) -> str:
        """What is to blame if the factors are no longer finite numbers."""
        rate = float(self.recipe.learning_rate)
        return f"learning_rate {rate:g} is too large for this data; try a smaller one."

    @classmethod
    def established(cls, settings: FPLSettings, recipe: Recipe, profiles: Profiles, n_items: int) -> Federation:
        """A federation before its first round: the server and every device draw their first values."""
        scale, factors, seed = settings.initial_scale, settings.factors, settings.seed
        width = padded_width(factors)
        vectors, biases = first_items(
            n_items, factors, seed=seed, scale=scale, biases=settings.initial_biases, width=width
        )
        return cls(
            recipe,
            profiles,
            vectors,
            biases,
            normal_rows(len(profiles.starts) - 1, factors, seed=seed, purpose=USER_FACTORS, scale=scale, width=width),
            mean=first_moments(recipe, n_items),
            square=first_moments(recipe, n_items),
        )


# Rounds with clipped, noisy or weighted Updates, compiled (protocol/pairs/noise.py, protocol/pairs/weights.py).


def play_noised(federation: Federation, rounds: int) -> None:
    """Play this many rounds of a server that adds what it gets."""
    _play_on(federation, rounds, adds=True)
    federation.round_number += rounds


def noised_sum(federation: Federation, rounds: int = 1) -> tuple[FloatMatrix, FloatVector] | None:
    """The devices' part of the next round: the sum of their Updates, which is not folded in; None if none came."""
    sums, answers = _play_on(federation, rounds, adds=False)
    return (sums[:, :-1], sums[:, -1]) if answers else None


def _play_on(federation: Federation, rounds: int, adds: bool) -> tuple[FloatMatrix, int]:
    n_items, width = federation.item_vectors.shape
    sums = np.empty((n_items, federation.recipe.factors + 1), dtype=np.float32)
    own = workspace_for_sum(n_items, width)
    return sums, _play(federation.run, own, sums, adds, federation.round_number, rounds)


@compiled
def _play(run: Run, own: ShardSum, sums: FloatMatrix, adds: bool, first_round: int, rounds: int) -> int:
    """Rounds, each folded in where the server `adds`; `sums` is then the last one's, and the answer how many sent."""
    recipe, _, Q, b, P, width = run
    n_items, factors, answers = len(b), recipe.factors, 0
    noise = np.empty((n_items, factors + 1), np.float32)
    chosen, marks = np.empty(len(P), np.int32), np.zeros(len(P), np.int64)
    bench = new_bench(len(width))
    for r in range(first_round, first_round + rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        sums[:] = 0.0
        answers = 0
        total = 0.0
        for k in range(m):
            rows = play_clients(run, r, chosen[k : k + 1], bench, own)
            weight = recipe.weights[chosen[k]] if len(recipe.weights) > 0 else 1.0
            _add_clipped(own, rows, recipe.clip, weight, factors, sums)
            if rows > 0:  # a device that drops out sends no row, and no noise
                answers += 1
                total += weight
        if recipe.deviation > 0:
            fill_with_noise(noise, recipe.seed, SERVER, r)
            scale = np.float32(recipe.deviation * np.sqrt(answers))
            for item in range(n_items):
                for column in range(factors + 1):
                    sums[item, column] += scale * noise[item, column]
        if len(recipe.weights) > 0 and answers > 0:
            sums *= np.float32(1.0 / total)
        if adds:
            for item in range(n_items):
                for column in range(factors):
                    Q[item, column] += recipe.learning_rate * sums[item, column]
                b[item] += recipe.learning_rate * sums[item, factors]
    return answers


@compiled
def _add_clipped(own: ShardSum, rows: int, clip: float, weight: float, factors: int, sums: FloatMatrix) -> None:
    """Add one client's Update to the sum, and forget it."""
    squares = 0.0
    for position in range(rows):
        item = own.touched[position]
        squares += np.float64(own.biases[item]) ** 2
        for column in range(factors):
            squares += np.float64(own.vectors[item, column]) ** 2
    length = np.sqrt(squares)
    scale = np.float32(weight * clip / length) if 0.0 < clip < length else np.float32(weight)
    for position in range(rows):
        item = own.touched[position]
        own.stamps[item] = 0
        sums[item, factors] += scale * own.biases[item]
        for column in range(factors):
            sums[item, column] += scale * own.vectors[item, column]


# Rounds whose server does more with a sum than add it: Adam, or a pull of all items towards zero.


Total = tuple[FloatMatrix, FloatVector]
"""Vectors and biases of a full catalogue: the sum of a round's Updates."""


def get_ready(federation: Federation, sums: Sums) -> None:
    """Play no one's part, so that whatever needs compiling is compiled before the first round."""
    if federation.recipe.one_by_one:
        noised_sum(federation, rounds=0)
    else:
        _sum_shards(federation, sums, 1, no_users=True)


def next_sum(federation: Federation, sums: Sums, threads: int = 1) -> Total | None:
    """The devices' part of the next round; the server's is `take_step`. Each shard of `sums` has the room it needs."""
    return noised_sum(federation) if federation.recipe.one_by_one else _sum_shards(federation, sums, threads)


def _sum_shards(federation: Federation, sums: Sums, threads: int, no_users: bool = False) -> Total | None:
    run, number = federation.run, federation.round_number
    clients = clients_of_round(run.recipe, number, len(run.user_vectors))[: 0 if no_users else None]
    shards = len(sums.counts)
    workers = min(threads, shards)

    def work(worker: int) -> None:
        bench = new_bench(len(run.width))
        for s in range(worker, shards, workers):
            theirs = clients[s * len(clients) // shards : (s + 1) * len(clients) // shards]
            sums.counts[s] = play_clients(run, number, theirs, bench, sum_of_shard(sums, s))

    at_once(work, workers)
    return added_up(sums, run.recipe.factors)


def added_up(sums: Sums, factors: int) -> Total | None:
    """The sum over all shards for the full catalogue; None where no Update came."""
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
    """Aggregation of a round's sum; without one there is nothing to learn."""
    if total is not None:
        shared = federation.shared
        fold(federation.recipe, shared, *total)
        federation.take(shared)
    federation.round_number += 1


# The compiled engine: prepares what the kernels need, and calls the one that fits the recipe.


_PAIRS_PER_SHARD = 1024
_MOST_SHARDS = 32
_MOST_SUM_BYTES = 2**30


def play_compiled(federation: Federation, rounds: int, threads: int = 1) -> None:
    """Play this many rounds of a federation on this many threads; the result does not depend on how many."""
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
    """Into how many shards a round's clients are divided: by the work there is, never by the threads at hand."""
    pairs = recipe.clients_per_round * float(np.mean(recipe.triples[recipe.participants]))
    fitting = _MOST_SUM_BYTES // (n_items * (4 * width + 16))
    most = int(max(1, min(_MOST_SHARDS, recipe.clients_per_round, pairs // _PAIRS_PER_SHARD, fitting)))
    return 1 << (most.bit_length() - 1)  # a power of two: dealt out evenly to two, four, eight workers


# Home vectors of many users at once: `home_vector` of method.py, compiled.


def home_vectors(
    recipe: Recipe,
    histories: Profiles,
    item_vectors: FloatMatrix,
    item_biases: FloatVector,
    users: IntVector,
    steps: int = HOME_STEPS,
) -> FloatMatrix:
    """A vector for each of these users, learnt from their full history with the item factors as they are."""
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


# The reference engine: plain Python, slow, and the place to read first. Broadcasts and Updates pass between a server
# and clients that share no array. The compiled engine is tested against it.


class FleetInMemory:
    """Clients that live in this process, each with its own private state and its own ledger."""

    def __init__(self, recipe: Recipe, profiles: Profiles, vectors: FloatMatrix) -> None:
        self.recipe = recipe
        self.shared_profiles = [
            shared_profile_of(recipe.shared_profile, profiles, user) for user in range(len(vectors))
        ]
        self.ledgers = [Ledger() for _ in self.shared_profiles]
        self.devices = [
            Private(
                user,
                vectors[user].copy(),
                shared_profile.profile,
                float(recipe.pi[user]),
                shared_profile.allowed,
                int(recipe.triples[user]),
                shared_profile.lifelong,
            )
            for user, shared_profile in enumerate(self.shared_profiles)
        ]
        self._marks = np.zeros(len(self.devices), dtype=np.int64)

    def choose(self, round_number: int) -> IntVector:
        """The clients that take part in this round."""
        chosen = np.empty(len(self.devices), dtype=np.int32)
        recipe = self.recipe
        with words_wrap_around():
            count = choose_clients(recipe, round_number, recipe.clients_per_round, self._marks, chosen)
        return chosen[:count]

    def train(self, clients: IntVector, broadcast: Broadcast) -> Iterator[Update]:
        """Computation and transmission on each of these clients; one that drops out has learnt but does not answer."""
        return weighted(self.recipe, self._answers(clients, broadcast))

    def _answers(self, clients: IntVector, broadcast: Broadcast) -> Iterator[tuple[int, Update]]:
        for user in clients:
            device = self.devices[user]
            gradients = compute(self.recipe, device, broadcast)
            word, _, _, _ = words(self.recipe.seed, user, DROPOUT, broadcast.round_number, 0)
            if not happens(word, self.recipe.dropout):
                update = share(self.recipe, device, broadcast.round_number, gradients)
                self.ledgers[user].record(broadcast.round_number, self.shared_profiles[user], *by_sign(update))
                sent = clip_and_noise(self.recipe, int(user), broadcast.round_number, update, len(broadcast.items))
                yield int(user), sent


def play_reference(federation: Federation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the readable steps of method.py."""
    recipe, factors = federation.recipe, federation.recipe.factors
    fleet = FleetInMemory(recipe, federation.profiles, federation.user_vectors[:, :factors])
    play_in_memory(federation, fleet, rounds)
    federation.user_vectors[:, :factors] = [device.vector for device in fleet.devices]


@contextmanager
def _on_a_cluster(federation: Federation, machines: Machines) -> Iterator[Engine]:
    from federank.methods.fpl.cluster import opened

    with opened(federation, machines.address or "local", machines.shards) as cluster:
        yield Engine(cluster.play, cluster.bring_home)


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play_compiled),
    "reference": in_this_process(play_reference),
    "cluster": _on_a_cluster,
}
