"""Rows of an Update at most so long: vector and bias together."""

from __future__ import annotations

import math

import numpy as np

from federank.protocol.messages import Update


def shortened(update: Update, most_norm: float) -> Update:
    """The same Update with every row (vector and bias together) at most this long."""
    if is_short(update, most_norm):
        return update
    squared = squared_norms(update)
    long = squared > np.float64(most_norm) ** 2
    if not long.any():
        return update
    factor = np.ones(len(update.items), dtype=np.float64)
    factor[long] = most_norm / np.sqrt(squared[long])
    scale = factor.astype(np.float32)
    return update._replace(vectors=update.vectors * scale[:, None], biases=update.biases * scale)


def is_short(update: Update, most_norm: float) -> bool:
    """Whether no row can be too long, by the largest of all numbers: one look that settles nearly every Update."""
    if not len(update.items):
        return True
    largest = max(float(np.abs(update.vectors).max()), float(np.abs(update.biases).max()))
    return largest * math.sqrt(update.vectors.shape[1] + 1) < 0.999 * most_norm


def squared_norms(update: Update) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The squared length of each row, vector and bias together."""
    # In double precision: the square of a large float32 would overflow.
    vectors, biases = update.vectors.astype(np.float64), update.biases.astype(np.float64)
    squares: np.ndarray[tuple[int], np.dtype[np.float64]] = np.einsum("ij,ij->i", vectors, vectors) + biases * biases
    return squares
