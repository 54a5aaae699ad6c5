"""Compiled loops: the same draws and steps as the reference engine, for a million clients.

Two loops for two kinds of federation:

  * `play_single_pairs`: one client per round with one pair (sFPL). Each round depends on the one before, so only the
    random draws can be done ahead: a block of rounds is drawn first, then stepped.
  * `play_rounds`: everything else. Clients of a round see the same shared model, so they are divided into *shards*
    that may run on different cores. Each shard sums its clients' updates in order; the shards' sums are then added to
    the model in the order of shards. The division depends on the population alone, so the number of threads never
    changes a bit of the result.

Draws, pairs, masks and steps are those of method.py, which the reference engine interprets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.barrier import new_barrier, wait_for_all
from federank._numerics.compiling import compiled
from federank._numerics.rows import fetch_place, fetch_row, inlined, load_row, store_row
from federank.data.interactions import Profiles
from federank.federation.rng import DROPOUT, NOISE, SELECT, SERVER, TRIPLE, below, happens, normal_pair, words
from federank.methods.fpl.method import (
    Draw,
    FPLUpdate,
    Profile,
    item_gradient,
    may_send,
    pair_of_words,
    pair_slope,
    user_gradient,
)
from federank.methods.fpl.settings import Recipe, choose_clients

# Pairs, drawn in blocks before the steps that use them.


BLOCK = 512
LINE = 16  # items per cache line
_MOST_BIT_BYTES = 2**27

LOST, NEGATIVE_ONLY, BOTH = 0, 1, 2
"""How many of a pair's two gradients reach the server; a single one is the negative's."""


class Histories(NamedTuple):
    """The shared profiles: all users' items, ascending, and as a bitmap if it is small enough."""

    starts: LongVector
    items: IntVector
    bits: np.ndarray[Any, np.dtype[np.uint64]]  # users x words of 64 items; no rows if too large
    allowed: np.ndarray[Any, np.dtype[np.bool_]]  # which items may be sent; empty: all


class Pairs(NamedTuple):
    """A block of pairs, as columns: user, round, items, and how many gradients arrive."""

    users: IntVector
    rounds: np.ndarray[Any, np.dtype[np.uint32]]
    counters: np.ndarray[Any, np.dtype[np.uint32]]
    first: np.ndarray[Any, np.dtype[np.uint32]]
    second: np.ndarray[Any, np.dtype[np.uint32]]
    third: np.ndarray[Any, np.dtype[np.uint32]]
    coins: np.ndarray[Any, np.dtype[np.uint32]]
    positives: IntVector
    negatives: IntVector
    arrives: np.ndarray[Any, np.dtype[np.int8]]


@compiled(allocates=False)
def _set_bits(starts: LongVector, items: IntVector, bits: Any) -> None:
    for user in range(len(bits)):
        for position in range(starts[user], starts[user + 1]):
            bits[user, items[position] >> 6] |= np.uint64(1) << np.uint64(items[position] & 63)


def histories_of(profiles: Profiles, n_items: int, recipe: Recipe) -> Histories:
    """The shared profiles of all users for the kernels."""
    n_users, row = len(profiles.starts) - 1, -(-n_items // 64)
    bits = np.zeros((n_users, row) if 8 * n_users * row <= _MOST_BIT_BYTES else (0, row), dtype=np.uint64)
    starts, items = np.ascontiguousarray(profiles.starts).view(), np.ascontiguousarray(profiles.items).view()
    # Always read-only: one kind of array, so that one compilation serves every caller.
    starts.flags.writeable = items.flags.writeable = False
    _set_bits(starts, items, bits)
    return Histories(starts, items, bits, recipe.shared_profile.allowed)


@inlined
def workspace_for_pairs(count: Any) -> Any:
    """A block for this many pairs."""
    rounds, counters = np.empty(count, np.uint32), np.zeros(count, np.uint32)
    users, positives, negatives = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    drawn = np.empty((4, count), np.uint32)
    arrives = np.empty(count, np.int8)
    return Pairs(users, rounds, counters, drawn[0], drawn[1], drawn[2], drawn[3], positives, negatives, arrives)


@compiled(allocates=False)
def draw_pairs(recipe: Recipe, histories: Histories, n_items: int, pairs: Pairs, count: int) -> None:
    """Fill the items of a block whose users, rounds and counters are set, and how many gradients of each pair
    arrive."""
    # The random words first: this loop runs eight draws at a time in vector registers.
    for k in range(count):
        first, second, third, coin = words(recipe.seed, pairs.users[k], TRIPLE, pairs.rounds[k], pairs.counters[k])
        pairs.first[k] = first
        pairs.second[k] = second
        pairs.third[k] = third
        pairs.coins[k] = coin
    # Then prefetch the histories, which are searched for negatives if there is no bitmap.
    if len(histories.bits) == 0:
        for k in range(count):
            start, end = histories.starts[pairs.users[k]], histories.starts[pairs.users[k] + 1]
            for position in range(start, min(end, start + 8 * LINE), LINE):
                fetch_place(histories.items, position)
    for k in range(count):
        user, r = pairs.users[k], pairs.rounds[k]
        start = histories.starts[user]
        size = histories.starts[user + 1] - start
        draw = Draw(recipe.seed, user, r, pairs.counters[k])
        profile = Profile(histories.items, start, size, histories.bits, n_items)
        position, j = pair_of_words(pairs.first[k], pairs.second[k], pairs.third[k], draw, profile)
        i = histories.items[position]
        pairs.positives[k] = i
        pairs.negatives[k] = j
        allowed = len(histories.allowed) == 0 or histories.allowed[position]
        coin, pi = pairs.coins[k], recipe.pi[user]
        sent = may_send(allowed, recipe.mask_per_row, recipe.seed, user, r, i, coin, pi)
        pairs.arrives[k] = BOTH if sent else NEGATIVE_ONLY
    if recipe.dropout > 0.0:
        for k in range(count):
            word, _, _, _ = words(recipe.seed, pairs.users[k], DROPOUT, pairs.rounds[k], 0)
            if happens(word, recipe.dropout):
                pairs.arrives[k] = LOST


@inlined
def next_block(recipe: Any, clients: Any, round_number: Any, client: Any, counter: Any, pairs: Any) -> Any:
    """Fill a block with the next pairs of these clients; returns their number and where to continue."""
    count = 0
    while count < len(pairs.users) and client < len(clients):
        pairs.users[count] = clients[client]
        pairs.rounds[count] = round_number
        pairs.counters[count] = counter
        count += 1
        counter += 1
        if counter == recipe.triples[clients[client]]:
            client += 1
            counter = 0
    return count, client, counter


@compiled(allocates=False)
def choose_one_each(recipe: Recipe, first_round: int, count: int, marks: Any, chosen: IntVector, pairs: Pairs) -> int:
    """The one client of each of these rounds; rounds without an online client are left out."""
    if recipe.online >= 1.0 and len(recipe.trace) == 0:
        for k in range(count):
            word, _, _, _ = words(recipe.seed, SERVER, SELECT, first_round + k, 0)
            pairs.first[k] = word
        for k in range(count):
            pairs.users[k] = recipe.participants[below(pairs.first[k], len(recipe.participants))]
            pairs.rounds[k] = first_round + k
        return count
    count_online = 0
    for k in range(count):
        r = first_round + k
        if choose_clients(recipe, r, 1, marks, chosen) == 1:
            pairs.users[count_online] = chosen[0]
            pairs.rounds[count_online] = r
            count_online += 1
    return count_online


AHEAD = 6
"""Number of pairs by which rows are prefetched."""


class Run(NamedTuple):
    """The data of all kernels of a run: the recipe, the clients' data, and the tables that rounds change."""

    recipe: Recipe
    histories: Histories
    item_vectors: FloatMatrix
    item_biases: FloatVector
    user_vectors: FloatMatrix
    width: Any  # a tuple as long as rows are wide: a constant for the compiler


class Buffers(NamedTuple):
    """A worker's buffers."""

    pairs: Pairs
    moves: FloatMatrix  # one row: the step of the client's vector, if it moves once per round


class ThreadTeam(NamedTuple):
    """State shared by the workers of a round."""

    chosen: IntVector  # the round's clients; the last position has their number
    barrier: Any
    workers: int


class Sums(NamedTuple):
    """Each shard's sum of updates; a row is valid if its stamp is that of the round."""

    vectors: np.ndarray[Any, np.dtype[np.float32]]  # shards x items x width
    biases: FloatMatrix  # shards x items
    stamps: np.ndarray[Any, np.dtype[np.int64]]  # shards x items
    touched: np.ndarray[Any, np.dtype[np.int32]]  # shards x items: the rows in order of first use
    counts: np.ndarray[Any, np.dtype[np.int64]]  # shards: the number of rows


class ShardSum(NamedTuple):
    """One shard's part of `Sums`."""

    vectors: FloatMatrix
    biases: FloatVector
    stamps: np.ndarray[Any, np.dtype[np.int64]]
    touched: IntVector


def workspace_for_sums(shards: int, n_items: int, width: int) -> Sums:
    """Empty sums."""
    return Sums(
        vectors=np.zeros((shards, n_items, width), dtype=np.float32),
        biases=np.empty((shards, n_items), dtype=np.float32),
        stamps=np.zeros((shards, n_items), dtype=np.int64),
        touched=np.empty((shards, n_items), dtype=np.int32),
        counts=np.zeros(shards, dtype=np.int64),
    )


@inlined
def sum_of_shard(sums: Any, s: Any) -> Any:
    """One shard's sum."""
    return ShardSum(sums.vectors[s], sums.biases[s], sums.stamps[s], sums.touched[s])


@inlined
def new_buffers(width: Any) -> Any:
    """A worker's buffers for rows of this width."""
    return Buffers(workspace_for_pairs(BLOCK), np.zeros((1, width), np.float32))


def new_thread_team(n_users: int, workers: int) -> ThreadTeam:
    """Shared state of this many workers, before the first round."""
    return ThreadTeam(np.empty(n_users + 1, dtype=np.int32), new_barrier(), workers)


@inlined
def _fetch_ahead(P: Any, Q: Any, pairs: Any, k: Any, width: Any) -> None:
    """Prefetch the rows of a pair that is stepped soon."""
    fetch_row(P, pairs.users[k], width)
    fetch_row(Q, pairs.positives[k], width)
    fetch_row(Q, pairs.negatives[k], width)


@compiled(allocates=False)
def _step_one_by_one(run: Run, pairs: Pairs, count: int) -> None:
    """Step a block of pairs, each on the result of the one before."""
    recipe, _, Q, b, P, width = run
    rate = recipe.learning_rate
    for k in range(count):
        _fetch_ahead(P, Q, pairs, min(k + AHEAD, count - 1), width)
        user, i, j, arrives = pairs.users[k], pairs.positives[k], pairs.negatives[k], pairs.arrives[k]
        p, q_i, q_j = load_row(P, user, width), load_row(Q, i, width), load_row(Q, j, width)
        g = pair_slope(p, q_i, q_j, b[i], b[j])
        store_row(P, user, p + rate * user_gradient(g, p, q_i, q_j, recipe.user_regulariser))
        if arrives != LOST:
            store_row(Q, j, q_j + rate * item_gradient(-g, p, q_j, recipe.negative_regulariser))
            b[j] -= rate * g
        if arrives == BOTH:
            store_row(Q, i, q_i + rate * item_gradient(g, p, q_i, recipe.positive_regulariser))
            b[i] += rate * g


@compiled
def play_single_pairs(run: Run, first_round: int, rounds: int) -> None:
    """Rounds of one client with one pair each; its update is added before the next round."""
    pairs = workspace_for_pairs(BLOCK)
    marks = np.zeros(len(run.user_vectors), np.int64)
    chosen = np.empty(len(run.user_vectors), np.int32)
    for begin in range(0, rounds, BLOCK):
        count = choose_one_each(run.recipe, first_round + begin, min(BLOCK, rounds - begin), marks, chosen, pairs)
        draw_pairs(run.recipe, run.histories, len(run.item_biases), pairs, count)
        _step_one_by_one(run, pairs, count)


@inlined
def _add(total: Any, count: Any, stamp: Any, item: Any, row: Any, bias: Any, width: Any) -> Any:
    """Add one gradient to a shard's sum, replacing rows of earlier rounds; returns the number of rows."""
    if total.stamps[item] == stamp:
        store_row(total.vectors, item, load_row(total.vectors, item, width) + row)
        total.biases[item] += bias
        return count
    total.stamps[item] = stamp
    store_row(total.vectors, item, row)
    total.biases[item] = bias
    total.touched[count] = item
    return count + 1


@compiled(allocates=False)
def _step_and_sum(run: Run, buffers: Buffers, count: int, total: ShardSum, touched_count: int) -> int:
    """Step a block of pairs on the shared model of the round, and add arriving gradients to the shard's sum."""
    recipe, _, Q, b, P, width = run
    pairs, moves = buffers
    rate, stamp = recipe.learning_rate, np.int64(pairs.rounds[0]) + 1
    for k in range(count):
        _fetch_ahead(P, Q, pairs, min(k + AHEAD, count - 1), width)
        user, i, j, arrives = pairs.users[k], pairs.positives[k], pairs.negatives[k], pairs.arrives[k]
        p, q_i, q_j = load_row(P, user, width), load_row(Q, i, width), load_row(Q, j, width)
        g = pair_slope(p, q_i, q_j, b[i], b[j])
        move = rate * user_gradient(g, p, q_i, q_j, recipe.user_regulariser)
        if recipe.summed:
            if pairs.counters[k] > 0:
                move = move + load_row(moves, 0, width)
            store_row(moves, 0, move)
            if pairs.counters[k] + 1 == recipe.triples[user]:
                store_row(P, user, p + move)
        else:
            store_row(P, user, p + move)
        if arrives != LOST:
            row = item_gradient(-g, p, q_j, recipe.negative_regulariser)
            touched_count = _add(total, touched_count, stamp, j, row, -g, width)
        if arrives == BOTH:
            row = item_gradient(g, p, q_i, recipe.positive_regulariser)
            touched_count = _add(total, touched_count, stamp, i, row, g, width)
    return touched_count


@compiled(allocates=False)
def play_clients(run: Run, round_number: int, clients: IntVector, buffers: Buffers, total: ShardSum) -> int:
    """Play the clients of one shard in order; returns the number of rows of their sum."""
    client, counter, touched_count = 0, 0, 0
    while client < len(clients):
        count, client, counter = next_block(run.recipe, clients, round_number, client, counter, buffers.pairs)
        draw_pairs(run.recipe, run.histories, len(run.item_biases), buffers.pairs, count)
        touched_count = _step_and_sum(run, buffers, count, total, touched_count)
    return touched_count


@inlined
def _fold_row(rate: Any, Q: Any, b: Any, total: Any, item: Any, width: Any) -> None:
    """Aggregation of one item's row of one shard's sum."""
    store_row(Q, item, load_row(Q, item, width) + rate * load_row(total.vectors, item, width))
    b[item] += rate * total.biases[item]


@compiled(allocates=False)
def fold_touched(run: Run, total: ShardSum, count: int) -> None:
    """Aggregate the rows of one shard's sum."""
    recipe, _, Q, b, _, width = run
    for position in range(count):
        _fold_row(recipe.learning_rate, Q, b, total, total.touched[position], width)


@compiled(allocates=False)
def _fold_items(run: Run, total: ShardSum, stamp: int, first: int, last: int) -> None:
    """Aggregate one shard's sum for a range of items."""
    recipe, _, Q, b, _, width = run
    for item in range(first, last):
        if total.stamps[item] == stamp:
            _fold_row(recipe.learning_rate, Q, b, total, item, width)


@compiled
def play_rounds(run: Run, sums: Sums, thread_team: ThreadTeam, worker: int, first_round: int, rounds: int) -> None:
    """Rounds of several clients or several pairs: updates are summed per shard, then aggregated.

    Run by all workers of the team at once, each with its own number. Worker 0 chooses the clients; shards, and then
    parts of the catalogue, are divided among the workers.
    """
    recipe, (chosen, barrier, workers) = run.recipe, thread_team
    shards, n_items = sums.stamps.shape
    marks = np.zeros(len(run.user_vectors), np.int64)
    buffers = new_buffers(len(run.width))
    for r in range(first_round, first_round + rounds):
        if worker == 0:
            chosen[-1] = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        wait_for_all(barrier, workers)
        m = chosen[-1]
        for s in range(worker, shards, workers):
            clients = chosen[s * m // shards : (s + 1) * m // shards]
            sums.counts[s] = play_clients(run, r, clients, buffers, sum_of_shard(sums, s))
        wait_for_all(barrier, workers)
        rows = 0
        for s in range(shards):
            rows += sums.counts[s]
        # Either way each item meets the shards in their order, so both give the same bits.
        if shards == 1 or 2 * rows < n_items:
            if worker == 0:
                for s in range(shards):
                    fold_touched(run, sum_of_shard(sums, s), sums.counts[s])
        else:
            first, last = worker * n_items // workers, (worker + 1) * n_items // workers
            for s in range(shards):
                _fold_items(run, sum_of_shard(sums, s), r + 1, first, last)
        wait_for_all(barrier, workers)


# The part of some clients in a round: their updates as one sum.


class ClientWorkspace(NamedTuple):
    """Buffers that are reused from call to call."""

    buffers: Buffers
    total: ShardSum


def workspace_for_clients(n_items: int, width: int) -> ClientWorkspace:
    """Buffers for a catalogue of this size, with rows of this width."""
    return ClientWorkspace(new_buffers(width), sum_of_shard(workspace_for_sums(1, n_items, width), 0))


def sum_of_updates(run: Run, round_number: int, clients: IntVector, workspace: ClientWorkspace) -> FPLUpdate:
    """Computation and transmission of these clients, in order: the sum of their updates."""
    total = workspace.total
    rows = play_clients(run, round_number, clients, workspace.buffers, total)
    items = np.sort(total.touched[:rows])
    total.stamps[items] = 0  # the next sum starts empty, even in the same round
    vectors = np.ascontiguousarray(total.vectors[items, : run.recipe.factors])
    return FPLUpdate(items, vectors, total.biases[items])


# Rounds with clipped, noisy or weighted updates: client by client.


@compiled
def fill_with_noise(noise: FloatMatrix, seed: int, user: int, round_number: int) -> None:
    """Standard normal numbers, drawn for one user and round."""
    flat = noise.reshape(-1)
    for block in range((len(flat) + 3) // 4):
        a, b, c, d = words(seed, user, NOISE, round_number, block)
        one, two = normal_pair(a, b)
        three, four = normal_pair(c, d)
        for lane, value in enumerate((one, two, three, four)):
            if 4 * block + lane < len(flat):
                flat[4 * block + lane] = np.float32(value)


@compiled
def play_noised(run: Run, own: ShardSum, sums: FloatMatrix, adds: bool, first_round: int, rounds: int) -> int:
    """Play rounds; the server `adds` each sum, or `sums` keeps the last one. Returns the number of updates."""
    recipe, _, Q, b, P, width = run
    factors, answers = recipe.factors, 0
    noise = np.empty((len(b), factors + 1), np.float32)
    chosen, marks = np.empty(len(P), np.int32), np.zeros(len(P), np.int64)
    buffers = new_buffers(len(width))
    for r in range(first_round, first_round + rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        sums[:] = 0.0
        answers = 0
        total = 0.0
        for k in range(m):
            rows = play_clients(run, r, chosen[k : k + 1], buffers, own)
            weight = recipe.weights[chosen[k]] if len(recipe.weights) > 0 else 1.0
            _add_clipped(own, rows, recipe.clip, weight, factors, sums)
            if rows > 0:  # a client that drops out sends neither row nor noise
                answers += 1
                total += weight
        if recipe.deviation > 0:
            fill_with_noise(noise, recipe.seed, SERVER, r)
            sums += np.float32(recipe.deviation * np.sqrt(answers)) * noise
        if len(recipe.weights) > 0 and answers > 0:
            sums *= np.float32(1.0 / total)
        if adds:
            Q[:, :factors] += recipe.learning_rate * sums[:, :factors]
            b += recipe.learning_rate * sums[:, factors]
    return answers


@compiled
def _add_clipped(own: ShardSum, rows: int, clip: float, weight: float, factors: int, sums: FloatMatrix) -> None:
    """Add one client's update to the sum, and clear its buffer."""
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
