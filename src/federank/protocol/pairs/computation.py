"""Computation: on the device, with the person's own history, which stays there.

The device draws pairs of an item it has and one it has not, steps its own vector, and gathers for each pair the
gradients of the two items. Item factors stay as they were received for the whole round; the own vector moves with
every pair (as-published), or once at the end (`summed`: FedeRank, 2021, Eq. 1-3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, IntVector
from federank.models.bpr import item_gradient, pair_slope, user_gradient
from federank.models.rows import inlined, outlined
from federank.protocol.draws import NEGATIVE, TRIPLE, absent_item, below, holds, words
from federank.protocol.messages import Broadcast, Private
from federank.protocol.pairs.recipes import Recipe


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
    """What a device takes part with, as kernels want it: a stretch of everybody's items."""

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
