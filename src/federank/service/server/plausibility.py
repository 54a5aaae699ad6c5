"""Sums that no cohort of honest devices can have made.

Every honest message has a norm of at most C_INT in integers, so the sum of K of them has at most K C_INT, and so
has every row of it. Noise adds to that: the length of n normal numbers of deviation s exceeds s (sqrt(n) + t) with a
probability below e^(-t^2 / 2). A sum or a row beyond both together, which chance would bring with less than 2^-40, was
made by someone who did not keep to the protocol, and is not folded. What a malicious client can do below it is in
docs/sums.md.
"""

from __future__ import annotations

import math

import numpy as np

from federank._numerics.arrays import IntVector
from federank.secagg.ring import C_INT

RARE_BITS = 40


def longest(messages: int, deviation: float, numbers: int, looks: int = 1) -> float:
    """The longest that this many numbers of a sum can be, but for a chance of 2^-40 over all looks."""
    tail = math.sqrt(2 * math.log(2) * (RARE_BITS + math.log2(max(1, looks))))
    return messages * C_INT + deviation * (math.sqrt(numbers) + tail)


def implausible(total: IntVector, columns: int, messages: int, noise: int) -> str | None:
    """Why a sum cannot be of this many honest messages with noise of two servers; None where it can."""
    # Rounding noise to integers adds at most half a unit to each.
    deviation = math.sqrt(2.0) * noise
    slack = 0.5 * 2
    values = total.astype(np.float64)
    squared = values * values
    rows = np.sqrt(squared.reshape(-1, columns).sum(axis=1))
    bound = longest(messages, deviation, columns, 2 * len(rows))
    if len(rows) and rows.max() > bound + slack * math.sqrt(columns):
        return f"a row's norm is {rows.max():,.0f}, and {messages:,} messages with noise give at most {bound:,.0f}"
    length, bound = math.sqrt(float(squared.sum())), longest(messages, deviation, len(values), 2)
    if length > bound + slack * math.sqrt(len(values)):
        return f"the sum's norm is {length:,.0f}, and {messages:,} messages with noise give at most {bound:,.0f}"
    return None
