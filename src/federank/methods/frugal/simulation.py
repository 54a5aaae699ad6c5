"""Simulation of Frugal and FCF: server and clients between two rounds, and the engines.

The method's functions are the maths (method.py, private.py). The compiled engine sums the uploads of many clients in
kernels, partition by partition; the reference engine calls the client's functions. A client keeps no vector between
rounds: it is solved again from the history whenever it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from federank._numerics.arrays import FloatMatrix, IntVector, LongVector, RealMatrix
from federank._numerics.compiling import at_once
from federank._numerics.rows import padded_width
from federank._numerics.topn import gram_matrix
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.rng import HELPER, SERVER
from federank.federation.schedule import Schedule, arriving, cohorts_of, selected
from federank.federation.secure import simulated_noise
from federank.methods.frugal.kernels import RoundContext, Sums, add_up, new_workspace, solve_users, sum_messages
from federank.methods.frugal.method import FCF, Frugal
from federank.methods.frugal.objective import refuse_singular
from federank.methods.frugal.private import PrivateFrugal, private_method
from federank.methods.frugal.private_messages import Directions, new_scratch, sum_private
from federank.methods.frugal.private_server import noisy_counts, values_of
from federank.methods.frugal.protocol import covered_items
from federank.methods.frugal.records import FrugalModel, ItemRows, SummedMessages
from federank.methods.frugal.server_update import HALF, refuse_few_items, stepped, with_support
from federank.methods.frugal.settings import DEFAULT_RATE, FrugalRules, FrugalSettings, factors_for
from federank.privacy.population import AS_HISTORIES_ARE, SharedProfiles, all_shared_items
from federank.secagg.ring import C_INT, in_ring
from federank.simulation.cluster import Spread, partition_starts
from federank.simulation.federated import EngineName, Open, Tables


def method_of(settings: FrugalSettings, n_items: int, n_users: int, participants: int) -> Frugal:
    """The method of these settings for a population."""
    if settings.guarantees:
        return private_method(settings, n_items, participants)
    rules: dict[str, Any] = {name: getattr(settings, name) for name in FrugalRules.__dataclass_fields__}
    rules |= {"n_items": n_items, "factors": factors_for(settings, n_users, n_items)}
    rules |= {"messages": settings.rounds or settings.messages * settings.cohorts}  # all rounds' sums are kept
    rules |= {"activity": settings.user_weight_exponent, "popularity": settings.item_weight_exponent}
    if settings.server == "solve":
        return Frugal(**rules)
    rate = DEFAULT_RATE if settings.learning_rate is None else settings.learning_rate
    return FCF(**rules, learning_rate=rate, beta1=settings.beta1, beta2=settings.beta2)


def schedule_of(
    settings: FrugalSettings, sizes: LongVector, uploads: IntVector | None, trace: NDArray[np.bool_] | None
) -> Schedule:
    """Who takes part when, of users who take part with so many items; `uploads` is how many each of them allows."""
    n_users = len(sizes)
    allowed = np.full(n_users, settings.messages, dtype=np.int32)
    if uploads is not None:
        allowed = np.minimum(allowed, uploads).astype(np.int32)
    able = np.flatnonzero((sizes > 0) & (allowed > 0)).astype(np.int32)
    if not len(able):
        raise SettingError(
            "No one can take part: everyone has paused, allows no message or has nothing to take part with. More "
            "history, or policies that share more, are needed."
        )
    if settings.cohorts > len(able):
        raise SettingError(
            f"cohorts is {settings.cohorts:,}, but only {len(able):,} people can take part; ask for at most as many "
            "cohorts."
        )
    rounds = settings.rounds or settings.messages * settings.cohorts
    schedule = Schedule(settings.seed, rounds, settings.online, settings.dropout, able, allowed, settings.cohorts)
    schedule = schedule._replace(cohort=cohorts_of(settings.seed, able, settings.cohorts, n_users))
    return schedule if trace is None else schedule._replace(trace=trace)


class FrugalFederation:
    """Server and clients of a simulation between two rounds."""

    def __init__(
        self,
        settings: FrugalSettings,
        profiles: Profiles,
        n_items: int,
        *,
        uploads: IntVector | None = None,
        shared_profiles: SharedProfiles = AS_HISTORIES_ARE,
        trace: NDArray[np.bool_] | None = None,
    ) -> None:
        """A federation before its first round; `profiles` are the full histories."""
        if settings.factors is not None and settings.factors > n_items:
            raise SettingError(
                f"factors is {settings.factors}, but there are only {n_items:,} items; ask for at most as many factors."
            )
        self.profiles, self.shared_profiles = profiles, shared_profiles
        self.schedule = schedule_of(settings, self.shared_profile.sizes, uploads, trace)
        n_users, participants = len(profiles.sizes), len(self.schedule.participants)
        self.method = method_of(settings, n_items, n_users, participants)
        self.rounds_on_average = settings.rounding == "mean"
        self.sent: IntVector = np.zeros(n_users, dtype=np.int32)  # uploads of each client
        self.round_number = 0
        self.state = self.method.initial_state()

    @property
    def state(self) -> Any:
        """The server's state; a checkpoint restores its arrays by the names of `tables`."""
        kind = self.method.records.state
        return kind(**{part.name: getattr(self, f"server/{part.name}") for part in wire.arrays(kind)})

    @state.setter
    def state(self, state: Any) -> None:
        for name, part in wire.values(state).items():
            setattr(self, f"server/{name}", part)

    @property
    def model(self) -> FrugalModel:
        """What clients have now."""
        return self.method.as_read(self.method.broadcast(self.state))

    @cached_property
    def shared_profile(self) -> Profiles:
        """What everyone takes part with."""
        return all_shared_items(self.shared_profiles, self.profiles)

    @property
    def is_private(self) -> bool:
        """Whether rounds are secure sums of integers."""
        return isinstance(self.method, PrivateFrugal)

    @property
    def stage(self) -> int:
        """Which upload the next round asks for: 0 for counts or popularity."""
        if self.is_private:
            return self.method.stage(self.state)
        return int(self.method.min_support == 1 or bool(self.state.weights.any()))

    @property
    def items(self) -> IntVector:
        """The items that the next uploads cover: all in uploads of counts or popularity."""
        return covered_items(self.method.min_support if self.stage else 1, self.state.weights)

    def invite(self) -> tuple[IntVector, IntVector]:
        """The clients of the next round, and those whose upload arrives."""
        asked = selected(self.schedule, self.round_number, self.sent)
        return asked, arriving(self.schedule, self.round_number, asked)

    def finish(self, asked: IntVector, sums: SummedMessages, threads: int = 1) -> None:
        """The server's part of a round."""
        method, state = self.method, self.state
        self.sent[asked] += 1
        self.round_number += 1
        if self.is_private:
            if sums.messages:
                self.state = method.server_update(state, ItemRows(rows=sums.residuals, count=sums.messages))
                if self.state.folds[0] == state.folds[0]:  # more counts would be asked for
                    counts = noisy_counts(self.state.summed, sums.messages)
                    refuse_few_items(method, int((counts > method.min_support - HALF).sum()))
        elif not self.stage:
            counted = {"counted": state.counted + sums.residuals[:, 0], "counters": state.counters + sums.messages}
            state = replace(state, **counted, folds=state.folds + 1)
            # Support is decided once everyone or every cohort has been asked.
            if state.counters[0] >= len(self.schedule.participants) or self.round_number >= self.schedule.cohorts:
                refuse_few_items(method, int((state.counted >= method.min_support).sum()))
                state = with_support(method, state)
            self.state = state
        else:
            users, cohorts = len(self.schedule.participants), self.schedule.cohorts
            self.state = stepped(method, state, sums, users, cohorts=cohorts, threads=threads, is_strict=True)

    # The interface that training needs (simulation/federated.py).

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds it takes until everyone could send one upload."""
        return self.schedule.cohorts

    @property
    def steps_per_round(self) -> float:
        """How many interactions a round learns from on average."""
        return float(self.shared_profile.sizes[self.schedule.participants].sum()) / self.schedule.cohorts

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        from federank.methods.frugal.engines import ENGINES  # made of functions on federations: imported late

        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change while rounds are played, but for what has no fixed size and follows from them."""
        server = {f"server/{name}": part for name, part in wire.values(self.state).items() if name not in _DERIVED}
        if isinstance(self.method, PrivateFrugal) and self.method.plan.joined and not self.state.joined.shape[1]:
            server["server/joined"] = np.zeros((self.method.n_items, 2 * self.method.columns))
        return Tables(server, {"sent": self.sent})

    def spread(self) -> Spread:
        """Its form on a cluster."""
        from federank.methods.frugal.engines import FrugalSpread  # as above

        return FrugalSpread(self)

    def why_diverged(self) -> str:
        """What is to blame if the item vectors are no longer finite numbers."""
        if isinstance(self.method, FCF):
            return f"learning_rate {self.method.learning_rate:g} is too large for this data; try a smaller one."
        if self.method.step == "solve":
            return "damping is too large for this alpha, or the regulariser too small; try another."
        return "initial_scale or clip is too small for 32-bit numbers; leave it out."


_DERIVED = ("ridge_starts", "ridge_items", "ridge_codes", "ridge_scales", "earlier", "newest")
"""What a simulation of one season does not read again."""


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


# The compiled engine: partitions of clients are summed side by side, then the server's step is taken.


_MAX_PARTITIONS = 16
_USERS_PER_PARTITION = 64
_MOST_SUM_BYTES = 2**29


class Partitions(NamedTuple):
    """Sums of each partition, and where partitions begin by user number."""

    starts: LongVector
    own: FloatMatrix  # partitions x items x padded factors
    squares: RealMatrix  # partitions x factors x factors
    messages: LongVector  # partitions x 1


def partitions_of(federation: FrugalFederation) -> LongVector:
    """Where each partition begins, by user number, and where the last one ends."""
    able, method = federation.schedule.participants, federation.method
    fitting = _MOST_SUM_BYTES // (4 * method.n_items * padded_width(method.factors + 1))
    count = max(1, min(_MAX_PARTITIONS, len(able) // _USERS_PER_PARTITION, fitting))
    return partition_starts(able, len(federation.sent), count)


def workspace_for(factors: int, n_items: int, starts: LongVector) -> Partitions:
    """Arrays for the sums of these partitions."""
    count, width = len(starts) - 1, padded_width(factors + 1)
    return Partitions(
        starts,
        np.empty((count, n_items, width), dtype=np.float32),
        np.empty((count, factors + 1, factors + 1)),
        np.empty((count, 1), dtype=np.int64),
    )


def context_of(method: Frugal, model: FrugalModel, threads: int = 1) -> RoundContext:
    """What every client of a round works out alike, once for all of them; the model has the covered items alone."""
    vectors, weights, regulariser = model.vectors, model.weights, float(model.regulariser[0])
    padded = np.zeros((len(vectors), padded_width(method.factors + 1)), dtype=np.float32)
    padded[:, : method.factors] = vectors
    gram = gram_matrix(vectors, weights, threads)
    plain_gram = gram_matrix(vectors, np.ones(len(vectors), dtype=np.float32), threads) if method.clip else gram
    sides = float(method.objective.unobserved) * gram + regulariser * np.eye(method.factors)
    alike = method.objective.liked == method.objective.unobserved
    refuse_singular(sides)
    inverse = np.linalg.inv(sides).astype(np.float64) if alike else sides
    activity, clip = method.user_weight_exponent, method.clip or 0.0
    return RoundContext(method.objective, padded, weights, gram, plain_gram, regulariser, inverse, activity, clip)


Watch = Callable[[IntVector, SummedMessages], None]
"""Sees a round before the server's step: who has answered, and the sums of their uploads."""

Fill = Callable[[RoundContext, Profiles, IntVector, Partitions], None]
"""Sums the uploads of some clients (ascending) into the arrays of their partitions."""


def play(federation: FrugalFederation, rounds: int, threads: int = 1, watch: Watch | None = None) -> None:
    """Play this many rounds of a federation on this many threads; the result does not depend on how many."""

    def fill(context: RoundContext, profiles: Profiles, clients: IntVector, workspace: Partitions) -> None:
        sum_partitions(context, profiles, clients, workspace, threads)

    play_with(federation, rounds, fill, threads, watch)


def play_with(
    federation: FrugalFederation, rounds: int, fill: Fill, threads: int = 1, watch: Watch | None = None
) -> None:
    """Play this many rounds, the partitions' sums coming from wherever the clients are."""
    for _ in range(rounds):
        asked, answering = federation.invite()
        if federation.is_private:
            sums = sum_with_noise(federation, answering, threads)
        elif not federation.stage:
            sums = _sum_counts(federation, answering)
        else:
            sums = _sum_round(federation, answering, fill, threads)
        if watch is not None:
            watch(answering, sums)
        federation.finish(asked, sums, threads)
    if not rounds and not federation.is_private:  # whatever needs compiling is compiled now
        _sum_round(federation, np.zeros(0, dtype=np.int32), fill, 1)


def _sum_counts(federation: FrugalFederation, clients: IntVector) -> SummedMessages:
    """How many of these clients have each item."""
    starts, items = federation.shared_profile
    there = np.zeros(len(starts) - 1, dtype=np.bool_)
    there[clients] = True
    counted = np.bincount(items[np.repeat(there, np.diff(starts))], minlength=federation.method.n_items)
    return SummedMessages(counted[:, None].astype(np.float64), np.full((1, 1), float(len(clients))), len(clients))


def _sum_round(federation: FrugalFederation, clients: IntVector, fill: Fill, threads: int) -> SummedMessages:
    """The sums of these clients' uploads: partition by partition, then items on threads."""
    method, items, profiles = federation.method, federation.items, federation.shared_profile
    model = federation.model
    if len(items) < method.n_items:
        model, profiles = wire.rows_of(model, items), restricted(profiles, items, method.n_items)
    workspace = workspace_for(method.factors, len(items), partitions_of(federation))
    context = context_of(method, model, threads)
    fill(context, profiles, clients, workspace)
    squares = workspace.squares.sum(axis=0)
    summed = np.empty((len(items), method.factors + 1))

    def add_items(worker: int) -> None:
        first, last = worker * len(items) // threads, (worker + 1) * len(items) // threads
        add_up(workspace.own, context.vectors, squares, float(method.objective.unobserved), first, last, summed)

    at_once(add_items, threads)
    return SummedMessages(summed, squares, int(workspace.messages.sum()))


def sum_partitions(
    context: RoundContext, profiles: Profiles, clients: IntVector, workspace: Partitions, threads: int = 1
) -> None:
    """Sum the uploads of these clients, ascending, into their partitions' arrays, on this many threads."""
    width, count = (0,) * context.vectors.shape[1], len(workspace.starts) - 1
    bounds = np.searchsorted(clients, workspace.starts)

    def work(worker: int) -> None:
        scratch = new_workspace(len(context.gram), len(width))
        for partition in range(worker, count, threads):
            total = Sums(workspace.own[partition], workspace.squares[partition], workspace.messages[partition])
            for empty in total:
                empty[:] = 0
            theirs = clients[bounds[partition] : bounds[partition + 1]]
            sum_messages(context, profiles.starts, profiles.items, theirs, total, scratch, width)

    at_once(work, min(threads, count))


def home_vectors(federation: FrugalFederation, threads: int = 1) -> FloatMatrix:
    """Everyone's vector at home: solved from the full history and the model as clients have it."""
    return vectors_at_home(federation.method, federation.model, federation.profiles, threads)


def vectors_at_home(method: Frugal, model: FrugalModel, profiles: Profiles, threads: int = 1) -> FloatMatrix:
    """The vectors that explain these profiles best, with the model as it is."""
    context = context_of(method, model, threads)
    n_users, width = len(profiles.starts) - 1, context.vectors.shape[1]
    solved = np.zeros((n_users, method.factors), dtype=np.float32)

    def work(worker: int) -> None:
        first, last = worker * n_users // threads, (worker + 1) * n_users // threads
        workspace = new_workspace(method.factors, width)
        solve_users(context, profiles.starts, profiles.items, first, last, solved, workspace, (0,) * width)

    at_once(work, threads)
    return solved


# Rounds whose sums carry noise: everyone's uploads of integers, added up in the ring on several threads.


_USERS_AT_A_TIME = 2**15
_LEAST = 1e-20


def sum_with_noise(federation: FrugalFederation, clients: IntVector, threads: int = 1) -> SummedMessages:
    """What two servers publish of these clients' uploads in the federation's next round."""
    return published_sum(federation, sum_in_ring(federation, clients, threads), len(clients))


def published_sum(federation: FrugalFederation, total: NDArray[np.uint32], count: int) -> SummedMessages:
    """A round's sum of integers with the noise of both servers, in units of an upload's length."""
    if count:
        for server in (SERVER, HELPER):
            total = total + in_ring(noise_of(federation, len(total), server))
    return SummedMessages(values_of(total, len(total) // len(federation.items)), np.zeros((0, 0)), count)


def noise_of(federation: FrugalFederation, length: int, server: int) -> LongVector:
    """One server's noise on the next round's sum, from named draws: in the service it is the operating system's."""
    method = federation.method
    deviation = method.noises[federation.stage]
    return simulated_noise(method.seed, federation.round_number, deviation, length, server)


def sum_in_ring(federation: FrugalFederation, clients: IntVector, threads: int = 1) -> NDArray[np.uint32]:
    """The sum of these clients' uploads in the federation's next round, before any noise."""
    method, number, stage, items = federation.method, federation.round_number, federation.stage, federation.items
    known, profiles = wire.rows_of(federation.model, items).directions, federation.shared_profile
    if len(items) < method.n_items:
        profiles = restricted(profiles, items, method.n_items)
    columns = method.columns if stage else 1
    if federation.rounds_on_average:
        mean = np.zeros((len(items), columns))
        for start in range(0, len(clients), _USERS_AT_A_TIME):
            some = _histories(profiles, clients[start : start + _USERS_AT_A_TIME], len(items))
            mean += _in_common(known, some) if stage else _popularity(some)
        return in_ring(np.rint(C_INT * mean.ravel()).astype(np.int64))
    totals = np.zeros((threads, len(items) * columns), dtype=np.uint32)

    def work(worker: int) -> None:
        scratch, some = new_scratch(len(items), columns), clients[worker::threads]
        sum_private(known, profiles.starts, profiles.items, some, method.seed, number, stage, totals[worker], scratch)

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
