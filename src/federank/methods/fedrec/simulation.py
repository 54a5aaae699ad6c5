"""A simulation of FedRec: what server and clients hold between two rounds, and the engines.

`item_vectors` (V) and `implicit_vectors` (W, without rows for PMF) are the server's; `user_vectors` (U), the ratings
and `participations` are the clients'. Rows are padded (_numerics/rows.py); the padding stays zero. Without a federation
the same steps are taken, by all users in an order that is drawn again for each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.rows import padded_width
from federank.data.interactions import Interactions, Profiles
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS, USER_FACTORS, words_wrap_around
from federank.methods.fedrec.kernels import (
    AHEAD,
    Raters,
    RatingRun,
    Sums,
    Workspace,
    choose_one,
    draw_order,
    play_pmf,
    play_svdpp,
    sum_pmf_batch,
)
from federank.methods.fedrec.reference import (
    RatingBroadcast,
    RatingGradients,
    RatingPrivate,
    compute_ratings,
    share_ratings,
    stepped,
    uniform_rows,
)
from federank.methods.fedrec.settings import RatingRecipe, RatingSettings, simulated_recipe
from federank.simulation.cluster import Spread, on_a_cluster
from federank.simulation.federated import EngineName, Open, Tables, in_this_process


@dataclass(eq=False)
class RatingFederation:
    """Server and clients of a simulation between two rounds."""

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
    def established(cls, settings: RatingSettings, data: Interactions) -> RatingFederation:
        """A federation before its first round: the server and every client draw their first values."""
        assert data.ratings is not None, "ratings are learnt from ratings"
        recipe = simulated_recipe(settings, data.profiles.sizes, data.n_items)
        totals = np.bincount(data.users, weights=data.ratings, minlength=data.n_users)
        sizes = np.maximum(data.profiles.sizes, 1)
        return cls(
            recipe,
            data.profiles,
            data.ratings,
            (totals / sizes).astype(np.float32),
            _first_values(settings, data.n_items, ITEM_FACTORS),
            _first_values(settings, data.n_items if recipe.implicit else 0, IMPLICIT_FACTORS),
            _first_values(settings, data.n_users, USER_FACTORS),
            np.zeros(data.n_users, dtype=np.int32),
        )

    @property
    def broadcast(self) -> RatingBroadcast:
        """What clients receive in the next round: a copy."""
        V, W = (table[:, : self.recipe.factors].copy() for table in (self.item_vectors, self.implicit_vectors))
        return RatingBroadcast(self.round_number, V, W, self.round_number // self.recipe.rounds_per_epoch)

    def client(self, user: int) -> RatingPrivate:
        """What one client holds: a copy."""
        return RatingPrivate(
            user,
            self.user_vectors[user, : self.recipe.factors].copy(),
            self.profiles.of(user).copy(),
            self.ratings[self.profiles.starts[user] : self.profiles.starts[user + 1]].copy(),
            self.means[user],
            int(self.recipe.virtual[user]),
            int(self.participations[user]),
        )

    def update(self, user: int, broadcast: RatingBroadcast) -> RatingGradients:
        """What one client sends, by the readable steps; its own vector moves."""
        client = self.client(user)
        with words_wrap_around():
            gradients = share_ratings(compute_ratings(self.recipe, client, broadcast))
        self.user_vectors[user, : self.recipe.factors] = client.vector
        self.participations[user] = client.participations
        return gradients

    def take_step(self, sums: Sums) -> None:
        """The server's part of a batch round: every item moves by the mean of its gradients."""
        iteration = self.round_number // self.recipe.rounds_per_epoch
        counts = sums.counts.astype(np.float64)
        self.item_vectors[:] = stepped(self.recipe, iteration, self.item_vectors, sums.vectors, counts)
        self.round_number += 1

    def spread(self) -> Spread:
        """Its form on a cluster."""
        from federank.methods.fedrec.cluster import RatingSpread  # made of functions on federations: imported late

        return RatingSpread(self)

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
            devices={"user_vectors": self.user_vectors, "participations": self.participations},
        )

    def why_diverged(self) -> str:
        """What is to blame if the factors are no longer finite numbers."""
        return f"learning_rate {self.recipe.learning_rate:g} is too large for this data; try a smaller one."


def _first_values(settings: RatingSettings, rows: int, purpose: int) -> FloatMatrix:
    table = np.zeros((rows, padded_width(settings.factors)), dtype=np.float32)
    span, factors = settings.initial_range, settings.factors
    table[:, :factors] = uniform_rows(rows, factors, seed=settings.seed, purpose=purpose, span=span)
    return table


# The compiled engine: prepares what the kernels need, and calls the one that fits the recipe.


def play_compiled(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the compiled kernels."""
    recipe, run, begin = federation.recipe, federation.run, federation.round_number
    workspace = workspace_for_raters(federation)
    if recipe.batch:
        sums = no_sums(federation)
        for _ in range(rounds):
            sums.vectors[:], sums.counts[:] = 0, 0
            sum_pmf_batch(run, sums, workspace, federation.round_number, recipe.participants)
            federation.take_step(sums)
        return
    if recipe.implicit:
        play_svdpp(run, workspace, begin, rounds)
    else:
        play_pmf(run, workspace, begin, rounds)
    federation.round_number += rounds


def no_sums(federation: RatingFederation) -> Sums:
    """The sums of a batch round before any client's gradients."""
    V = federation.item_vectors
    return Sums(np.zeros_like(V), np.zeros(len(V), dtype=np.int64))


def workspace_for_raters(federation: RatingFederation) -> Workspace:
    """Working memory for the clients of a federation, as large as the largest of them needs."""
    sizes, (n_items, width) = federation.profiles.sizes, federation.item_vectors.shape
    most = int((sizes + federation.recipe.virtual).max(initial=0))
    most_rated = int(sizes.max(initial=0)) if federation.recipe.implicit else 0
    return Workspace(
        marks=np.zeros(n_items, dtype=np.int64),
        calls=np.zeros(1, dtype=np.int64),
        items=np.zeros(most + AHEAD, dtype=np.int32),
        values=np.empty(most, dtype=np.float32),
        own=np.empty((most_rated, width), dtype=np.float32),
        trial=np.empty((most_rated, width), dtype=np.float32),
    )


# The reference engine: plain Python, slow, and the place to read first.


def choose_raters(recipe: RatingRecipe, round_number: int) -> IntVector:
    """The clients that take part in this round; without a federation each user once per iteration."""
    if recipe.batch:
        return recipe.participants
    iteration, position = divmod(round_number, recipe.rounds_per_epoch)
    if not recipe.federated:
        ordered: IntVector = draw_order(recipe.seed, iteration, recipe.participants)
        return ordered[position : position + 1]
    position = choose_one(recipe.seed, round_number, recipe.participants)
    return recipe.participants[position : position + 1]


def play_reference(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the readable steps of reference.py: every item moves by the mean of its gradients."""
    recipe, factors = federation.recipe, federation.recipe.factors
    for _ in range(rounds):
        broadcast = federation.broadcast
        V, W = broadcast.vectors, broadcast.implicit_vectors
        sums, implicit_sums = np.zeros_like(V), np.zeros_like(W)
        counts, implicit_counts = np.zeros(len(V)), np.zeros(len(W))
        with words_wrap_around():
            clients = choose_raters(recipe, federation.round_number)
        for user in clients.tolist():
            sent = federation.update(user, broadcast)
            sums[sent.items] += sent.vectors
            counts[sent.items] += 1
            implicit_sums[sent.implicit_items] += sent.implicit_vectors
            implicit_counts[sent.implicit_items] += 1
        federation.item_vectors[:, :factors] = stepped(recipe, broadcast.iteration, V, sums, counts)
        federation.implicit_vectors[:, :factors] = stepped(
            recipe, broadcast.iteration, W, implicit_sums, implicit_counts
        )
        federation.round_number += 1


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play_compiled),
    "reference": in_this_process(play_reference),
    "cluster": on_a_cluster,
}
