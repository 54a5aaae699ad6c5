"""A simulation of FedRec: what server and clients hold between two rounds, and the engines.

`item_vectors` (V) and `implicit_vectors` (W, without rows for PMF) are the server's; `user_vectors` (U), the ratings
and `participations` are the clients'. Rows are padded (_numerics/rows.py); the padding stays zero. Without a federation
the same steps are taken, by all users in an order that is drawn again for each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, LongVector
from federank._numerics.rows import padded_width
from federank.checks import Settings, setting
from federank.data.interactions import Interactions, Profiles
from federank.errors import SettingError
from federank.federation.method import Client, ItemGradients, UserVector
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS, USER_FACTORS, uniform_rows, words_wrap_around
from federank.methods.fedrec import kernels
from federank.methods.fedrec.kernels import AHEAD, Raters, RatingRun, Sums, Workspace
from federank.methods.fedrec.method import FedRecSettings, rating_recipe
from federank.methods.fedrec.reference import (
    Computed,
    ImplicitModel,
    RatingModel,
    RatingRecipe,
    compute_ratings,
    stepped,
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


@dataclass(frozen=True, kw_only=True)
class PMFSettings(FedRecSettings, Settings):
    """Settings of a simulation of PMF."""

    style: Literal["stochastic", "batch"] = "stochastic"
    """One client per round, whose vector moves with every rating; or all clients, with mean gradients."""
    federated: bool = setting(True, paper=True)
    """Train in rounds of a federation, or centrally on all ratings."""
    iterations: int = setting(100, 1)
    """Number of passes over all ratings."""
    client_rate: Literal["participation", "iteration"] = setting("participation", paper=True)
    """A client's learning rate falls when it takes part (the authors' code) or with iterations (the paper)."""
    local_ratings: Literal["rated", "all"] = setting("rated", paper=True)
    """Local passes go over the user's ratings (the authors' code), or also over the sampled items with the user's mean
    (all: the paper, Algorithm 3 with Eq. 7)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rho > 0 and not self.federated:
            raise SettingError(
                f"rho is {self.rho:g}, but without a federation nothing is sent that virtual ratings could hide; "
                "choose rho 0, or federated."
            )

    def recipe(self, sizes: LongVector, n_items: int) -> RatingRecipe:
        """The settings resolved for users who have rated this many items."""
        names = ("style", "federated", "client_rate", "local_ratings")
        return rating_recipe(self, sizes, n_items, **{name: getattr(self, name) for name in names})

    def without_effect(self) -> dict[str, str]:
        """The settings that do nothing beside the others, each with the reason."""
        predicted = ("t_predict", "t_local", "filling_start", "local_training", "local_ratings")
        idle: dict[str, str] = {}
        if self.rho == 0:
            filling = () if self.filling == "none" else ("filling",)
            idle = dict.fromkeys((*filling, "sampling", *predicted), "rho is 0, so there are no virtual ratings")
        elif self.filling != "hybrid":
            idle = dict.fromkeys(predicted, f"filling is {self.filling}, so virtual ratings are not predicted")
        if self.style == "batch" or not self.federated:
            idle["client_rate"] = "it belongs to the stochastic style of a federation"
        return idle


@dataclass(frozen=True, kw_only=True)
class SVDPlusPlusSettings(PMFSettings):
    """Settings of a simulation of SVD++."""

    implicit: ClassVar[bool] = True
    style: Literal["stochastic"] = "stochastic"
    """One client a round, whose vectors move with every rating."""


@dataclass(eq=False)
class RatingFederation:
    """Server and clients of a simulation between two rounds."""

    tables_of_users: ClassVar = ("means", "user_vectors", "participations")
    recipe_of_users: ClassVar = ("virtual",)

    recipe: RatingRecipe
    profiles: Profiles
    ratings: FloatVector  # beside the profiles' items
    means: FloatVector  # of each user's ratings
    item_vectors: FloatMatrix
    implicit_vectors: FloatMatrix
    user_vectors: FloatMatrix
    participations: IntVector
    round_number: int = 0

    @classmethod
    def established(cls, settings: PMFSettings, data: Interactions) -> RatingFederation:
        """A federation before its first round: the server and every client draw their first values."""
        assert data.ratings is not None, "ratings are learnt from ratings"
        recipe = settings.recipe(data.profiles.sizes, data.n_items)
        totals = np.bincount(data.users, weights=data.ratings, minlength=data.n_users)
        sizes, width = np.maximum(data.profiles.sizes, 1), padded_width(settings.factors)

        def first_values(rows: int, purpose: int) -> FloatMatrix:
            span, seed = settings.initial_range, settings.seed
            return uniform_rows(rows, settings.factors, seed=seed, purpose=purpose, span=span, width=width)

        return cls(
            recipe,
            data.profiles,
            data.ratings,
            (totals / sizes).astype(np.float32),
            first_values(data.n_items, ITEM_FACTORS),
            first_values(data.n_items if recipe.implicit else 0, IMPLICIT_FACTORS),
            first_values(data.n_users, USER_FACTORS),
            np.zeros(data.n_users, dtype=np.int32),
        )

    @property
    def iteration(self) -> int:
        """The number of iterations that are over."""
        return self.round_number // self.recipe.rounds_per_epoch

    @property
    def broadcast(self) -> RatingModel:
        """What clients receive in the next round: a copy."""
        V, W = (table[:, : self.recipe.factors].copy() for table in (self.item_vectors, self.implicit_vectors))
        about = np.ones(len(V), dtype=np.int8), np.array([self.iteration], dtype=np.int32)
        return ImplicitModel(V, *about, W) if self.recipe.implicit else RatingModel(V, *about)

    def client(self, user: int) -> Client:
        """What one client holds: a copy."""
        here = slice(self.profiles.starts[user], self.profiles.starts[user + 1])
        own = self.profiles.items[here].copy(), self.ratings[here].copy()
        vector = UserVector(self.user_vectors[user, : self.recipe.factors].copy())
        return Client(self.recipe.seed, user, self.round_number, *own, state=vector)

    def computed(self, user: int, broadcast: RatingModel) -> Computed:
        """One client's part of the next round, by the readable steps."""
        times = int(self.participations[user]) if self.recipe.rate_by_participation else None
        return compute_ratings(self.recipe, self.client(user), broadcast, int(self.recipe.virtual[user]), times)

    def update(self, user: int, broadcast: RatingModel) -> ItemGradients:
        """What one client sends; its own vector moves."""
        result = self.computed(user, broadcast)
        self.user_vectors[user, : self.recipe.factors] = result.vector
        self.participations[user] += 1
        return result.update

    def take_step(self, sums: Sums) -> None:
        """The server's part of a batch round: every item moves by the mean of its gradients."""
        counts = sums.counts.astype(np.float64)
        self.item_vectors[:] = stepped(self.recipe, self.iteration, self.item_vectors, sums.vectors, counts)
        self.round_number += 1

    def spread(self) -> Spread:
        """Its form on a cluster."""
        return RatingSpread(self)

    def receive(self, message: tuple[int, FloatMatrix]) -> None:
        """Set the round, and all of V."""
        self.round_number, self.item_vectors[:] = message

    def sum_of(self, clients: IntVector) -> Sums:
        """The sums of these clients' gradients in a batch round; their vectors move."""
        sums = no_sums(self)
        kernels.sum_pmf_batch(self.run, sums, self.workspace, self.round_number, clients)
        return sums

    @cached_property
    def workspace(self) -> Workspace:
        """Working memory for one client, as large as the largest of them needs."""
        sizes, (n_items, width) = self.profiles.sizes, self.item_vectors.shape
        most = int((sizes + self.recipe.virtual).max(initial=0))
        most_rated = int(sizes.max(initial=0)) if self.recipe.implicit else 0
        return Workspace(
            marks=np.zeros(n_items, dtype=np.int64),
            calls=np.zeros(1, dtype=np.int64),
            items=np.zeros(most + AHEAD, dtype=np.int32),
            values=np.empty(most, dtype=np.float32),
            own=np.empty((most_rated, width), dtype=np.float32),
            trial=np.empty((most_rated, width), dtype=np.float32),
        )

    @property
    def run(self) -> RatingRun:
        """The arguments of the kernels."""
        raters = Raters(self.profiles, self.ratings, self.means, self.participations)
        width = (0,) * self.item_vectors.shape[1]
        return RatingRun(self.recipe, raters, self.item_vectors, self.implicit_vectors, self.user_vectors, width)

    @property
    def rounds_per_epoch(self) -> int:
        """How many rounds make an iteration."""
        return self.recipe.rounds_per_epoch

    @property
    def steps_per_round(self) -> float:
        """How many ratings, virtual ones included, a round learns from on average."""
        everyone = self.recipe.participants
        per_client = float(np.mean(self.profiles.sizes[everyone] + self.recipe.virtual[everyone]))
        return per_client * self.recipe.clients_per_round

    @property
    def engines(self) -> Mapping[EngineName, Open]:
        """The engines that can play its rounds."""
        return ENGINES

    def tables(self) -> Tables:
        """The arrays that change while rounds are played."""
        return Tables(
            server={"item_vectors": self.item_vectors, "implicit_vectors": self.implicit_vectors},
            clients={"user_vectors": self.user_vectors, "participations": self.participations},
        )

    def why_diverged(self) -> str:
        """What is to blame if the factors are no longer finite numbers."""
        return f"learning_rate {self.recipe.learning_rate:g} is too large for this data; try a smaller one."


# The compiled engine: prepares what the kernels need, and calls the one that fits the recipe.


def play_compiled(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the compiled kernels."""
    recipe = federation.recipe
    if recipe.batch:
        for _ in range(rounds):
            federation.take_step(federation.sum_of(recipe.participants))
        return
    play = kernels.play_svdpp if recipe.implicit else kernels.play_pmf
    play(federation.run, federation.workspace, federation.round_number, rounds)
    federation.round_number += rounds


def no_sums(federation: RatingFederation) -> Sums:
    """The sums of a batch round before any client's gradients."""
    V = federation.item_vectors
    return Sums(np.zeros_like(V), np.zeros(len(V), dtype=np.int64))


# The reference engine: plain Python, slow, and the place to read first.


def choose_raters(recipe: RatingRecipe, round_number: int) -> IntVector:
    """The clients that take part in this round; without a federation each user once per iteration."""
    if recipe.batch:
        return recipe.participants
    with words_wrap_around():
        iteration, position = divmod(round_number, recipe.rounds_per_epoch)
        if recipe.federated:
            position = kernels.choose_one(recipe.seed, round_number, recipe.participants)
            return recipe.participants[position : position + 1]
        ordered: IntVector = kernels.draw_order(recipe.seed, iteration, recipe.participants)
        return ordered[position : position + 1]


def play_reference(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the readable steps of reference.py: every item moves by the mean of its gradients."""
    recipe, factors = federation.recipe, federation.recipe.factors
    for _ in range(rounds):
        broadcast = federation.broadcast
        clients = choose_raters(recipe, federation.round_number).tolist()
        updates = [federation.update(user, broadcast) for user in clients]
        stepped_tables = {"": (federation.item_vectors, broadcast.vectors)}
        if recipe.implicit:
            stepped_tables["implicit_"] = federation.implicit_vectors, broadcast.implicit
        for name, (table, before) in stepped_tables.items():
            sums, counts = np.zeros_like(before), np.zeros(len(before))
            for sent in updates:
                items = getattr(sent, f"{name}items")
                sums[items] += getattr(sent, f"{name}vectors")
                counts[items] += 1
            table[:, :factors] = stepped(recipe, federation.iteration, before, sums, counts)
        federation.round_number += 1


# On a cluster (simulation/cluster.py), PMF in batch style.


MAX_PARTITIONS = 16


class RatingSpread:
    """The driver's part of a federation on a cluster."""

    shard_type: ClassVar = UserShard
    client_tables: ClassVar[tuple[str, ...]] = ("user_vectors", "participations")

    def __init__(self, federation: RatingFederation) -> None:
        if not federation.recipe.batch:
            raise SettingError(
                "The cluster engine needs rounds with many clients; in stochastic style each has one. Choose the style "
                "batch, or the engine compiled."
            )
        self._federation, able = federation, federation.recipe.participants
        self.partitions = partition_starts(able, len(federation.user_vectors), min(MAX_PARTITIONS, len(able)))

    def part(self, partitions: LongVector) -> Part:
        """What a shard starts with."""
        first, last = int(partitions[0]), int(partitions[-1])
        part, starts = part_of(self._federation, first, last), self._federation.profiles.starts
        own = replace(part.federation, ratings=self._federation.ratings[starts[first] : starts[last]])
        return part._replace(federation=own)

    def message(self, _since: int) -> tuple[int, FloatMatrix]:
        """The round, and all of V."""
        return self._federation.round_number, self._federation.item_vectors

    def play_round(self, train: Train) -> None:
        """One round."""
        total, able = no_sums(self._federation), self._federation.recipe.participants
        for _, sums in train(by_partition(able, self.partitions)):
            np.add(total.vectors, sums.vectors, out=total.vectors)
            np.add(total.counts, sums.counts, out=total.counts)
        self._federation.take_step(total)


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play_compiled),
    "reference": in_this_process(play_reference),
    "cluster": on_a_cluster,
}
