"""A simulation of learning ratings: what server and clients hold between two rounds, and the engines.

`item_vectors` (V) and `implicit_vectors` (W, without rows for PMF) are the server's; `user_vectors` (U), the ratings
and `participations` are the clients'. Rows are padded (_numerics/rows.py); the padding stays zero. Without a federation
the same steps are taken, by all users in an order that is drawn again for each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import padded_width
from federank.data.interactions import Interactions, Profiles
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS, USER_FACTORS, WORDS, words
from federank.methods.fedrec.kernels import (
    AHEAD,
    Raters,
    RatingRun,
    Sums,
    Workspace,
    play_pmf,
    play_pmf_batch,
    play_svdpp,
)
from federank.methods.fedrec.method import compute_ratings, share_ratings
from federank.methods.fedrec.settings import RatingRecipe, RatingSettings, rating_recipe
from federank.methods.fedrec.wire import RatingBroadcast, RatingPrivate, RatingUpdate, SharedFactors, choose_raters
from federank.simulation.federated import EngineName, Open, Tables, in_this_process, play_in_memory


@dataclass(eq=False)
class RatingFederation:
    """Server and devices of a simulation between two rounds."""

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
        """A federation before its first round: the server and every device draw their first values."""
        assert data.ratings is not None, "ratings are learnt from ratings"
        recipe = rating_recipe(settings, data.profiles.sizes, data.n_items)
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
    def shared(self) -> SharedFactors:
        """What the server holds, as the protocol speaks of it: a copy."""
        V, W = (table[:, : self.recipe.factors].copy() for table in (self.item_vectors, self.implicit_vectors))
        return SharedFactors(V, W, self.round_number)

    def take(self, shared: SharedFactors) -> None:
        """Keep what the server holds now."""
        self.item_vectors[:, : self.recipe.factors] = shared.vectors
        self.implicit_vectors[:, : self.recipe.factors] = shared.implicit_vectors
        self.round_number = shared.round_number

    def device(self, user: int) -> RatingPrivate:
        """What one device holds: a copy."""
        return RatingPrivate(
            user,
            self.user_vectors[user, : self.recipe.factors].copy(),
            self.profiles.of(user).copy(),
            self.ratings[self.profiles.starts[user] : self.profiles.starts[user + 1]].copy(),
            self.means[user],
            int(self.recipe.virtual[user]),
            int(self.participations[user]),
        )

    @property
    def run(self) -> RatingRun:
        """What the compiled engine's kernels are handed."""
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
    _fill_uniform(table, settings.factors, settings.seed, purpose, settings.initial_range)
    return table


@compiled
def _fill_uniform(table: FloatMatrix, columns: int, seed: int, purpose: int, span: float) -> None:
    """Uniform numbers of mean zero, in a range of width `span`; each is named by its row and column."""
    for row in range(len(table)):
        for block in range((columns + 3) // 4):
            for position, word in enumerate(words(seed, row, purpose, 0, block)):
                if 4 * block + position < columns:
                    table[row, 4 * block + position] = np.float32(span * (np.float64(word) / WORDS - 0.5))


# The compiled engine: prepares what the kernels need, and calls the one that fits the recipe.


def play_compiled(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the compiled kernels."""
    recipe, run, begin = federation.recipe, federation.run, federation.round_number
    workspace = workspace_for_raters(federation)
    if recipe.batch:
        V = federation.item_vectors
        sums = Sums(np.empty_like(V), np.empty(len(V), dtype=np.int64))
        play_pmf_batch(run, sums, workspace, begin, rounds)
    elif recipe.implicit:
        play_svdpp(run, workspace, begin, rounds)
    else:
        play_pmf(run, workspace, begin, rounds)
    federation.round_number += rounds


def workspace_for_raters(federation: RatingFederation) -> Workspace:
    """Working memory for the devices of a federation, as large as the largest of them needs."""
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


# The reference engine: plain Python, slow, and the place to read first. Broadcasts and Updates pass between a server
# and clients that share no array.


class RatersInMemory:
    """Clients that live in this process, each with its own private state."""

    def __init__(self, federation: RatingFederation) -> None:
        self.recipe = federation.recipe
        self.devices = [federation.device(user) for user in range(len(federation.user_vectors))]

    def choose(self, round_number: int) -> IntVector:
        """The clients that take part in this round."""
        return choose_raters(self.recipe, round_number)

    def train(self, clients: IntVector, broadcast: RatingBroadcast) -> Iterator[RatingUpdate]:
        """Computation and transmission on each of these clients."""
        for user in clients:
            yield share_ratings(compute_ratings(self.recipe, self.devices[user], broadcast))


def play_reference(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds by the readable steps of method.py."""
    fleet = RatersInMemory(federation)
    play_in_memory(federation, fleet, rounds)
    federation.user_vectors[:, : federation.recipe.factors] = [device.vector for device in fleet.devices]
    federation.participations[:] = [device.participations for device in fleet.devices]


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(play_compiled),
    "reference": in_this_process(play_reference),
}
