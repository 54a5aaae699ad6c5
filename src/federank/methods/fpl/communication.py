"""Communication cost, counted per update.

What is sent, and to whom, depends on random draws, never on factors. So the communication of a run is counted exactly
by repeating its draws without the maths. A client uploads the distinct item rows of its update. It downloads the full
model (dense), or only the rows that changed since its last download (changed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.data.interactions import Profiles
from federank.federation import wire
from federank.methods.fpl.kernels import LOST, Histories, Pairs, draw_pairs, histories_of, workspace_for_pairs
from federank.methods.fpl.method import FPL, FPLModel, FPLUpdate
from federank.methods.fpl.settings import Recipe, choose_clients
from federank.privacy.population import all_shared_items
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
    followed = np.ones(n_users, dtype=np.bool_) if followed is None else followed
    workspace = workspace_for_pairs(_PAIRS_AT_ONCE)
    position = np.array([rounds.start, -1, 0, 0], dtype=np.int64)
    while position[_ROUND] < rounds.stop:
        count = _name(recipe, rounds.stop, followed, marks, chosen, position, workspace)
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


def communication_cost(rho: float, n_items: int, triples: float, pi: float) -> float:
    """CCE: number of item vectors sent per epoch, down and up, in rho client-server interactions (Anelli et al., FPL,
    2020, section 3.2)."""
    return rho * (n_items + triples * (1 + pi))


def tallied(recipe: Recipe, histories: Profiles, n_items: int, rounds: int) -> Tally:
    """The counts of the first rounds of a run."""
    tally = Tally.empty(len(recipe.triples), n_items, most_rows=2 * int(recipe.triples.max()))
    profiles = histories_of(all_shared_items(recipe.shared_profile, histories), n_items, recipe)
    for pairs in replay(recipe, profiles, n_items, range(rounds)):
        _note(recipe, pairs, tally)
    return tally


def count_communication(recipe: Recipe, histories: Profiles, n_items: int, rounds: int) -> dict[str, Any]:
    """Communication cost of the first rounds of a run: totals, means per round, and the papers' measures."""
    tally = tallied(recipe, histories, n_items, rounds)
    rows_up, rows_down = tally.rows_up, tally.rows_down
    downloads, uploads = int(rows_down.sum()), int(rows_up.sum())
    if recipe.deviation > 0:  # with noise, every update has every row, and every row changes
        rows_up, rows_down = np.zeros(n_items + 1, dtype=np.int64), np.zeros(n_items + 1, dtype=np.int64)
        rows_up[n_items], rows_down[n_items] = uploads, downloads
    elif not recipe.only_adds:  # then every round with an update changes every row
        rows_down[1:-1], rows_down[-1] = 0, rows_down[1:].sum()
    method = FPL(n_items=n_items, factors=recipe.factors, triples=1)
    model = wire.zeros(FPLModel, method)
    rho = recipe.clients_per_round * recipe.rounds_per_epoch
    triples, pi = (float(np.mean(own[recipe.participants])) for own in (recipe.triples, _sent_shares(recipe)))
    return {
        "rounds": rounds,
        "downloads": downloads,
        "uploads": uploads,
        "up": _total(rows_up, lambda rows: wire.size(wire.zeros(FPLUpdate, method, rows=rows)), rounds),
        "down_dense": traffic(downloads * n_items, downloads * wire.size_of_rows(model), rounds),
        "down_changed": _total(rows_down, lambda rows: wire.size_of_rows(model, rows), rounds),
        "papers": {
            "cce": communication_cost(rho, n_items, triples, pi),
            "freshness": recipe.rounds_per_epoch,  # updates of the shared model per epoch
            "normalised_freshness": recipe.rounds_per_epoch / len(histories.items),  # 1: every interaction updates it
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


class Tally(NamedTuple):
    """The counts so far, and the state of every row and client."""

    rows_up: LongVector  # number of updates with this many rows
    rows_down: LongVector  # number of downloads with this many changed rows
    updates: LongVector  # per item: number of updates that contain it (FedeRank, 2021, Figure 2)
    changed_in: IntVector  # per item: the last round before this one that changed it; -1: none
    there_in: IntVector  # per user: the last round that it took part in; -1: none
    changed: IntVector  # the rows changed in this round
    in_round: IntVector  # per item: the last round that changed it, this one included
    in_update: LongVector  # per item: the last update that contained it
    now: LongVector  # this round, how many rows have changed in it, this update, and its rows so far

    @classmethod
    def empty(cls, n_users: int, n_items: int, most_rows: int) -> Tally:
        """Before the first round."""
        return cls(
            np.zeros(most_rows + 1, dtype=np.int64),
            np.zeros(n_items + 1, dtype=np.int64),
            np.zeros(n_items, dtype=np.int64),
            np.full(n_items, -1, dtype=np.int32),
            np.full(n_users, -1, dtype=np.int32),
            np.empty(n_items, dtype=np.int32),
            np.full(n_items, -1, dtype=np.int32),
            np.full(n_items, -1, dtype=np.int64),
            np.array([-1, 0, 0, 0], dtype=np.int64),
        )


@compiled(allocates=False)
def _rows_since(changed_in: IntVector, round_number: int) -> Any:
    """Number of rows that changed in this round or later."""
    since, count = np.int32(round_number), np.int32(0)
    for item in range(len(changed_in)):
        count = np.int32(count + (changed_in[item] >= since))
    return count


@compiled
def _note(recipe: Recipe, pairs: Pairs, tally: Tally) -> None:
    """Count a block of pairs."""
    now, changed, update, rows = tally.now[0], tally.now[1], tally.now[2], tally.now[3]
    for k in range(len(pairs.users)):
        r, user = np.int32(pairs.rounds[k]), pairs.users[k]
        if r != now:
            for position in range(changed):
                tally.changed_in[tally.changed[position]] = now
            now, changed = r, 0
        if pairs.counters[k] == 0:
            # The client lacks the rows that changed since its last download: all rows at first.
            last = tally.there_in[user]
            tally.rows_down[-1 if last < 0 else _rows_since(tally.changed_in, last)] += 1
            tally.there_in[user] = r
            update += 1
            rows = 0
        for which in range(pairs.arrives[k]):  # none, the negative, or both
            item = pairs.negatives[k] if which == 0 else pairs.positives[k]
            if tally.in_update[item] != update:
                tally.in_update[item] = update
                tally.updates[item] += 1
                rows += 1
                if tally.in_round[item] != r:
                    tally.in_round[item] = r
                    tally.changed[changed] = item
                    changed += 1
        if pairs.counters[k] + 1 == recipe.triples[user] and pairs.arrives[k] != LOST:
            tally.rows_up[rows] += 1
    tally.now[0], tally.now[1], tally.now[2], tally.now[3] = now, changed, update, rows
