"""The compiled engine of few messages: districts of people are summed side by side, then the server's step is taken.

People are divided into districts by their number, never by the cores at hand; each district's messages are summed in
the order of its people, and districts in their order. So threads never change a bit, and a cluster whose machines hold
whole districts gives the same bits as one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector, LongVector, RealMatrix
from federank.data.interactions import Profiles
from federank.engines.squares.federation import SquaresFederation
from federank.engines.squares.kernels import Sums, Told, add_up, new_room, solve_people, sum_messages
from federank.engines.squares.noisy import sum_with_noise
from federank.models.rows import padded_width
from federank.models.squares import gram_rows, refuse_singular
from federank.protocol.squares.aggregation import fold
from federank.protocol.squares.distribution import choose_cohort, published, who_answers
from federank.protocol.squares.recipes import SquaresRecipe
from federank.protocol.squares.server_steps import SummedMessages
from federank.workers import at_once

_MOST_DISTRICTS = 16
_PEOPLE_PER_DISTRICT = 64
_MOST_SUM_BYTES = 2**29


class Districts(NamedTuple):
    """Sums of each district, and where districts begin by user number."""

    starts: LongVector
    own: FloatMatrix  # districts x items x padded factors
    squares: RealMatrix  # districts x factors x factors
    messages: LongVector  # districts x 1


def district_starts(recipe: SquaresRecipe, n_users: int) -> LongVector:
    """Where each district begins, by user number, and where the last one ends."""
    able = len(recipe.participants)
    fitting = _MOST_SUM_BYTES // (4 * recipe.n_items * padded_width(recipe.factors + 1))
    count = max(1, min(_MOST_DISTRICTS, able // _PEOPLE_PER_DISTRICT, fitting))
    starts = np.empty(count + 1, dtype=np.int64)
    starts[:-1] = recipe.participants[np.arange(count) * able // count]
    starts[0], starts[-1] = 0, n_users
    return starts


def told_to_devices(
    recipe: SquaresRecipe,
    vectors: FloatMatrix,
    weights: FloatVector,
    regulariser: float,
    threads: int = 1,
) -> Told:
    """What every device of a round works out alike, once for all of them."""
    width = padded_width(recipe.factors + 1)
    padded = np.zeros((len(vectors), width), dtype=np.float32)
    padded[:, : recipe.factors] = vectors
    gram = _gram(vectors, weights, threads)
    unweighted = np.ones(len(vectors), dtype=np.float32)
    plain_gram = _gram(vectors, unweighted, threads) if recipe.clip > 0 else gram
    sides = float(recipe.objective.unobserved) * gram + regulariser * np.eye(recipe.factors)
    alike = recipe.objective.liked == recipe.objective.unobserved
    refuse_singular(sides)
    inverse = np.linalg.inv(sides).astype(np.float64) if alike else sides
    return Told(
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


def _gram(vectors: FloatMatrix, weights: FloatVector, threads: int) -> RealMatrix:
    """Y'DY, each thread some of its rows."""
    rows, factors = np.ascontiguousarray(vectors), vectors.shape[1]
    products = np.zeros((factors, factors))

    def work(worker: int) -> None:
        gram_rows(rows, weights, worker * factors // threads, (worker + 1) * factors // threads, products)

    at_once(work, threads)
    return products


Watch = Callable[[IntVector, SummedMessages], None]
"""Sees a round before it is folded: who has answered, and the sums of their messages."""

Fill = Callable[[SquaresFederation, Told, IntVector, Districts], None]
"""Sums the messages of some people (ascending) into the room of their districts."""


def play(federation: SquaresFederation, rounds: int, threads: int = 1, watch: Watch | None = None) -> None:
    """Play this many rounds of a federation on this many threads; the result does not depend on how many."""

    def fill(played: SquaresFederation, told: Told, people: IntVector, room: Districts) -> None:
        sum_districts(played.recipe, played.outward, told, people, room, threads)

    play_with(federation, rounds, fill, threads, watch)


def play_with(
    federation: SquaresFederation, rounds: int, fill: Fill, threads: int = 1, watch: Watch | None = None
) -> None:
    """Play this many rounds, the districts' sums coming from wherever the devices are."""
    room = None if federation.recipe.private is not None else _room(federation)
    for _ in range(rounds):
        _play_round(federation, room, fill, threads, watch)
    if not rounds and room is not None:  # whatever needs compiling is compiled now
        _sum_round(federation, room, np.zeros(0, dtype=np.int32), fill, 1)


def home_vectors(federation: SquaresFederation, threads: int = 1) -> FloatMatrix:
    """Everybody's vector at home: solved from the whole history and the model as published."""
    recipe = federation.recipe
    vectors = published(recipe, federation.item_vectors)
    model = vectors, federation.weights, float(federation.regulariser[0])
    return vectors_at_home(recipe, *model, federation.profiles, threads)


def vectors_at_home(
    recipe: SquaresRecipe,
    item_vectors: FloatMatrix,
    weights: FloatVector,
    regulariser: float,
    profiles: Profiles,
    threads: int = 1,
) -> FloatMatrix:
    """The vectors that explain these profiles best, with the item vectors as they are."""
    told = told_to_devices(recipe, item_vectors, weights, regulariser, threads)
    n_users, width = len(profiles.starts) - 1, told.vectors.shape[1]
    found = np.zeros((n_users, recipe.factors), dtype=np.float32)

    def work(worker: int) -> None:
        first, last = worker * n_users // threads, (worker + 1) * n_users // threads
        room = new_room(recipe.factors, width)
        solve_people(told, profiles.starts, profiles.items, first, last, found, room, (0,) * width)

    at_once(work, threads)
    return found


def _room(federation: SquaresFederation) -> Districts:
    return room_for(federation.recipe, district_starts(federation.recipe, len(federation.spent)))


def room_for(recipe: SquaresRecipe, starts: LongVector) -> Districts:
    """Room for the sums of these districts."""
    count, width = len(starts) - 1, padded_width(recipe.factors + 1)
    return Districts(
        starts,
        np.empty((count, recipe.n_items, width), dtype=np.float32),
        np.empty((count, recipe.factors + 1, recipe.factors + 1)),
        np.empty((count, 1), dtype=np.int64),
    )


def _play_round(
    federation: SquaresFederation, room: Districts | None, fill: Fill, threads: int, watch: Watch | None
) -> None:
    recipe, number = federation.recipe, federation.round_number
    asked = choose_cohort(recipe, number, federation.spent)
    answering = who_answers(recipe, number, asked)
    if room is None:
        sums = sum_with_noise(federation, answering, threads)
    else:
        sums = _sum_round(federation, room, answering, fill, threads)
    if watch is not None:
        watch(answering, sums)
    federation.spent[asked] += 1
    shared = federation.shared
    fold(recipe, shared, sums, threads)
    federation.take(shared)


def _sum_round(
    federation: SquaresFederation, room: Districts, people: IntVector, fill: Fill, threads: int
) -> SummedMessages:
    """The sums of these people's messages: district by district, then items on threads."""
    recipe = federation.recipe
    model = published(recipe, federation.item_vectors), federation.weights, float(federation.regulariser[0])
    told = told_to_devices(recipe, *model, threads)
    fill(federation, told, people, room)
    squares = room.squares.sum(axis=0)
    summed = np.empty((recipe.n_items, recipe.factors + 1))

    def add_items(worker: int) -> None:
        first, last = worker * recipe.n_items // threads, (worker + 1) * recipe.n_items // threads
        add_up(room.own, told.vectors, squares, float(recipe.objective.unobserved), first, last, summed)

    at_once(add_items, threads)
    return SummedMessages(summed, squares, int(room.messages.sum()))


def sum_districts(
    recipe: SquaresRecipe, profiles: Profiles, told: Told, people: IntVector, room: Districts, threads: int = 1
) -> None:
    """Sum the messages of these people, ascending, into their districts' room, on so many threads."""
    width, count = (0,) * told.vectors.shape[1], len(room.starts) - 1
    bounds = np.searchsorted(people, room.starts)

    def work(worker: int) -> None:
        scratch = new_room(recipe.factors, len(width))
        for district in range(worker, count, threads):
            total = Sums(room.own[district], room.squares[district], room.messages[district])
            for empty in total:
                empty[:] = 0
            theirs = people[bounds[district] : bounds[district + 1]]
            sum_messages(told, profiles.starts, profiles.items, theirs, total, scratch, width)

    at_once(work, min(threads, count))
