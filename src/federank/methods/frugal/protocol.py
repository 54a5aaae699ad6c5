"""The parts of messages: uploads, written out or checked; item vectors as bytes; which items messages cover."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, FloatVector, IntVector
from federank.errors import BadMessage
from federank.methods.frugal.item_weights import LEVELS as LEVELS
from federank.methods.frugal.records import FrugalUpdate as FrugalUpdate
from federank.methods.frugal.settings import FrugalRules
from federank.secagg.ring import C_INT

SMALLEST_ROW = 1e-30
"""A row whose largest number is below this is sent as zeros: its scale would lose precision as a subnormal float."""


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


# Minimum support: the first message carries counts only, and later ones cover the items that enough users have.


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


def published(rules: FrugalRules, vectors: FloatMatrix) -> FloatMatrix:
    """The item vectors as clients read them: rounded where broadcasts carry bytes."""
    return restored(*rounded(vectors)) if rules.encoding == "int8" else vectors.copy()


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
