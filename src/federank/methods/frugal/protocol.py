"""Distribution: the server asks one cohort, and sends it the item vectors.

Round t asks cohort t mod cohorts; of its users, those who are there and have a message left. Who is asked follows from
the seed and the round alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector, RealVector
from federank.errors import BadMessage
from federank.federation.rng import DROPOUT, ONLINE, happens, words, words_wrap_around
from federank.methods.frugal.item_weights import LEVELS as LEVELS
from federank.methods.frugal.records import FrugalUpdate as FrugalUpdate
from federank.methods.frugal.settings import FrugalRecipe
from federank.secagg.ring import C_INT

# What crosses the wire when implicit least squares are learnt, and what never does.


SMALLEST_ROW = 1e-30
"""A row whose largest number is below this is sent as zeros: its scale would lose precision as a subnormal float."""


class FrugalBroadcast(NamedTuple):
    """The server's message to a client: the item vectors as of a round."""

    round_number: int
    version: int  # of the model: how many rounds have been folded into it
    regulariser: float  # lambda: regularisation of a client's own vector
    items: IntVector  # which rows, ascending: those of the supported items unless the client has some already;
    # none while counts are asked for
    weights: FloatVector  # d: how much each of these items counts when a client solves for its own vector
    codes: NDArray[np.int8]  # one row of integers per item; no columns where vectors are sent as they are
    scales: FloatVector  # what a row's integers are multiples of
    vectors: FloatMatrix  # the rows as they are; no rows where codes are sent


def is_count(update: FrugalUpdate) -> bool:
    """Whether an upload carries counts: 1 for each item of a profile, and no vector."""
    return not len(update.vector)


class Dense(NamedTuple):
    """What a message, or a sum of messages, means: two matrices. The last column stands for a vector's constant 1."""

    residuals: FloatMatrix  # items x (factors + 1): sum of a_u w_u [x_u, 1]'
    squares: FloatMatrix  # (factors + 1) x (factors + 1): sum of a_u [x_u, 1] [x_u, 1]'


def dense(update: FrugalUpdate) -> Dense:
    """The message written out: a row for every item, and the square of the vector."""
    vector = np.append(update.vector, np.float32(1))
    scaled = update.scale * vector
    return Dense(np.outer(update.strengths, scaled), np.outer(vector, scaled))


def flat(message: Dense) -> RealVector:
    """All numbers of a message in one row, as sums add them up: rows of items, then the square of the vector."""
    return np.concatenate((message.residuals.ravel(), message.squares.ravel())).astype(np.float64)


def rounded(vectors: FloatMatrix) -> tuple[NDArray[np.int8], FloatVector]:
    """Rows as integers from -127 to 127, and the scale of each row; rows below `SMALLEST_ROW` are zeros."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    scales = np.where(largest < SMALLEST_ROW, 0, largest / np.float32(LEVELS)).astype(np.float32)
    safe = np.where(scales > 0, scales, np.float32(1))
    return np.clip(np.rint(vectors / safe[:, None]), -LEVELS, LEVELS).astype(np.int8), scales


def restored(codes: NDArray[np.int8], scales: FloatVector) -> FloatMatrix:
    """The rows that codes and scales stand for."""
    rows: FloatMatrix = codes.astype(np.float32) * scales[:, None]
    return rows


def rows_of(broadcast: FrugalBroadcast) -> FloatMatrix:
    """The rows of a broadcast, in either form."""
    return restored(broadcast.codes, broadcast.scales) if broadcast.codes.shape[1] else broadcast.vectors


def check_frugal_update(update: FrugalUpdate, factors: int, n_items: int) -> None:
    """Refuse an Update that is not of the form the protocol asks for, or that its equations cannot give."""
    strengths, vector, scale = update.strengths, update.vector, update.scale
    if strengths.dtype != np.float32 or vector.dtype != np.float32:
        raise BadMessage("An Update has 32-bit floats as strengths and as vector; this one has not.")
    if strengths.shape != (n_items,) or vector.shape != (factors,):
        raise BadMessage(
            f"An Update needs a strength for each of the {n_items:,} items of its round and a vector of {factors} "
            f"numbers; found {strengths.shape} and {vector.shape}."
        )
    if not (np.isfinite(strengths).all() and np.isfinite(vector).all() and np.isfinite(scale).all()):
        raise BadMessage("An Update holds values that are not finite numbers.")
    if not factors and not (np.isin(strengths, (0, 1)).all() and scale[0] == 1):
        raise BadMessage(
            "A message of counts says 1 of the items of its sender and 0 of all others; this one does not."
        )
    if not 0 <= scale[0] <= 1:
        raise BadMessage(f"An Update is scaled down or not at all; its scale is {scale[0]:g}, and 0 to 1 is needed.")


def check_private_update(update: IntVector, length: int) -> None:
    """Refuse a private upload of another length, or one that is longer than an upload may be."""
    if update.dtype != np.int32 or update.shape != (length,):
        raise BadMessage(
            f"An upload of this round has {length:,} integers of 32 bits; found {update.shape} of {update.dtype}."
        )
    # No number may be above C_INT either, so that squares cannot overflow.
    if len(update) and (np.abs(update.astype(np.int64)).max() > C_INT or _squared(update) > C_INT**2):
        raise BadMessage(f"An upload is longer than it may be: its norm in integers is above {C_INT:,}.")


def _squared(update: IntVector) -> int:
    return int(np.dot(update.astype(np.int64), update.astype(np.int64)))


def choose_cohort(recipe: FrugalRecipe, round_number: int, spent: IntVector) -> IntVector:
    """The users who take part in this round, ascending."""
    asked = recipe.participants[recipe.cohort[recipe.participants] == round_number % recipe.cohorts]
    able: IntVector = asked[spent[asked] < recipe.messages[asked]]
    if len(recipe.trace):
        there = recipe.trace[round_number % len(recipe.trace), able]
    elif recipe.online < 1.0:
        there = happens(draws_of_users(recipe.seed, able, ONLINE, round_number), recipe.online)
    else:
        return able
    present: IntVector = able[there]
    return present


def attendance(recipe: FrugalRecipe, n_users: int) -> NDArray[np.bool_]:
    """Rounds x users: who takes part when, over a full run; no one more often than they allow."""
    there: NDArray[np.bool_] = np.zeros((recipe.rounds, n_users), dtype=np.bool_)
    spent = np.zeros(n_users, dtype=np.int32)
    for number in range(recipe.rounds):
        asked = choose_cohort(recipe, number, spent)
        there[number, asked] = True
        spent[asked] += 1
    return there


def who_answers(recipe: FrugalRecipe, round_number: int, people: IntVector) -> IntVector:
    """Those of the asked whose message arrives."""
    if recipe.dropout <= 0:
        return people
    answering: IntVector = people[~happens(draws_of_users(recipe.seed, people, DROPOUT, round_number), recipe.dropout)]
    return answering


def draws_of_users(seed: int, people: IntVector, purpose: int, round_number: int) -> Any:
    """One random word for each of these users."""
    with words_wrap_around():
        return words(np.uint32(seed), people.astype(np.uint32), purpose, np.uint32(round_number), np.uint32(0))[0]


# Minimum support: the first message carries counts only, and later ones cover the items that enough users have.


def is_counting(recipe: FrugalRecipe, weights: FloatVector) -> bool:
    """Whether a round on a model with these weights of items asks for counts."""
    return recipe.min_support > 1 and recipe.private is None and not weights.any()


def supported_items(recipe: FrugalRecipe, weights: FloatVector) -> IntVector:
    """The items that a message covers, ascending: those that weigh something, where items need support."""
    return covered_items(recipe.min_support, weights)


def covered_items(min_support: int, weights: FloatVector) -> IntVector:
    """The same, by the minimum support alone."""
    supported = np.flatnonzero(weights) if min_support > 1 else np.arange(len(weights))
    return supported.astype(np.int32)


def count_unit(n_items: int) -> int:
    """What one user of an item adds to a secure sum of counts: even a history of all items is of an allowed norm."""
    return math.isqrt(C_INT**2 // n_items)


def covered(items: IntVector, profile: IntVector) -> IntVector:
    """The places of a profile's items among these items; what is not among them is left out."""
    places = np.searchsorted(items, profile)
    inside = places < len(items)
    inside[inside] = items[places[inside]] == profile[inside]
    return places[inside].astype(np.int32)


def published(recipe: FrugalRecipe, vectors: FloatMatrix) -> FloatMatrix:
    """The item vectors as clients read them: rounded where broadcasts carry bytes."""
    return restored(*rounded(vectors)) if recipe.as_codes else vectors.copy()


def make_frugal_broadcast(
    recipe: FrugalRecipe,
    round_number: int,
    regulariser: float,
    vectors: FloatMatrix,
    weights: FloatVector,
    items: IntVector | None = None,
) -> FrugalBroadcast:
    """The vectors of the supported items, or these rows, as a copy that no later round can change."""
    sent_items = supported_items(recipe, weights) if items is None else items
    rows = vectors[sent_items]
    head = round_number, round_number, regulariser, sent_items, weights[sent_items]
    if recipe.as_codes:
        codes, scales = rounded(rows)
        return FrugalBroadcast(*head, codes, scales, rows[:0])
    no_codes: NDArray[np.int8] = np.zeros((len(rows), 0), dtype=np.int8)
    return FrugalBroadcast(*head, no_codes, np.zeros(0, dtype=np.float32), rows)


def counts_of(n_items: int, profile: IntVector) -> FloatVector:
    """1 for each item of a profile, 0 for all others."""
    counts = np.zeros(n_items, dtype=np.float32)
    counts[profile] = 1
    return counts


def user_weight(activity: float, items: int) -> float:
    """How much a user counts with this many supported items; one with none sends zeros."""
    return float(items**-activity) if items else 0.0


def message_norm(strengths: FloatVector, vector: FloatVector) -> float:
    """The L2 norm of all numbers of the message, written out: of w [x, 1]' and of [x, 1] [x, 1]' together."""
    length = 1 + float(np.dot(vector.astype(np.float64), vector.astype(np.float64)))
    pulled = float(np.dot(strengths.astype(np.float64), strengths.astype(np.float64)))
    return math.sqrt(length * (pulled + length))
