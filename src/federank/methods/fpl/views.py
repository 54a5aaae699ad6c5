"""Views: what a honest-but-curious server of each threat model has about some people, a block of people at a time.

updates      each device's Updates, linked over rounds: the observer's notes, and one more Update
anonymous    one Update and nothing else: no one can tell which others came from the same device
sums         the sum over each round's devices, and who they were
outsider     the public model before and after a round, and so its sum; not who was in it
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from federank._numerics.arrays import FloatMatrix, LongVector, RealVector
from federank.audit.observer import KnownPolicies
from federank.audit.scoring import Guess, claim_typical
from federank.methods.fpl.method import FPLModel, FPLUpdate

# What a honest-but-curious server of pair-wise learning knows about some people.


class ShadowModel(NamedTuple):
    """A logistic regression: what each feature of a (person, item) says about ownership."""

    centres: RealVector
    scales: RealVector
    weights: RealVector
    intercept: float


class PairsView(NamedTuple):
    """What the server knows from single updates: one row, or one update, per person."""

    times_positive: NDArray[np.uint8]  # people x items: in how many Updates it came with a bias above zero
    seen_negative: NDArray[np.bool_]  # people x items: whether it ever came with a bias below zero
    negative_rows: LongVector  # people: rows with a bias below zero, over all Updates
    updates: list[FPLUpdate]  # one more of each person, in answer to the Broadcast
    vectors: FloatMatrix  # people x factors: each one's own vector, recovered from that Update
    broadcast: FPLModel
    typical_size: int  # interactions per device: public, since rounds per epoch are
    policies: KnownPolicies
    neighbours: FloatMatrix | None = None  # people x items: what those send who send alike; none where no one is linked
    shadow_model: ShadowModel | None = None  # what the attacker's own devices have taught it
    shadow_model_held_back: ShadowModel | None = None  # the same about items that were never sent


class SumsView(NamedTuple):
    """What the server knows from sums: a person's cohorts against all cohorts, one row per person."""

    differences: FloatMatrix  # people x items: bias sums where they took part less all others', by chance's deviation
    vectors: FloatMatrix  # people x factors: a person's own vector, as far as differences of sums give it
    broadcast: FPLModel
    typical_size: int
    policies: KnownPolicies
    shadow_model: ShadowModel | None = None
    shadow_model_held_back: ShadowModel | None = None


AnyView = PairsView | SumsView


# Vector recovery: one row of a negative item hands over the person's own vector.


_LEAST = 1e-9
"""Below this g, a row is all regulariser in 32-bit floats."""


def recovered_vectors(updates: list[FPLUpdate], broadcast: FPLModel, negative_regulariser: np.float32) -> FloatMatrix:
    """Each person's own vector, from one negative row; zeros where there is none, or only rounding errors are left."""
    found = np.zeros((len(updates), broadcast.vectors.shape[1]), dtype=np.float32)
    for row, update in enumerate(updates):
        position = int(np.argmin(update.biases)) if len(update.biases) else 0
        g = -float(update.biases[position]) if len(update.biases) else 0.0
        if g > _LEAST:
            q_j = broadcast.vectors[update.items[position]]
            found[row] = -(update.vectors[position] + negative_regulariser * q_j) / g
    return found


def vector_recovery(view: PairsView) -> Guess:
    """Rank the catalogue with the recovered vector."""
    return claim_typical(view.vectors @ view.broadcast.vectors.T + view.broadcast.biases, view.typical_size)
