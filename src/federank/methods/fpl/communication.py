"""Communication cost, counted per update.

What is sent, and to whom, depends on random draws, never on factors. So the communication of a run is counted exactly
by repeating its draws without the maths. A client uploads the distinct item rows of its update. It downloads the full
model (dense), or only the rows that changed since its last download (changed).

The number of rows changed since a client's last download is needed once per client and round, so it must be cheap.
Every round that changes a row gets the next tick; for each tick the number of rows last changed in its round is kept.
The rows changed since a moment are the sum over later ticks: of a short array of blocks, and of a part of one block.
When ticks run out, those that still have rows are renumbered from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import inlined
from federank.data.interactions import Profiles
from federank.federation import wire
from federank.methods.fpl.kernels import LOST, Histories, Pairs, draw_pairs, histories_of, workspace_for_pairs
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate
from federank.methods.fpl.settings import Recipe, choose_clients
from federank.simulation.federated import traffic

# A run's draws, made again without its maths: who took part in which round, and with which pairs.


_PAIRS_AT_ONCE = 1 << 15
_ROUND, _CLIENTS, _CLIENT, _COUNTER = range(4)
"""State of a replay: the round, its number of clients (-1: not drawn yet), the next client, its next pair."""


def replay(
    recipe: Recipe, histories: Histories, n_items: int, rounds: range, followed: NDArray[np.bool_] | None = None
) -> Iterator[Pairs]:
    """The pairs of these rounds, in blocks; only of `followed` clients, if given.

    A block is valid until the next one is requested.
    """
    n_users = len(histories.starts) - 1
    marks, chosen = np.zeros(n_users, dtype=np.int64), np.empty(n_users, dtype=np.int32)
    all_users = np.ones(n_users, dtype=np.bool_)
    workspace = workspace_for_pairs(_PAIRS_AT_ONCE)
    position = np.array([rounds.start, -1, 0, 0], dtype=np.int64)
    while position[_ROUND] < rounds.stop:
        count = _name(
            recipe, rounds.stop, all_users if followed is None else followed, marks, chosen, position, workspace
        )
        draw_pairs(recipe, histories, n_items, workspace, count)
        yield Pairs(*(column[:count] for column in workspace))


@compiled(allocates=False)
def _name(
    recipe: Recipe,
    end: int,
    followed: NDArray[np.bool_],
    marks: LongVector,
    chosen: IntVector,
    position: LongVector,
    pairs: Pairs,
) -> int:
    """Fill a block with the next pairs' users, rounds and counters; returns their number."""
    count = 0
    while position[_ROUND] < end:
        r = position[_ROUND]
        if position[_CLIENTS] < 0:
            position[_CLIENTS] = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        while position[_CLIENT] < position[_CLIENTS]:
            user = chosen[position[_CLIENT]]
            while followed[user] and position[_COUNTER] < recipe.triples[user]:
                if count == len(pairs.users):
                    return count
                pairs.users[count] = user
                pairs.rounds[count] = r
                pairs.counters[count] = position[_COUNTER]
                count += 1
                position[_COUNTER] += 1
            position[_CLIENT] += 1
            position[_COUNTER] = 0
        position[_ROUND] += 1
        position[_CLIENTS] = -1
        position[_CLIENT] = 0
    return count


@compiled
def clients_of_round(recipe: Recipe, round_number: int, n_users: int) -> IntVector:
    """The clients of a round, in the order of the draws."""
    marks, chosen = np.zeros(n_users, np.int64), np.empty(n_users, np.int32)
    count = choose_clients(recipe, round_number, recipe.clients_per_round, marks, chosen)
    return chosen[:count]


def participations(recipe: Recipe, n_users: int, rounds: int) -> LongVector:
    """The number of rounds that each user took part in."""
    counts = np.zeros(n_users, dtype=np.int64)
    _count(recipe, rounds, np.zeros(n_users, dtype=np.int64), np.empty(n_users, dtype=np.int32), counts)
    return counts


@compiled
def _count(recipe: Recipe, rounds: int, marks: LongVector, chosen: IntVector, counts: LongVector) -> None:
    for r in range(rounds):
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        for position in range(m):
            counts[chosen[position]] += 1


# Communication cost of an epoch (Anelli et al., FPL, 2020, section 3.2).


def conversations(clients_per_round: float, rounds_per_epoch: float) -> float:
    """Rho: number of client-server interactions per epoch."""
    return clients_per_round * rounds_per_epoch


def communication_cost(rho: float, n_items: int, triples: float, pi: float) -> float:
    """CCE: number of item vectors sent per epoch, down and up."""
    return rho * (n_items + triples * (1 + pi))


def freshness(rounds_per_epoch: float) -> float:
    """Number of updates of the shared model per epoch."""
    return rounds_per_epoch


def normalised_freshness(rounds_per_epoch: float, interactions: int) -> float:
    """Freshness per training interaction: 1 if every interaction updates the model."""
    return rounds_per_epoch / interactions


_TICKS_PER_BLOCK = 512


def count_communication(recipe: Recipe, profiles: Profiles, n_items: int, rounds: int) -> dict[str, Any]:
    """Communication cost of the first rounds of a run: totals, means per round, and the papers' measures."""
    mean_triples = float(np.mean(recipe.triples[recipe.participants]))
    tally = _Tally.empty(len(recipe.triples), n_items, most_rows=2 * int(recipe.triples.max()))
    for pairs in replay(recipe, histories_of(profiles, n_items, recipe), n_items, range(rounds)):
        _note(recipe, pairs, tally)
    rows_up, rows_down = tally.rows_up, tally.rows_down
    downloads, uploads = int(rows_down.sum()), int(rows_up.sum())
    if recipe.deviation > 0:  # with noise, every update has every row, and every row changes
        rows_up, rows_down = np.zeros(n_items + 1, dtype=np.int64), np.zeros(n_items + 1, dtype=np.int64)
        rows_up[n_items], rows_down[n_items] = uploads, downloads
    elif not recipe.only_adds:  # then every round with an update changes every row
        rows_down[1:-1], rows_down[-1] = 0, rows_down[1:].sum()
    method = FPL(n_items=n_items, factors=recipe.factors, triples=1)
    model = wire.zeros(FPLModel, method)
    up = _total(rows_up, lambda rows: wire.size(wire.zeros(FPLUpdate, method, rows=rows)), rounds)
    down = _total(rows_down, lambda rows: wire.size_of_rows(model, rows), rounds)
    training_interactions = len(profiles.items)
    rho = conversations(recipe.clients_per_round, recipe.rounds_per_epoch)
    pi = float(np.mean(_sent_shares(recipe)[recipe.participants]))
    return {
        "rounds": rounds,
        "downloads": downloads,
        "uploads": uploads,
        "up": up,
        "down_dense": traffic(downloads * n_items, downloads * wire.size_of_rows(model), rounds),
        "down_changed": down,
        "papers": {
            "cce": communication_cost(rho, n_items, mean_triples, pi),
            "freshness": freshness(recipe.rounds_per_epoch),
            "normalised_freshness": normalised_freshness(recipe.rounds_per_epoch, training_interactions),
        },
    }


def _sent_shares(recipe: Recipe) -> RealVector:
    """Expected share of each client's positives that is sent: the papers' pi, under any policy."""
    if not len(recipe.shared_profile.allowed):
        return recipe.pi
    sizes = np.diff(recipe.shared_profile.starts)
    users = np.repeat(np.arange(len(sizes)), sizes)
    return recipe.pi * np.bincount(users, recipe.shared_profile.allowed, len(sizes)) / np.maximum(sizes, 1)


def _total(histogram: Any, size: Callable[[int], int], rounds: int) -> dict[str, float]:
    rows = np.flatnonzero(histogram)
    total_rows = int((rows * histogram[rows]).sum())
    total_bytes = sum(size(int(row)) * int(histogram[row]) for row in rows)
    return traffic(total_rows, total_bytes, rounds)


@inlined
def _rows_after(rows: Any, blocks: Any, tick: Any) -> Any:
    """Number of rows that last changed after this tick."""
    block = (tick + 1) // _TICKS_PER_BLOCK
    total = np.int64(0)
    for t in range(tick + 1, min((block + 1) * _TICKS_PER_BLOCK, len(rows))):
        total += rows[t]
    for later in range(block + 1, len(blocks)):
        total += blocks[later]
    return total


@compiled
def _renumber(rows: Any, blocks: Any, tick_of_item: Any, tick_of_user: Any) -> int:
    """Renumber the ticks that still have rows from zero, and the clients' ticks with them; returns the next free
    tick."""
    needed_before = np.empty(len(rows) + 1, np.int64)
    needed_before[0] = 0
    blocks[:] = 0
    for t in range(len(rows)):
        needed_before[t + 1] = needed_before[t] + (rows[t] > 0)
        count, rows[t] = rows[t], 0
        if count > 0:
            rows[needed_before[t]] = count
            blocks[needed_before[t] // _TICKS_PER_BLOCK] += count
    for item in range(len(tick_of_item)):
        if tick_of_item[item] >= 0:
            tick_of_item[item] = needed_before[tick_of_item[item]]
    for user in range(len(tick_of_user)):
        if tick_of_user[user] >= -1:
            tick_of_user[user] = needed_before[tick_of_user[user] + 1] - 1
    needed: int = needed_before[len(rows)]
    return needed


class _Tally(NamedTuple):
    """The counts so far, and the state of every row and client."""

    rows_up: LongVector  # number of updates with this many rows
    rows_down: LongVector  # number of downloads with this many changed rows
    rows: IntVector  # per tick: number of rows that last changed in its round
    blocks: LongVector  # the same per block of ticks
    tick_of_item: IntVector  # -1: never changed
    tick_of_user: LongVector  # -2: never took part; -1: before any change
    changed: IntVector  # the rows changed in this round
    in_round: LongVector  # per row: the last round that changed it
    in_update: LongVector  # per row: the last update that contained it
    now: LongVector  # see _NOW_ROUND

    @classmethod
    def empty(cls, n_users: int, n_items: int, most_rows: int) -> _Tally:
        """Before the first round."""
        n_blocks = 8 * n_items // _TICKS_PER_BLOCK + 8
        return cls(
            np.zeros(most_rows + 1, dtype=np.int64),
            np.zeros(n_items + 1, dtype=np.int64),
            np.zeros(n_blocks * _TICKS_PER_BLOCK, dtype=np.int32),
            np.zeros(n_blocks, dtype=np.int64),
            np.full(n_items, -1, dtype=np.int32),
            np.full(n_users, -2, dtype=np.int64),
            np.empty(n_items, dtype=np.int32),
            np.full(n_items, -1, dtype=np.int64),
            np.full(n_items, -1, dtype=np.int64),
            np.array([-1, 0, 0, 0, 0], dtype=np.int64),
        )


_NOW_ROUND, _NEXT_TICK, _CHANGED, _UPDATE, _ROWS = range(5)
"""Positions in `now`: this round, the next free tick, number of rows changed in this round, this update and its
rows."""


@compiled(allocates=False)
def _end_round(tally: _Tally, tick: int, count: int) -> None:
    """Give every row changed in this round its tick."""
    for position in range(count):
        item = tally.changed[position]
        old = tally.tick_of_item[item]
        if old >= 0:
            tally.rows[old] -= 1
            tally.blocks[old // _TICKS_PER_BLOCK] -= 1
        tally.tick_of_item[item] = tick
    tally.rows[tick] = count
    tally.blocks[tick // _TICKS_PER_BLOCK] += count


@compiled(allocates=False)
def _download(tally: _Tally, user: int, tick: int) -> None:
    """A download: the client lacks the rows that changed since its last one."""
    if tally.tick_of_user[user] == -2:
        tally.rows_down[-1] += 1
    else:
        tally.rows_down[_rows_after(tally.rows, tally.blocks, tally.tick_of_user[user])] += 1
    tally.tick_of_user[user] = tick - 1


@compiled
def _note(recipe: Recipe, pairs: Pairs, tally: _Tally) -> None:
    """Count a block of pairs."""
    now_round, tick, changed = tally.now[_NOW_ROUND], tally.now[_NEXT_TICK], tally.now[_CHANGED]
    update, rows = tally.now[_UPDATE], tally.now[_ROWS]
    for k in range(len(pairs.users)):
        r = np.int64(pairs.rounds[k])
        if r != now_round:
            if changed > 0:
                _end_round(tally, tick, changed)
                tick += 1
                changed = 0
            now_round = r
            if tick == len(tally.rows):
                tick = _renumber(tally.rows, tally.blocks, tally.tick_of_item, tally.tick_of_user)
        if pairs.counters[k] == 0:
            _download(tally, pairs.users[k], tick)
            update += 1
            rows = 0
        for which in range(pairs.arrives[k]):  # none, the negative, or both
            item = pairs.negatives[k] if which == 0 else pairs.positives[k]
            if tally.in_update[item] != update:
                tally.in_update[item] = update
                rows += 1
                if tally.in_round[item] != r:
                    tally.in_round[item] = r
                    tally.changed[changed] = item
                    changed += 1
        if pairs.counters[k] + 1 == recipe.triples[pairs.users[k]] and pairs.arrives[k] != LOST:
            tally.rows_up[rows] += 1
    tally.now[_NOW_ROUND], tally.now[_NEXT_TICK], tally.now[_CHANGED] = now_round, tick, changed
    tally.now[_UPDATE], tally.now[_ROWS] = update, rows


def paper_costs(model: Any) -> dict[str, float]:
    """The papers' communication cost and freshness of an epoch."""
    data = model.training
    recipe = model.recipe(data)
    # The papers' CCE rounds neither T = X+/|U| nor X+/|U|. Rounds per epoch are integers, as simulated.
    conversed = conversations(recipe.clients_per_round, len(data) / recipe.clients_per_round)
    triples, pi = (float(np.mean(of_all[recipe.participants])) for of_all in (recipe.triples, recipe.pi))
    if model.pairs().triples == "mean":
        triples = len(data) / data.n_users
    return {
        "cce": communication_cost(conversed, data.n_items, triples, pi),
        "rounds_per_epoch": freshness(recipe.rounds_per_epoch),
        "normalised_freshness": normalised_freshness(recipe.rounds_per_epoch, len(data)),
    }


# Item updates: number of updates that contain each item (FedeRank, 2021, Figure 2).


def item_updates(model: Any) -> LongVector:
    """Number of updates of a fitted model's run that contain each item."""
    data = model.training
    recipe = model.recipe(data)
    counts = np.zeros(data.n_items, dtype=np.int64)
    in_update, update = np.full(data.n_items, -1, dtype=np.int64), 0  # per row: the last update that contained it
    histories = histories_of(data.profiles, data.n_items, recipe)
    for pairs in replay(recipe, histories, data.n_items, range(model.report["rounds"])):
        update = _count_rows(pairs, in_update, update, counts)
    return counts


@compiled(allocates=False)
def _count_rows(pairs: Pairs, in_update: LongVector, update: int, counts: LongVector) -> int:
    """Count a block of pairs; returns the number of the last update."""
    for k in range(len(pairs.users)):
        if pairs.counters[k] == 0:
            update += 1
        for which in range(pairs.arrives[k]):  # none, the negative, or both
            item = pairs.negatives[k] if which == 0 else pairs.positives[k]
            if in_update[item] != update:
                in_update[item] = update
                counts[item] += 1
    return update
