"""Distribution: the server chooses who takes part and sends them the shared model.

Devices are chosen uniformly among those that are there, without replacement inside a round; over rounds anyone may
be chosen again. The choice depends on the seed and the round alone, never on what a device holds. A device that is
not there when its number comes up is passed over for the next; if too few are there, the round has fewer clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank._numerics.rows import inlined, outlined
from federank.federation.rng import (
    MASK,
    NEGATIVE,
    ONLINE,
    SELECT,
    SERVER,
    TRIPLE,
    absent_item,
    below,
    happens,
    holds,
    words,
    words_wrap_around,
)
from federank.federation.round import Adam, adam_step
from federank.methods.fpl.bpr import item_gradient, pair_slope, user_gradient
from federank.methods.fpl.settings import Recipe
from federank.methods.fpl.wire import Broadcast, CheckedUpdate, Private, Update, check_update

PATIENCE = 16
"""After this many times the population in draws, anyone who has not been found there is taken to be away."""


@inlined
def is_online(seed: Any, user: Any, round_number: Any, online: Any, trace: Any) -> Any:
    """Whether a device is there when a round begins."""
    if len(trace) > 0:
        return trace[np.int64(round_number) % len(trace), user]
    if online >= 1.0:
        return True
    return happens(_word_of_device(seed, user, round_number), online)


@outlined
def _word_of_device(seed: Any, user: Any, round_number: Any) -> Any:
    word, _, _, _ = words(seed, user, ONLINE, round_number, 0)
    return word


@inlined
def choose_clients(recipe: Any, round_number: Any, wanted: Any, marks: Any, chosen: Any) -> Any:
    """Fill `chosen` with the round's clients, `wanted` of them if this many are there, and answer how many there are.

    `marks` (one integer per user, kept between rounds) remembers who was drawn in this round already.
    """
    seed, participants, online, trace = recipe.seed, recipe.participants, recipe.online, recipe.trace
    population = len(participants)
    stamp = np.int64(round_number) + 1
    if 2 * wanted > population:
        # Many are wanted: it is shorter to draw those who are left out.
        _draw_marked(seed, round_number, participants, population - wanted, marks, stamp)
        count = 0
        for position in range(population):
            user = participants[position]
            if marks[user] != stamp and is_online(seed, user, round_number, online, trace):
                chosen[count] = user
                count += 1
        return count
    count = 0
    for draw in range(PATIENCE * population):
        word, _, _, _ = words(seed, SERVER, SELECT, round_number, draw)
        user = participants[below(word, population)]
        if marks[user] != stamp and is_online(seed, user, round_number, online, trace):
            marks[user] = stamp
            chosen[count] = user
            count += 1
            if count == wanted:
                break
    return count


@inlined
def _draw_marked(seed: Any, round_number: Any, participants: Any, wanted: Any, marks: Any, stamp: Any) -> None:
    """Mark this many different users, drawn uniformly."""
    count = 0
    draw = 0
    while count < wanted:
        word, _, _, _ = words(seed, SERVER, SELECT, round_number, draw)
        user = participants[below(word, len(participants))]
        if marks[user] != stamp:
            marks[user] = stamp
            count += 1
        draw += 1


def make_broadcast(round_number: int, vectors: FloatMatrix, biases: FloatVector) -> Broadcast:
    """The whole shared model, as a copy that no later round can change; every round has made a version of it."""
    everything = np.arange(len(biases), dtype=np.int32)
    return Broadcast(round_number, round_number, everything, vectors.copy(), biases.copy())


# Computation: on the device, with the person's own history, which stays there.


class Gradients(NamedTuple):
    """What a device has learnt about items in a round, pair by pair, before its owner's policy has had a say."""

    positions: IntVector  # where the positives stand in the profile
    positives: IntVector
    negatives: IntVector
    coins: np.ndarray[tuple[int], np.dtype[np.uint32]]  # one random word per pair, for the policy
    slopes: FloatVector  # g of each pair: the positive's bias gradient, and minus the negative's
    positive_vectors: FloatMatrix
    negative_vectors: FloatMatrix


class Draw(NamedTuple):
    """The name of a pair's random choices."""

    seed: Any
    user: Any
    round_number: Any
    counter: Any


class Profile(NamedTuple):
    """What a device takes part with, as kernels want it: a stretch of everyone's items."""

    items: Any  # ascending from `start` on
    start: Any
    size: Any
    bits: Any  # users x words of 64 items: the same as bits; no rows where there are none
    n_items: Any  # of the catalogue


@inlined
def draw_pair(draw: Any, profile: Any) -> Any:
    """One pair: the position of a positive in the profile (with replacement), a negative, and a word for the coin."""
    first, second, third, coin = words(draw.seed, draw.user, TRIPLE, draw.round_number, draw.counter)
    position, j = pair_of_words(first, second, third, draw, profile)
    return position, j, coin


@inlined
def pair_of_words(first: Any, second: Any, third: Any, draw: Any, profile: Any) -> Any:
    """The pair that three random words stand for: the position of its positive in the profile, and its negative.

    The papers draw a negative again while it is in the profile. So does this, once; should both tries meet the
    profile, it draws the negative's rank among the missing items: the same distribution, and an end even where a
    single item is missing.
    """
    items, start, size, _, n_items = profile
    position = start + below(first, size)
    negative = below(second, n_items)
    if has_item(profile, draw.user, negative):
        negative = below(third, n_items)
        if has_item(profile, draw.user, negative):
            word = _word_of_negative(draw.seed, draw.user, draw.round_number, draw.counter)
            negative = absent_item(items, start, size, below(word, n_items - size))
    return position, negative


@outlined
def _word_of_negative(seed: Any, user: Any, round_number: Any, counter: Any) -> Any:
    word, _, _, _ = words(seed, user, NEGATIVE, round_number, counter)
    return word


@inlined
def has_item(profile: Any, user: Any, item: Any) -> Any:
    """Whether a user has an item: one bit where there are bits, else a search."""
    if len(profile.bits) > 0:
        return (profile.bits[user, item >> 6] >> np.uint64(item & 63)) & np.uint64(1) != 0
    return holds(profile.items, profile.start, profile.size, item)


NO_BITS = np.zeros((0, 0), dtype=np.uint64)


def compute(recipe: Recipe, private: Private, broadcast: Broadcast) -> Gradients:
    """One device's part of a round: its own vector moves, and item gradients come out."""
    p, drawn = private.vector, private.vector
    moves, rows = np.zeros_like(p), []
    profile = Profile(private.profile, 0, len(private.profile), NO_BITS, len(broadcast.items))
    for counter in range(private.triples):
        position, j, coin = draw_pair(Draw(recipe.seed, private.user, broadcast.round_number, counter), profile)
        i = private.profile[position]
        q_i, q_j = broadcast.vectors[i], broadcast.vectors[j]
        g = pair_slope(p, q_i, q_j, broadcast.biases[i], broadcast.biases[j])
        gradient_i = item_gradient(g, p, q_i, recipe.positive_regulariser)
        gradient_j = item_gradient(-g, p, q_j, recipe.negative_regulariser)
        rows.append((position, j, coin, g, gradient_i, gradient_j))
        move = recipe.learning_rate * user_gradient(g, p, q_i, q_j, recipe.user_regulariser)
        if recipe.summed:
            moves += move
        else:
            p = p + move
    private.vector = drawn + moves if recipe.summed else p
    positions, negatives, coins, slopes, positive_vectors, negative_vectors = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return Gradients(
        positions.astype(np.int32),
        private.profile[positions],
        negatives.astype(np.int32),
        coins.astype(np.uint32),
        slopes.astype(np.float32),
        positive_vectors,
        negative_vectors,
    )


# Transmission: what a device lets the server see.


@inlined
def may_send(allowed: Any, per_row: Any, seed: Any, user: Any, round_number: Any, item: Any, coin: Any, pi: Any) -> Any:
    """Whether the owner lets this positive item's gradient go; `allowed` is the decision for its lifetime on this
    item.
    """
    if not allowed:
        return False
    if per_row:
        return happens(_word_of_row(seed, user, round_number, item), pi)
    return happens(coin, pi)


@outlined
def _word_of_row(seed: Any, user: Any, round_number: Any, item: Any) -> Any:
    word, _, _, _ = words(seed, user, MASK, round_number, item)
    return word


def share(recipe: Recipe, private: Private, round_number: int, gradients: Gradients) -> Update:
    """The Update: gradients summed per item, without the positives that are held back."""
    pi = 1.0 if private.lifelong else private.pi
    sent = np.array(
        [
            may_send(
                private.allowed[position],
                recipe.mask_per_row,
                recipe.seed,
                private.user,
                round_number,
                private.profile[position],
                coin,
                pi,
            )
            for position, coin in zip(gradients.positions, gradients.coins, strict=True)
        ],
        dtype=np.bool_,
    )
    touched = np.concatenate((gradients.positives[sent], gradients.negatives))
    vectors = np.concatenate((gradients.positive_vectors[sent], gradients.negative_vectors))
    biases = np.concatenate((gradients.slopes[sent], -gradients.slopes))
    items, positions = np.unique(touched, return_inverse=True)
    summed_vectors = np.zeros((len(items), vectors.shape[1]), dtype=np.float32)
    summed_biases = np.zeros(len(items), dtype=np.float32)
    np.add.at(summed_vectors, positions, vectors)
    np.add.at(summed_biases, positions, biases)
    return Update(items.astype(np.int32), summed_vectors, summed_biases)


# Aggregation: the server checks Updates and folds their sum into the shared model.


def no_moments() -> FloatMatrix:
    """What a server remembers whose step remembers nothing."""
    return np.zeros((0, 0), dtype=np.float32)


def first_moments(recipe: Recipe, n_items: int) -> FloatMatrix:
    """What a server remembers before the first round: a row for each item, the last column for its bias."""
    return np.zeros((n_items, recipe.factors + 1), dtype=np.float32) if recipe.adam else no_moments()


@dataclass(eq=False)
class Shared:
    """What the server holds between rounds."""

    vectors: FloatMatrix
    biases: FloatVector
    round_number: int = 0
    mean: FloatMatrix = field(default_factory=no_moments)  # adam: of past sums, items x (factors and bias)
    square: FloatMatrix = field(default_factory=no_moments)

    def distribute(self, _recipe: Recipe) -> Broadcast:
        """The whole shared model, for anyone who takes part."""
        return make_broadcast(self.round_number, self.vectors, self.biases)

    def aggregate(self, recipe: Recipe, updates: Iterable[Update]) -> None:
        """Fold a round's Updates into the shared model: all of them, or none if one breaks the protocol."""
        sum_of_vectors, sum_of_biases = np.zeros_like(self.vectors), np.zeros_like(self.biases)
        count = 0
        for update in updates:
            if not isinstance(update, CheckedUpdate):
                check_update(update, recipe.factors, len(self.biases))
            sum_of_vectors[update.items] += update.vectors
            sum_of_biases[update.items] += update.biases
            count += 1
        if count:
            fold(recipe, self, sum_of_vectors, sum_of_biases)
        self.round_number += 1


def fold(recipe: Recipe, shared: Shared, sum_of_vectors: FloatMatrix, sum_of_biases: FloatVector) -> None:
    """The server's step: the next version of the model, from the sums of a round."""
    if recipe.item_pull > 0:
        sum_of_vectors = sum_of_vectors - np.float32(recipe.item_pull) * shared.vectors
    if not recipe.adam:
        shared.vectors = shared.vectors + recipe.learning_rate * sum_of_vectors
        shared.biases = shared.biases + recipe.learning_rate * sum_of_biases
        return
    adam = Adam(float(recipe.learning_rate), recipe.beta1, recipe.beta2)
    gradient = -np.column_stack((sum_of_vectors, sum_of_biases))
    values = np.column_stack((shared.vectors, shared.biases))
    moved = adam_step(adam, values, gradient, shared.mean, shared.square, shared.round_number + 1)
    shared.vectors, shared.biases = moved[:, :-1].copy(), moved[:, -1].copy()


# Weights: what each device's Update counts in a round (w_u; FPL, 2020, Eq. 1).


def weighted(recipe: Recipe, updates: Iterable[tuple[int, Update]]) -> Iterator[Update]:
    """The Updates of a round, each times its device's weight; as they are where all count as 1."""
    if not len(recipe.weights):
        for _, update in updates:
            yield update
        return
    arrived = list(updates)
    total = sum(recipe.weights[user] for user, _ in arrived)
    for user, update in arrived:
        weight = np.float32(recipe.weights[user] / total)
        yield Update(update.items, weight * update.vectors, weight * update.biases)


# The home vector: who someone is, learnt on the device and never used in a round. It is FPL's only fold-in.


HOME_ROUND = 0xFFFFFFFF
"""Stands for the round in the home vector's draws, so that no round shares them."""

HOME_STEPS = 1000
"""How many pairs a home vector is learnt from: on MovieLens 100K, as good a ranking as the vectors of rounds have."""


def home_vector(
    recipe: Recipe, seed: int, user: int, history: IntVector, broadcast: Broadcast, steps: int = HOME_STEPS
) -> FloatVector:
    """A vector learnt from an ascending history in this many steps; zero where no pair can be drawn."""
    vector = np.zeros(recipe.factors, dtype=np.float32)
    if not 0 < len(history) < len(broadcast.items):
        return vector
    device = Private(user, vector, history, 0.0, np.zeros(len(history), dtype=np.bool_), steps)
    with words_wrap_around():
        compute(recipe._replace(seed=seed, summed=False), device, broadcast._replace(round_number=HOME_ROUND))
    return device.vector
