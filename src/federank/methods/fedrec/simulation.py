"""A federation that learns ratings, in memory: the shared model, the devices' private state, and how far it has come.

`item_vectors` (V) and `implicit_vectors` (W, without rows for PMF) are the server's; `user_vectors` (U), the ratings
and `participations` are the devices'. Rows are padded (see models/rows.py); the padding stays zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.compiling import compiled
from federank._numerics.rows import inlined, load_row, padded_width, store_row
from federank.data.interactions import Interactions, Profiles
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS, ORDER, SERVER, USER_FACTORS, WORDS, below, words
from federank.methods.fedrec.factors import (
    Shift,
    implicit_row,
    item_gradient,
    moved_without,
    needs_settling,
    normaliser,
    rating_error,
    settled,
    user_gradient,
)
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
from federank.methods.fedrec.settings import RatingRecipe, RatingSettings, rate_after, rating_recipe
from federank.methods.fedrec.wire import RatingPrivate, SharedFactors
from federank.simulation.federated import EngineName, Open, Tables


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
        from federank.methods.fedrec.reference import ENGINES  # made of functions on federations: looked up late

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


# Learning ratings without a federation: plain loops over everyone's ratings in one place.


_ONE = np.float32(1.0)


@inlined
def _draw_order(seed: Any, iteration: Any, participants: Any) -> Any:
    """The participants in an order that is drawn again for each iteration (Fisher and Yates)."""
    order = participants.copy()
    for last in range(len(order) - 1, 0, -1):
        word, _, _, _ = words(seed, SERVER, ORDER, iteration, last)
        position = below(word, last + 1)
        order[last], order[position] = order[position], order[last]
    return order


def _learn_from_each(run: RatingRun, first_round: int, rounds: int) -> None:
    """Stochastic PMF and SVD++; a round is one user."""
    recipe, raters, V, W, U, width = run
    profiles, ratings = raters.profiles, raters.ratings
    most_rated = 0
    for user in recipe.participants:
        most_rated = max(most_rated, profiles.starts[user + 1] - profiles.starts[user])
    rows = np.empty((most_rated if recipe.implicit else 0, len(width)), np.float32)
    order = recipe.participants
    for r in range(first_round, first_round + rounds):
        iteration, position = r // recipe.rounds_per_epoch, r % recipe.rounds_per_epoch
        if position == 0 or r == first_round:
            order = _draw_order(recipe.seed, iteration, recipe.participants)
        user = order[position]
        rate = rate_after(recipe, iteration)
        keep = _ONE - rate * recipe.regulariser
        start = profiles.starts[user]
        size = profiles.starts[user + 1] - start
        norm = normaliser(size - 1)
        u = load_row(U, user, width)
        shift = Shift(_ONE, u - u, u - u)
        if recipe.implicit:
            for k in range(size):
                w = load_row(W, profiles.items[start + k], width)
                store_row(rows, k, w)
                shift = Shift(_ONE, shift.offset, shift.total + w)
        for k in range(size):
            item = profiles.items[start + k]
            v = load_row(V, item, width)
            bracket = u
            if recipe.implicit:
                own = implicit_row(rows, k, shift, width)
                bracket = u + norm * (shift.total - own)
                error = rating_error(bracket, v, ratings[start + k])
                shift = moved_without(rows, k, own, shift, keep, (rate * error * norm) * v, size)
                if needs_settling(shift):
                    shift = settled(rows, size, shift, width)
            else:
                error = rating_error(bracket, v, ratings[start + k])
            u = u - rate * user_gradient(error, u, v, recipe.regulariser)
            store_row(V, item, v - rate * item_gradient(error, bracket, v, recipe.regulariser))
        store_row(U, user, u)
        if recipe.implicit:
            for k in range(size):
                store_row(W, profiles.items[start + k], implicit_row(rows, k, shift, width))


def _learn_from_all(run: RatingRun, users: IntVector, first_round: int, rounds: int) -> None:
    """PMF in batch style; a round is an iteration."""
    recipe, raters, V, _, U, width = run
    items, ratings = raters.profiles.items, raters.ratings
    user_counts, item_counts = np.zeros(len(U), np.int64), np.zeros(len(V), np.int64)
    for row in range(len(items)):
        user_counts[users[row]] += 1
        item_counts[items[row]] += 1
    for r in range(first_round, first_round + rounds):
        rate = rate_after(recipe, r)
        user_sums, item_sums = np.zeros_like(U), np.zeros_like(V)
        for row in range(len(items)):
            user, item = users[row], items[row]
            u, v = load_row(U, user, width), load_row(V, item, width)
            error = rating_error(u, v, ratings[row])
            gradient = user_gradient(error, u, v, recipe.regulariser)
            store_row(user_sums, user, load_row(user_sums, user, width) + gradient)
            gradient = item_gradient(error, u, v, recipe.regulariser)
            store_row(item_sums, item, load_row(item_sums, item, width) + gradient)
        for user in range(len(U)):
            step = np.float32(rate / max(user_counts[user], 1)) * load_row(user_sums, user, width)
            store_row(U, user, load_row(U, user, width) - step)
        for item in range(len(V)):
            step = np.float32(rate / max(item_counts[item], 1)) * load_row(item_sums, item, width)
            store_row(V, item, load_row(V, item, width) - step)


_learn_from_each_compiled = compiled(_learn_from_each)
_learn_from_all_compiled = compiled(_learn_from_all)


def play_plainly(federation: RatingFederation, rounds: int) -> None:
    """The loops, interpreted."""
    _play(federation, rounds, _learn_from_each, _learn_from_all)


def play_compiled(federation: RatingFederation, rounds: int) -> None:
    """The loops, compiled."""
    _play(federation, rounds, _learn_from_each_compiled, _learn_from_all_compiled)


def _play(federation: RatingFederation, rounds: int, learn_from_each: Any, learn_from_all: Any) -> None:
    run, first_round = federation.run, federation.round_number
    if run.recipe.batch:
        users = np.repeat(np.arange(len(run.user_vectors), dtype=np.int32), federation.profiles.sizes)
        learn_from_all(run, users, first_round, rounds)
    else:
        learn_from_each(run, first_round, rounds)
    federation.round_number += rounds


# The compiled engine of learning ratings: prepares what the kernels need, and calls the one that fits the recipe.


def play(federation: RatingFederation, rounds: int, _threads: int = 1) -> None:
    """Play this many rounds of a federation."""
    recipe, run, begin = federation.recipe, federation.run, federation.round_number
    if not recipe.federated:
        play_compiled(federation, rounds)
        return
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
