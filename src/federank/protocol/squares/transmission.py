"""Transmission: what a device lets the server see, at most `messages` times in its life.

What is sent follows from the outward profile alone (protocol/policies/policy.py), so what the owner holds back is in no
message. A message is scaled down to its largest allowed norm, where there is one; it counts as sent before it is sent.
"""

from __future__ import annotations

import math

import numpy as np

from federank.arrays import FloatVector
from federank.protocol.squares.messages import SquaresPrivate, SquaresUpdate
from federank.protocol.squares.recipes import SquaresRecipe


def message_norm(strengths: FloatVector, vector: FloatVector) -> float:
    """The L2 norm of all numbers of the message, written out: of w [x, 1]' and of [x, 1] [x, 1]' together."""
    length = 1 + float(np.dot(vector.astype(np.float64), vector.astype(np.float64)))
    pulled = float(np.dot(strengths.astype(np.float64), strengths.astype(np.float64)))
    return math.sqrt(length * (pulled + length))


def send(recipe: SquaresRecipe, device: SquaresPrivate, strengths: FloatVector, vector: FloatVector) -> SquaresUpdate:
    """The Update, weighted and clipped; the device has one message less from now on."""
    assert device.spent < device.messages, "a device that has spent its messages is not asked"
    device.spent += 1
    scale = len(device.outward.profile) ** -recipe.activity
    if recipe.clip > 0:
        scale = min(scale, recipe.clip / message_norm(strengths, vector))
    return SquaresUpdate(strengths, vector, np.float32(scale))
