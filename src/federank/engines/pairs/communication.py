"""Communication, counted update by update.

What is sent, and to whom, depends on draws alone, never on the values of factors; so a run's traffic can be counted
exactly by making its draws again without the maths. Upwards a device sends the distinct item rows of its Update.
Downwards it receives the whole model (dense), or only the rows that changed since it was last there (changed).

How many rows changed since a device was last there is asked once per client and round, so it must be cheap. Every
change of a row gets a tick, counted up; a tick is *alive* while it is the latest of its row. The rows changed since
a moment are the ticks alive after it: one sum over a short array of block counts. When ticks run out, the living
ones are numbered anew from zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from federank.arrays import RealVector
from federank.compiling import compiled
from federank.data.interactions import Profiles
from federank.engines.pairs.triples import (
    LOST,
    Histories,
    draw_pairs,
    histories_of,
    next_block,
    pairs_of_shard,
    room_for_pairs,
)
from federank.models.rows import inlined
from federank.protocol.messages import broadcast_bytes, update_bytes
from federank.protocol.pairs.communication import communication_cost, conversations, freshness, normalised_freshness
from federank.protocol.pairs.distribution import choose_clients
from federank.protocol.pairs.recipes import Recipe

_TICKS_PER_BLOCK = 512


def count_communication(recipe: Recipe, profiles: Profiles, n_items: int, rounds: int) -> dict[str, Any]:
    """The traffic of the first rounds of a run: totals, means per round, and the papers' measures beside them."""
    mean_triples = float(np.mean(recipe.triples[recipe.participants]))
    rows_up = np.zeros(2 * int(recipe.triples.max()) + 1, dtype=np.int64)  # how many Updates had so many rows
    rows_down = np.zeros(n_items + 1, dtype=np.int64)  # how many downloads of changed rows had so many
    _count(recipe, histories_of(profiles, n_items, recipe), n_items, rounds, rows_up, rows_down)
    downloads, uploads = int(rows_down.sum()), int(rows_up.sum())
    if recipe.deviation > 0 and recipe.noise_on_all_rows:  # then every Update has every row, and every row changes
        rows_up, rows_down = np.zeros(n_items + 1, dtype=np.int64), np.zeros(n_items + 1, dtype=np.int64)
        rows_up[n_items], rows_down[n_items] = uploads, downloads
    up = _total(rows_up, recipe.factors, update_bytes, rounds)
    down = _total(rows_down, recipe.factors, broadcast_bytes, rounds)
    training_interactions = len(profiles.items)
    rho = conversations(recipe.clients_per_round, recipe.rounds_per_epoch)
    pi = float(np.mean(_sent_shares(recipe)[recipe.participants]))
    return {
        "rounds": rounds,
        "downloads": downloads,
        "uploads": uploads,
        "up": up,
        "down_dense": {
            "rows": downloads * n_items,
            "bytes": downloads * broadcast_bytes(n_items, recipe.factors),
            "rows_per_round": downloads * n_items / rounds,
            "bytes_per_round": downloads * broadcast_bytes(n_items, recipe.factors) / rounds,
        },
        "down_changed": down,
        "papers": {
            "cce": communication_cost(rho, n_items, mean_triples, pi),
            "freshness": freshness(recipe.rounds_per_epoch),
            "normalised_freshness": normalised_freshness(recipe.rounds_per_epoch, training_interactions),
        },
    }


def _sent_shares(recipe: Recipe) -> RealVector:
    """How much of each device's positives is sent in the long run: the papers' pi, whatever the policy."""
    if not len(recipe.outward.allowed):
        return recipe.pi
    sizes = np.diff(recipe.outward.starts)
    users = np.repeat(np.arange(len(sizes)), sizes)
    return recipe.pi * np.bincount(users, recipe.outward.allowed, len(sizes)) / np.maximum(sizes, 1)


def _total(histogram: Any, factors: int, size: Any, rounds: int) -> dict[str, float]:
    rows = np.flatnonzero(histogram)
    total_rows = int((rows * histogram[rows]).sum())
    total_bytes = sum(size(int(row), factors) * int(histogram[row]) for row in rows)
    return {
        "rows": total_rows,
        "bytes": total_bytes,
        "rows_per_round": total_rows / rounds,
        "bytes_per_round": total_bytes / rounds,
    }


@inlined
def _alive_after(alive: Any, blocks: Any, tick: Any) -> Any:
    """How many living ticks come after this one."""
    block = (tick + 1) // _TICKS_PER_BLOCK
    total = np.int64(0)
    for t in range(tick + 1, min((block + 1) * _TICKS_PER_BLOCK, len(alive))):
        total += alive[t]
    for later in range(block + 1, len(blocks)):
        total += blocks[later]
    return total


@compiled
def _number_anew(alive: Any, blocks: Any, tick_of_item: Any, tick_of_user: Any) -> int:
    """Number the living ticks from zero in their order; the ticks of devices follow. The next free tick."""
    living_before = np.empty(len(alive) + 1, np.int64)
    living_before[0] = 0
    for t in range(len(alive)):
        living_before[t + 1] = living_before[t] + alive[t]
    for item in range(len(tick_of_item)):
        if tick_of_item[item] >= 0:
            tick_of_item[item] = living_before[tick_of_item[item]]
    for user in range(len(tick_of_user)):
        if tick_of_user[user] >= -1:
            tick_of_user[user] = living_before[tick_of_user[user] + 1] - 1
    living: int = living_before[len(alive)]
    for t in range(len(alive)):
        alive[t] = 1 if t < living else 0
    for block in range(len(blocks)):
        blocks[block] = max(0, min(_TICKS_PER_BLOCK, living - block * _TICKS_PER_BLOCK))
    return living


@compiled
def _count(recipe: Recipe, histories: Histories, n_items: int, rounds: int, rows_up: Any, rows_down: Any) -> None:
    n_users = len(histories.starts) - 1
    n_blocks = 8 * n_items // _TICKS_PER_BLOCK + 8
    alive = np.zeros(n_blocks * _TICKS_PER_BLOCK, np.uint8)
    blocks = np.zeros(n_blocks, np.int64)
    tick_of_item = np.full(n_items, -1, np.int64)
    tick_of_user = np.full(n_users, -2, np.int64)  # -2: has never been there; -1: was there before any change
    next_tick = 0
    marks = np.zeros(n_users, np.int64)
    chosen = np.empty(n_users, np.int32)
    changed = np.empty(n_items, np.int32)
    in_round = np.full(n_items, -1, np.int64)  # the last round that changed this row
    in_update = np.full(n_items, -1, np.int64)  # the last Update that had this row
    pairs = pairs_of_shard(room_for_pairs(1), 0)
    update = 0
    for r in range(rounds):
        if next_tick + n_items > len(alive):
            next_tick = _number_anew(alive, blocks, tick_of_item, tick_of_user)
        m = choose_clients(recipe, r, recipe.clients_per_round, marks, chosen)
        for place in range(m):
            user = chosen[place]
            if tick_of_user[user] == -2:
                rows_down[n_items] += 1
            else:
                rows_down[_alive_after(alive, blocks, tick_of_user[user])] += 1
            tick_of_user[user] = next_tick - 1
        client, counter, n_changed, rows = 0, 0, 0, 0
        while client < m:
            count, client, counter = next_block(recipe, chosen[:m], r, client, counter, pairs)
            draw_pairs(recipe, histories, n_items, pairs, count)
            for k in range(count):
                if pairs.counters[k] == 0:
                    update += 1
                    rows = 0
                for which in range(pairs.arrives[k]):  # none, the negative, or both
                    item = pairs.negatives[k] if which == 0 else pairs.positives[k]
                    if in_update[item] != update:
                        in_update[item] = update
                        rows += 1
                    if in_round[item] != r:
                        in_round[item] = r
                        changed[n_changed] = item
                        n_changed += 1
                if pairs.counters[k] + 1 == recipe.triples[pairs.users[k]] and pairs.arrives[k] != LOST:
                    rows_up[rows] += 1
        for place in range(n_changed):
            item = changed[place]
            old = tick_of_item[item]
            if old >= 0:
                alive[old] = 0
                blocks[old // _TICKS_PER_BLOCK] -= 1
            alive[next_tick] = 1
            blocks[next_tick // _TICKS_PER_BLOCK] += 1
            tick_of_item[item] = next_tick
            next_tick += 1
