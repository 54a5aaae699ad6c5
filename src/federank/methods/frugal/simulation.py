"""A federation of few messages, in memory: the shared model, how many messages everyone has sent, and how far it is.

What an engine works on. `item_vectors`, `regulariser`, `sketch`, `mean` and `square` are the server's (see
server_update.py); profiles and `spent` are the clients'. A client keeps no vector between rounds: it is
solved again from the history whenever it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix, RealVector
from federank._numerics.compiling import at_once
from federank._numerics.rows import padded_width
from federank._numerics.topn import gram_matrix
from federank.data.interactions import Profiles
from federank.methods.frugal.kernels import RoundContext, Sums, add_up, new_workspace, solve_users, sum_messages
from federank.methods.frugal.objective import refuse_singular
from federank.methods.frugal.private_messages import Directions, directions_of, new_scratch, sum_private
from federank.methods.frugal.protocol import choose_cohort, is_counting, published, supported_items, who_answers
from federank.methods.frugal.server_steps import SummedMessages
from federank.methods.frugal.server_update import FrugalState, first_shared, fold, private_columns, published_sum
from federank.methods.frugal.settings import FrugalRecipe, FrugalSettings
from federank.privacy.population import AS_HISTORIES_ARE, all_shared_items
from federank.secagg.ring import C_INT, in_ring
from federank.simulation.cluster import Spread, partition_starts
from federank.simulation.federated import EngineName, Open, Tables


@dataclass(eq=False)
class FrugalFederation:
    """Server and clients of a simulation between two rounds."""

    recipe: FrugalRecipe
    profiles: Profiles  # full histories
    item_vectors: FloatMatrix
    regulariser: RealVector  # one number
    sketch: RealMatrix
    mean: FloatMatrix
    square: FloatMatrix
    weights: FloatVector
    counts: RealVector
    received: RealVector  # one number: how many messages the sketch stands for
    spent: IntVector  # messages that each client has sent
    seen: FloatMatrix
    through: FloatMatrix
    round_number: int = 0

    @classmethod
    def established(cls, settings: FrugalSettings, recipe: FrugalRecipe, profiles: Profiles) -> FrugalFederation:
        """A federation before its first round."""
        first = first_shared(recipe, settings.initial_scale)
        spent = np.zeros(len(profiles.starts) - 1, dtype=np.int32)
        regulariser, received = np.array([first.regulariser]), np.array([first.received])
        server = (
            first.vectors,
            regulariser,
            first.sketch,
            first.mean,
            first.square,
            first.weights,
            first.counts,
            received,
        )
        return cls(recipe, profiles, *server, spent, first.seen, first.through)

    @cached_property
    def shared_profile(self) -> Profiles:
        """What everyone takes part with."""
        return all_shared_items(self.recipe.shared_profile, self.profiles)

    @property
    def shared(self) -> FrugalState:
        """What the server holds, as the protocol speaks of it."""
        return FrugalState(
            self.item_vectors,
            float(self.regulariser[0]),
            self.sketch,
            self.mean,
            self.square,
            self.weights,
            self.counts,
            float(self.received[0]),
            self.round_number,
            self.seen,
            self.through,
        )

    def covering(self) -> FrugalFederation:
        """The same federation over the items that its next messages cover."""
        items = supported_items(self.recipe, self.weights)
        if len(items) == self.recipe.n_items or is_counting(self.recipe, self.weights):
            return self
        return replace(
            self,
            recipe=self.recipe._replace(n_items=len(items), shared_profile=AS_HISTORIES_ARE, min_support=1),
            profiles=restricted(self.shared_profile, items, self.recipe.n_items),
            item_vectors=self.item_vectors[items],
            weights=self.weights[items],
        )

    def take(self, shared: FrugalState) -> None:
        """Keep what the server holds now."""
        self.item_vectors, self.sketch = shared.vectors, shared.sketch
        self.mean, self.square = shared.mean, shared.square
        self.weights, self.counts = shared.weights, shared.counts
        self.regulariser, self.received = np.array([shared.regulariser]), np.array([shared.received])
        self.round_number = shared.round_number
        self.seen, self.through = shared.seen, shared.through

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds it takes until everyone could send one message."""
        return self.recipe.cohorts

    @property
    def steps_per_round(self) -> float:
        """How many interactions a round learns from on average."""
        return float(self.shared_profile.sizes[self.recipe.participants].sum()) / self.recipe.cohorts

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        from federank.methods.frugal.reference import ENGINES  # made of functions on federations: looked up late

        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        server = ("item_vectors", "regulariser", "sketch", "mean", "square", "weights", "counts", "received")
        names = (*server, "seen", "through") if self.recipe.ridge else server
        return Tables({name: getattr(self, name) for name in names}, {"spent": self.spent})

    def spread(self) -> Spread:
        """Its form on a cluster."""
        from federank.methods.frugal.cluster import FrugalSpread  # made of functions on federations: imported late

        return FrugalSpread(self)

    def why_diverged(self) -> str:
        """What is to blame if the item vectors are no longer finite numbers."""
        if self.recipe.step == "adam":
            return f"learning_rate {self.recipe.learning_rate:g} is too large for this data; try a smaller one."
        if self.recipe.step == "solve":
            return "damping is too large for this alpha, or the regulariser too small; try another."
        return "initial_scale or clip is too small for 32-bit numbers; leave it out."


def restricted(profiles: Profiles, items: IntVector, n_items: int) -> Profiles:
    """The same profiles with these items alone, by their places among them."""
    places = np.full(n_items, -1, dtype=np.int32)
    places[items] = np.arange(len(items))
    theirs = places[profiles.items]
    before = np.concatenate(([0], np.cumsum(theirs >= 0)))
    starts, own = before[profiles.starts], theirs[theirs >= 0]
    # Kernels are compiled once for arrays of one kind.
    starts.flags.writeable, own.flags.writeable = profiles.starts.flags.writeable, profiles.items.flags.writeable
    return Profiles(starts, own)


# Rounds whose sums carry noise: everyone's messages of integers, added up in the ring on several threads.


_USERS_AT_A_TIME = 2**15
_LEAST = 1e-20


def sum_with_noise(federation: FrugalFederation, clients: IntVector, threads: int = 1) -> SummedMessages:
    """What two servers publish of these clients' messages in the federation's next round."""
    total = sum_in_ring(federation, clients, threads)
    return published_sum(federation.recipe, federation.round_number, total, len(clients))


def sum_in_ring(federation: FrugalFederation, clients: IntVector, threads: int = 1) -> NDArray[np.uint32]:
    """The sum of these clients' messages in the federation's next round, before any noise."""
    recipe, number, shared_profile = federation.recipe, federation.round_number, federation.shared_profile
    known = directions_of(published(recipe, federation.item_vectors), federation.weights)
    columns = private_columns(recipe, number)
    if recipe.rounds_on_average:
        mean = np.zeros((recipe.n_items, columns))
        for start in range(0, len(clients), _USERS_AT_A_TIME):
            some = _histories(shared_profile, clients[start : start + _USERS_AT_A_TIME], recipe.n_items)
            mean += _popularity(some) if number == 0 else _in_common(known, some)
        return in_ring(np.rint(C_INT * mean.ravel()).astype(np.int64))
    totals = np.zeros((threads, recipe.n_items * columns), dtype=np.uint32)

    def work(worker: int) -> None:
        workspace = new_scratch(recipe.n_items, columns)
        some = clients[worker::threads]
        sum_private(
            known, shared_profile.starts, shared_profile.items, some, recipe.seed, number, totals[worker], workspace
        )

    at_once(work, threads)
    summed: NDArray[np.uint32] = totals.sum(axis=0, dtype=np.uint32)
    return summed


def _histories(profiles: Profiles, clients: IntVector, n_items: int) -> sparse.csr_matrix:
    """Users x items: 1 where a user has an item."""
    sizes = profiles.sizes[clients]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    places = np.repeat(profiles.starts[clients] - starts[:-1], sizes) + np.arange(starts[-1])
    return sparse.csr_matrix((np.ones(len(places)), profiles.items[places], starts), shape=(len(clients), n_items))


def _popularity(histories: sparse.csr_matrix) -> RealMatrix:
    """The sum of p / sqrt(n)."""
    sizes = np.maximum(np.diff(histories.indptr), 1)
    summed: RealMatrix = np.asarray(histories.T @ (1 / np.sqrt(sizes)))[:, None]
    return summed


def _in_common(known: Directions, histories: sparse.csr_matrix) -> RealMatrix:
    """Sum of c x' / (|c| |x|) with c = D p - (q . D p) q and x = V'c (private.py), with no matrix of c."""
    own = histories @ sparse.diags(known.scales)  # D p, a row for each user
    popular = own @ known.popular
    lengths = own.power(2).sum(axis=1).A1 - popular**2 * (2 - known.popular @ known.popular)
    pointed = own @ known.wanted - np.outer(popular, known.wanted.T @ known.popular)
    reach = (pointed**2).sum(axis=1)
    speaks = (lengths > _LEAST) & (reach > _LEAST)
    pointed *= np.where(speaks, 1 / np.sqrt(np.where(speaks, lengths * reach, 1.0)), 0.0)[:, None]
    summed: RealMatrix = own.T @ pointed - np.outer(known.popular, popular @ pointed)
    return summed


# The compiled engine of few messages: partitions of clients are summed side by side, then the server's step is taken.


_MAX_PARTITIONS = 16
_USERS_PER_PARTITION = 64
_MOST_SUM_BYTES = 2**29


class Partitions(NamedTuple):
    """Sums of each partition, and where partitions begin by user number."""

    starts: LongVector
    own: FloatMatrix  # partitions x items x padded factors
    squares: RealMatrix  # partitions x factors x factors
    messages: LongVector  # partitions x 1


def partitions_of(recipe: FrugalRecipe, n_users: int) -> LongVector:
    """Where each partition begins, by user number, and where the last one ends."""
    able = len(recipe.participants)
    fitting = _MOST_SUM_BYTES // (4 * recipe.n_items * padded_width(recipe.factors + 1))
    count = max(1, min(_MAX_PARTITIONS, able // _USERS_PER_PARTITION, fitting))
    return partition_starts(recipe.participants, n_users, count)


def as_broadcast(
    recipe: FrugalRecipe,
    vectors: FloatMatrix,
    weights: FloatVector,
    regulariser: float,
    threads: int = 1,
) -> RoundContext:
    """What every client of a round works out alike, once for all of them."""
    width = padded_width(recipe.factors + 1)
    padded = np.zeros((len(vectors), width), dtype=np.float32)
    padded[:, : recipe.factors] = vectors
    gram = gram_matrix(vectors, weights, threads)
    unweighted = np.ones(len(vectors), dtype=np.float32)
    plain_gram = gram_matrix(vectors, unweighted, threads) if recipe.clip > 0 else gram
    sides = float(recipe.objective.unobserved) * gram + regulariser * np.eye(recipe.factors)
    alike = recipe.objective.liked == recipe.objective.unobserved
    refuse_singular(sides)
    inverse = np.linalg.inv(sides).astype(np.float64) if alike else sides
    return RoundContext(
        recipe.objective,
        padded,
        weights,
        gram,
        plain_gram,
        regulariser,
        inverse,
        recipe.activity,
        recipe.clip,
    )


Watch = Callable[[IntVector, SummedMessages], None]
"""Sees a round before it is folded: who has answered, and the sums of their messages."""

Fill = Callable[[FrugalFederation, RoundContext, IntVector, Partitions], None]
"""Sums the messages of some clients (ascending) into the arrays of their partitions."""


def play(federation: FrugalFederation, rounds: int, threads: int = 1, watch: Watch | None = None) -> None:
    """Play this many rounds of a federation on this many threads; the result does not depend on how many."""

    def fill(played: FrugalFederation, context: RoundContext, clients: IntVector, workspace: Partitions) -> None:
        sum_partitions(played.recipe, played.shared_profile, context, clients, workspace, threads)

    play_with(federation, rounds, fill, threads, watch)


def play_with(
    federation: FrugalFederation, rounds: int, fill: Fill, threads: int = 1, watch: Watch | None = None
) -> None:
    """Play this many rounds, the partitions' sums coming from wherever the clients are."""
    for _ in range(rounds):
        _play_round(federation, fill, threads, watch)
    if not rounds and federation.recipe.private is None:  # whatever needs compiling is compiled now
        _sum_round(federation.covering(), _starts(federation), np.zeros(0, dtype=np.int32), fill, 1)


def home_vectors(federation: FrugalFederation, threads: int = 1) -> FloatMatrix:
    """Everyone's vector at home: solved from the full history and the model as published."""
    recipe = federation.recipe
    vectors = published(recipe, federation.item_vectors)
    model = vectors, federation.weights, float(federation.regulariser[0])
    return vectors_at_home(recipe, *model, federation.profiles, threads)


def vectors_at_home(
    recipe: FrugalRecipe,
    item_vectors: FloatMatrix,
    weights: FloatVector,
    regulariser: float,
    profiles: Profiles,
    threads: int = 1,
) -> FloatMatrix:
    """The vectors that explain these profiles best, with the item vectors as they are."""
    context = as_broadcast(recipe, item_vectors, weights, regulariser, threads)
    n_users, width = len(profiles.starts) - 1, context.vectors.shape[1]
    solved = np.zeros((n_users, recipe.factors), dtype=np.float32)

    def work(worker: int) -> None:
        first, last = worker * n_users // threads, (worker + 1) * n_users // threads
        workspace = new_workspace(recipe.factors, width)
        solve_users(context, profiles.starts, profiles.items, first, last, solved, workspace, (0,) * width)

    at_once(work, threads)
    return solved


def _starts(federation: FrugalFederation) -> LongVector:
    return partitions_of(federation.recipe, len(federation.spent))


def workspace_for(recipe: FrugalRecipe, starts: LongVector) -> Partitions:
    """Arrays for the sums of these partitions."""
    count, width = len(starts) - 1, padded_width(recipe.factors + 1)
    return Partitions(
        starts,
        np.empty((count, recipe.n_items, width), dtype=np.float32),
        np.empty((count, recipe.factors + 1, recipe.factors + 1)),
        np.empty((count, 1), dtype=np.int64),
    )


def _play_round(federation: FrugalFederation, fill: Fill, threads: int, watch: Watch | None) -> None:
    recipe, number = federation.recipe, federation.round_number
    asked = choose_cohort(recipe, number, federation.spent)
    answering = who_answers(recipe, number, asked)
    if is_counting(recipe, federation.weights):
        sums = _sum_counts(federation, answering)
    elif recipe.private is not None:
        sums = sum_with_noise(federation.covering(), answering, threads)
    else:
        sums = _sum_round(federation.covering(), _starts(federation), answering, fill, threads)
    if watch is not None:
        watch(answering, sums)
    federation.spent[asked] += 1
    shared = federation.shared
    fold(recipe, shared, sums, threads)
    federation.take(shared)


def _sum_counts(federation: FrugalFederation, clients: IntVector) -> SummedMessages:
    """How many of these clients have each item."""
    starts, items = federation.shared_profile
    there = np.zeros(len(starts) - 1, dtype=np.bool_)
    there[clients] = True
    counted = np.bincount(items[np.repeat(there, np.diff(starts))], minlength=federation.recipe.n_items)
    return SummedMessages(counted[:, None].astype(np.float64), np.full((1, 1), float(len(clients))), len(clients))


def _sum_round(
    federation: FrugalFederation, starts: LongVector, clients: IntVector, fill: Fill, threads: int
) -> SummedMessages:
    """The sums of these clients' messages: partition by partition, then items on threads."""
    recipe = federation.recipe
    workspace = workspace_for(recipe, starts)
    model = published(recipe, federation.item_vectors), federation.weights, float(federation.regulariser[0])
    context = as_broadcast(recipe, *model, threads)
    fill(federation, context, clients, workspace)
    squares = workspace.squares.sum(axis=0)
    summed = np.empty((recipe.n_items, recipe.factors + 1))

    def add_items(worker: int) -> None:
        first, last = worker * recipe.n_items // threads, (worker + 1) * recipe.n_items // threads
        add_up(workspace.own, context.vectors, squares, float(recipe.objective.unobserved), first, last, summed)

    at_once(add_items, threads)
    return SummedMessages(summed, squares, int(workspace.messages.sum()))


def sum_partitions(
    recipe: FrugalRecipe,
    profiles: Profiles,
    context: RoundContext,
    clients: IntVector,
    workspace: Partitions,
    threads: int = 1,
) -> None:
    """Sum the messages of these clients, ascending, into their partitions' arrays, on this many threads."""
    width, count = (0,) * context.vectors.shape[1], len(workspace.starts) - 1
    bounds = np.searchsorted(clients, workspace.starts)

    def work(worker: int) -> None:
        scratch = new_workspace(recipe.factors, len(width))
        for partition in range(worker, count, threads):
            total = Sums(workspace.own[partition], workspace.squares[partition], workspace.messages[partition])
            for empty in total:
                empty[:] = 0
            theirs = clients[bounds[partition] : bounds[partition + 1]]
            sum_messages(context, profiles.starts, profiles.items, theirs, total, scratch, width)

    at_once(work, min(threads, count))
