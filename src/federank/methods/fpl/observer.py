"""The observer: what an honest-but-curious server sees of each client, in bounded memory.

The server of this threat model can link a client's updates over rounds, and sees every single one. Of each row it sees
the item and the sign of the bias gradient: positive for a liked item that was sent, negative for an item that it was
compared with. Signs depend on random draws, never on factors, so the observer repeats a run's draws
(communication.py) without the maths. Its counts are therefore the same for every engine; a test compares them with
updates recorded from the reference engine.

No update is stored. Per followed user and item there is one byte (number of updates with it as a positive, at most
255) and one bit (whether it ever was a negative):

    9/8 x users x items bytes      and 8 bytes per item and per user for bookkeeping
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealVector
from federank._numerics.compiling import compiled
from federank.audit.observer import Senders, in_blocks, known_policies
from federank.federation.rng import words_wrap_around
from federank.methods.fpl.attacks import AnyView, PairsView, ShadowModel, SumsView, recovered_vectors
from federank.methods.fpl.communication import replay
from federank.methods.fpl.kernels import (
    BOTH,
    LOST,
    Pairs,
    Run,
    ShardSum,
    Sums,
    ThreadTeam,
    new_thread_team,
    play_rounds,
    sum_of_shard,
    workspace_for_sums,
)
from federank.methods.fpl.method import FPLModel, FPLUpdate
from federank.methods.fpl.settings import clients_of_round
from federank.methods.fpl.simulation import Federation, next_sum
from federank.privacy.population import Choices

_MOST = 255


class Sightings(NamedTuple):
    """The observer's counts: one row per followed user."""

    as_positive: NDArray[np.uint8]  # users x items: number of updates with a positive bias for it
    as_negative: NDArray[np.uint64]  # users x words of 64 items: whether any update had a negative bias for it
    negative_rows: LongVector  # users: rows with a negative bias, over all updates that arrived


class Observer:
    """The honest-but-curious server: follows some clients through the rounds of a run."""

    def __init__(self, federation: Federation, users: IntVector) -> None:
        n_items, n_users = len(federation.item_biases), len(federation.recipe.triples)
        self.users = users
        self.round_number = 0
        self.sightings = Sightings(
            np.zeros((len(users), n_items), dtype=np.uint8),
            np.zeros((len(users), -(-n_items // 64)), dtype=np.uint64),
            np.zeros(len(users), dtype=np.int64),
        )
        self.federation = federation
        self._row_of_user = np.full(n_users, -1, dtype=np.int32)
        self._row_of_user[users] = np.arange(len(users), dtype=np.int32)

    def watch_until(self, round_number: int) -> None:
        """Count all earlier rounds that have not been counted yet."""
        federation, rounds = self.federation, range(self.round_number, round_number)
        n_items, followed = len(federation.item_biases), self._row_of_user >= 0
        in_update, update = np.full(n_items, -1, dtype=np.int64), 0  # per row: the last update that contained it
        for pairs in replay(federation.recipe, federation.histories, n_items, rounds, followed):
            update = _note(self._row_of_user, pairs, self.sightings, in_update, update)
        self.round_number = max(round_number, self.round_number)

    def negatives_of(self, rows: IntVector) -> NDArray[np.bool_]:
        """Which items these users ever sent as negatives: users x items."""
        words = self.sightings.as_negative[rows]
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=self.sightings.as_positive.shape[1], bitorder="little")
        return bits.view(np.bool_)


@compiled(allocates=False)
def _note(row_of_user: IntVector, pairs: Pairs, seen: Sightings, in_update: LongVector, update: int) -> int:
    """Count a block of pairs as the server sees them; returns the number of the last update."""
    for k in range(len(pairs.users)):
        if pairs.counters[k] == 0:
            update += 1
        row = row_of_user[pairs.users[k]]
        if pairs.arrives[k] == LOST:
            continue
        # An item drawn twice in a round is summed by the client: the server sees one row.
        item = pairs.negatives[k]
        if in_update[item] != update:
            in_update[item] = update
            seen.as_negative[row, item >> 6] |= np.uint64(1) << np.uint64(item & 63)
            seen.negative_rows[row] += 1
        item = pairs.positives[k]
        if pairs.arrives[k] == BOTH and in_update[item] != update:
            in_update[item] = update
            if seen.as_positive[row, item] < _MOST:
                seen.as_positive[row, item] += np.uint8(1)
    return update


# One more update of a client, as the server would receive it; and one more round, as an outsider sees it.


def next_updates(federation: Federation, users: IntVector) -> Iterator[FPLUpdate]:
    """The update of each of these clients in the next round, if it were chosen and did not drop out."""
    return _next_sums(federation, (np.array([user], dtype=np.int32) for user in users))


def next_sums(federation: Federation, users: IntVector) -> Iterator[FPLUpdate]:
    """For each of these users, the sum of a next round with this user and others drawn at random."""
    return _next_sums(federation, (_cohort(federation, int(user)) for user in users))


def _cohort(federation: Federation, user: int) -> IntVector:
    recipe = federation.recipe
    rng = np.random.default_rng([recipe.seed, federation.round_number, user])
    others = recipe.participants[recipe.participants != user]
    drawn = rng.choice(others, min(recipe.clients_per_round - 1, len(others)), replace=False)
    return np.sort(np.append(drawn, user)).astype(np.int32)


def _next_sums(federation: Federation, cohorts: Iterable[IntVector]) -> Iterator[FPLUpdate]:
    """The sum of each cohort's updates, all in answer to the current model."""
    recipe, own = federation.recipe._replace(dropout=0.0), federation.user_vectors
    following = replace(federation, recipe=recipe, user_vectors=own.copy())
    following.histories = federation.histories
    for cohort in cohorts:
        with words_wrap_around():
            yield following.sum_of(cohort)
        following.user_vectors[cohort] = own[cohort]


# Passes each round's sum from the engine to the tally of its participants.


class Tally(NamedTuple):
    """Sums over a block of rounds."""

    own: FloatMatrix  # users x items: bias sums of the rounds that they took part in
    own_vectors: np.ndarray[Any, np.dtype[np.float64]]  # users x width
    taken_part: LongVector  # users: number of rounds
    biases: RealVector  # items: over all rounds
    squares: RealVector  # items
    vectors: RealVector  # width
    vector_squares: RealVector  # width
    slopes: RealVector  # one number: minus the sum of all negative bias sums
    clients: LongVector  # one number: number of participants over all rounds

    @classmethod
    def empty(cls, users: int, n_items: int, width: int) -> Tally:
        """Before the first round."""
        own, vectors = np.zeros((users, n_items), dtype=np.float32), np.zeros((users, width))
        items, columns = (np.zeros(n_items), np.zeros(n_items)), (np.zeros(width), np.zeros(width))
        counts = np.zeros(users, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls(own, vectors, counts[0], *items, *columns, np.zeros(1), counts[1])


def watch_plain(federation: Federation, rounds: int, row_of_user: IntVector, tally: Tally) -> None:
    """Play this many rounds and tally their sums."""
    sums = workspace_for_sums(1, *federation.item_vectors.shape)
    thread_team = new_thread_team(len(federation.user_vectors), workers=1)
    _watch(federation.run, sums, thread_team, federation.round_number, rounds, row_of_user, tally)
    federation.round_number += rounds


def watch_stepped(federation: Federation, rounds: int, row_of_user: IntVector, tally: Tally) -> None:
    """The same for clipped, noisy or weighted updates, or another server step than adding: round by round."""
    everything, factors = np.arange(len(federation.item_biases), dtype=np.int32), federation.recipe.factors
    dense, padded = np.zeros(len(everything), dtype=np.float32), np.zeros_like(federation.item_vectors)
    workspace, no_stamps = workspace_for_sums(1, *federation.item_vectors.shape), np.zeros(0, dtype=np.int64)
    for _ in range(rounds):
        clients = clients_of_round(federation.recipe, federation.round_number, len(row_of_user))
        sums = next_sum(federation, workspace)
        federation.take_step(sums)
        if sums.count:
            padded[:, :factors] = sums.vectors
            total = ShardSum(padded, sums.biases.copy(), no_stamps, everything)
            _tally_sum(total, len(everything), clients, row_of_user, tally, dense)


@compiled
def _watch(
    run: Run, sums: Sums, thread_team: ThreadTeam, first_round: int, rounds: int, row_of_user: IntVector, tally: Tally
) -> None:
    dense = np.zeros(len(run.item_biases), np.float32)
    for r in range(first_round, first_round + rounds):
        play_rounds(run, sums, thread_team, 0, r, 1)
        clients = thread_team.chosen[: thread_team.chosen[-1]]
        _tally_sum(sum_of_shard(sums, 0), sums.counts[0], clients, row_of_user, tally, dense)


@compiled
def _tally_sum(
    total: ShardSum, rows: int, clients: IntVector, row_of_user: IntVector, tally: Tally, dense: FloatVector
) -> None:
    """Add one sum to the totals over all rounds and over each followed participant's rounds."""
    vectors, biases, touched = total.vectors, total.biases, total.touched
    n_items, width = len(dense), len(tally.vectors)
    vector = np.zeros(width)
    for position in range(rows):
        item = touched[position]
        bias = np.float64(biases[item])
        tally.biases[item] += bias
        tally.squares[item] += bias * bias
        if bias < 0:
            tally.slopes[0] -= bias
            for f in range(width):
                vector[f] += vectors[item, f]
    for f in range(width):
        tally.vectors[f] += vector[f]
        tally.vector_squares[f] += vector[f] * vector[f]
    tally.clients[0] += len(clients)
    many = 4 * rows > n_items  # complete rows are added at once, which is faster than item by item
    if many:
        for position in range(rows):
            dense[touched[position]] = biases[touched[position]]
    for client in clients:
        row = row_of_user[client]
        if row < 0:
            continue
        tally.taken_part[row] += 1
        for f in range(width):
            tally.own_vectors[row, f] += vector[f]
        own = tally.own[row]
        if many:
            for item in range(n_items):
                own[item] += dense[item]
        else:
            for position in range(rows):
                own[touched[position]] += biases[touched[position]]
    if many:
        for position in range(rows):
            dense[touched[position]] = 0


# Sums: a server that sees only the sum over a round's clients, never a single update.


_FEWEST_ROUNDS = 50
"""Number of rounds over which sums are assumed to vary around one mean."""
_CELLS_PER_PAIR = 5
_TINY = np.finfo(np.float64).tiny


class SumsObserver:
    """A server that sees sums: plays a run from its beginning and compares each user's cohorts with all others."""

    def __init__(self, established: Federation, users: IntVector) -> None:
        self.users, self.federation, self.round_number = users, established, established.round_number
        self._row_of_user = np.full(len(established.user_vectors), -1, dtype=np.int32)
        self._row_of_user[users] = np.arange(len(users), dtype=np.int32)
        self._block = Tally.empty(len(users), *established.item_vectors.shape)
        # Of all rounds: differences from the mean in the place of `own`, and variances in the place of squares.
        self.total = Tally.empty(len(users), *established.item_vectors.shape)

    @property
    def taken_part(self) -> LongVector:
        """The number of rounds of each user."""
        return self.total.taken_part

    def watch_until(self, round_number: int) -> None:
        """Play and compare all earlier rounds that have not been played yet."""
        cells = self.total.own.size
        block = max(_FEWEST_ROUNDS, int(cells / (_CELLS_PER_PAIR * max(self.federation.steps_per_round, 1))))
        while self.round_number < round_number:
            rounds = min(block, round_number - self.round_number)
            if round_number - self.round_number - rounds < block // 2:
                rounds = round_number - self.round_number  # no short block at the end
            self._play(rounds)
            self._compare(rounds)

    def chances(self, rows: IntVector) -> FloatMatrix:
        """Users x items: each difference in standard deviations of chance."""
        variances = self.total.squares / max(self.round_number, 1)
        spread = np.sqrt(np.outer(self._unevenness(rows), np.maximum(variances, 0)))
        return np.where(spread > 0, self.total.own[rows] / np.maximum(spread, _TINY), 0).astype(np.float32)

    def vectors(self, rows: IntVector) -> FloatMatrix:
        """Users x factors: each vector as estimated from sums; the mean of all if nothing is disclosed."""
        total, factors = self.total, self.federation.recipe.factors
        slopes, clients = float(total.slopes[0]), int(total.clients[0])
        if slopes <= 0 or not clients:
            return np.zeros((len(rows), factors), dtype=np.float32)
        taken_part = np.maximum(total.taken_part, 1)
        estimated = total.own_vectors / taken_part[:, None]
        chance = total.vector_squares / max(self.round_number, 1)
        everyone = np.arange(len(estimated), dtype=np.int32)
        by_chance = np.mean(self._unevenness(everyone) / taken_part**2) * chance
        seen = np.maximum(np.mean(estimated**2, axis=0), _TINY)
        estimated *= np.clip(1 - by_chance / seen, 0, 1)  # shrink by the part that chance explains
        return (-(total.vectors / clients + estimated[rows]) / (slopes / clients))[:, :factors].astype(np.float32)

    def _unevenness(self, rows: IntVector) -> RealVector:
        """Variance of a user's summed difference, in units of one round's variance; 0 for a user in all rounds."""
        rounds, own = max(self.round_number, 1), self.taken_part[rows].astype(np.float64)
        unevenness: RealVector = own * (1 - own / rounds)
        return unevenness

    def _play(self, rounds: int) -> None:
        recipe = self.federation.recipe
        watch = watch_plain if recipe.only_adds and not recipe.one_by_one else watch_stepped
        watch(self.federation, rounds, self._row_of_user, self._block)
        self.round_number += rounds

    def _compare(self, rounds: int) -> None:
        block, total = self._block, self.total
        mean, mean_vector = block.biases / rounds, block.vectors / rounds
        others = (block.taken_part < rounds)[:, None]  # a user in all rounds has no difference: ignore rounding errors
        total.own[:] += np.where(others, block.own - np.outer(block.taken_part, mean).astype(np.float32), 0)
        total.own_vectors[:] += np.where(others, block.own_vectors - np.outer(block.taken_part, mean_vector), 0)
        total.squares[:] += block.squares - rounds * mean**2
        total.vector_squares[:] += block.vector_squares - rounds * mean_vector**2
        for name in ("taken_part", "vectors", "slopes", "clients"):
            getattr(total, name)[:] += getattr(block, name)
        for part in block:
            part[:] = 0


# Views for the attacks, a block of users at a time.

_MOST_NEIGHBOURS = 2_000


def views(
    sees: str,
    federation: Federation,
    observer: Observer,
    sums: SumsObserver | None,
    rows: IntVector,
    choices: Choices,
    shadow_model: tuple[ShadowModel | None, ShadowModel | None],
) -> Iterator[tuple[IntVector, AnyView]]:
    """What the server knows of these users (rows of the observers' counts), block by block."""
    n_items, recipe = len(federation.item_biases), federation.recipe
    factors = recipe.factors
    broadcast = FPLModel(federation.item_vectors[:, :factors].copy(), federation.item_biases.copy())
    typical = max(1, round(recipe.rounds_per_epoch * recipe.clients_per_round / len(recipe.triples)))
    compared = np.arange(min(len(observer.users), _MOST_NEIGHBOURS), dtype=np.int32)
    senders = Senders(observer.sightings.as_positive, compared if sees == "updates" else compared[:0])
    for some in in_blocks(rows, n_items):
        users = observer.users[some]
        known = broadcast, typical, known_policies(choices, users)
        if sums is not None:
            yield some, SumsView(sums.chances(some), sums.vectors(some), *known, *shadow_model)
            continue
        updates = list((next_sums if sees == "outsider" else next_updates)(federation, users))
        vectors = recovered_vectors(updates, broadcast, recipe.negative_regulariser)
        positives, negatives = observer.sightings.as_positive[some], observer.negatives_of(some)
        rows_seen = observer.sightings.negative_rows[some]
        view = PairsView(positives, negatives, rows_seen, updates, vectors, *known, None, *shadow_model)
        if sees in ("anonymous", "outsider"):
            yield some, one_update_alone(view)
        else:
            yield some, view._replace(neighbours=senders.scores(view.times_positive, some))


def one_update_alone(view: PairsView) -> PairsView:
    """The same users for a server that cannot link updates: the counts of a single update."""
    positive, negative = np.zeros_like(view.times_positive), np.zeros_like(view.seen_negative)
    rows = np.zeros_like(view.negative_rows)
    for row, update in enumerate(view.updates):
        positive[row, update.items[update.biases > 0]] = 1
        negative[row, update.items[update.biases < 0]] = True
        rows[row] = int((update.biases < 0).sum())
    return view._replace(times_positive=positive, seen_negative=negative, negative_rows=rows)
