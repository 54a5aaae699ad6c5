"""Transmission: what a device lets the server see, at most `messages` times in its life.

What is sent follows from the outward profile alone (protocol/policy.py), so what the owner holds back is in no message.
A message is scaled down to its largest allowed norm, where there is one; it counts as sent before it is sent.
"""

from __future__ import annotations

import math

import numpy as np

from federank.arrays import FloatVector
from federank.protocol.squares.messages import SquaresPrivate, SquaresUpdate


def message_norm(strengths: FloatVector, vector: FloatVector) -> float:
    """The L2 norm of all numbers of the message, written out: of w x' and of x x' together."""
    length = float(np.dot(vector.astype(np.float64), vector.astype(np.float64)))
    pulled = float(np.dot(strengths.astype(np.float64), strengths.astype(np.float64)))
    return math.sqrt(length * (pulled + length))


def send(device: SquaresPrivate, strengths: FloatVector, vector: FloatVector, clip: float) -> SquaresUpdate:
    """The Update, clipped; the device has one message less from now on."""
    assert device.spent < device.messages, "a device that has spent its messages is not asked"
    device.spent += 1
    norm = message_norm(strengths, vector) if clip > 0 else 0.0
    scale = clip / norm if norm > clip > 0 else 1.0
    return SquaresUpdate(strengths, vector, np.float32(scale))
