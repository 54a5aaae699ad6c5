"""Two steps: two Updates of one device give away the ratings themselves (after Chai et al., 2021, for PMF).

An item's row is (U . V_i - r_i) U + lambda V_i, with V_i and lambda public. Without lambda V_i, every row of an Update
lies along U: its axis u is known, and of its length s (and side) only one number is missing. With m_i the part of row i
along -u and a_i = u . V_i,

    r_i = m_i / s + s a_i

Two Updates have two such lengths, s and s', and every item that is in both must come out with the same rating: as many
equations as the person has ratings. Ratings are also whole stars within a known range. Both conditions are tried on a
grid of lengths, which is then refined. Where U moves within a round (stochastic style) each row points its own way, and
the length is taken to be one for all of them, so the answer is nearly right instead of exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import IntVector, RealVector
from federank.audit.ratings.view import Answer

_GRID = 160
_LONGEST = 20.0
_NEARBY = (0.08, 0.01, 0.001, 0.0)
"""How far around the best lengths so far the next grid reaches."""


class RatingGuess(NamedTuple):
    """What an attack says about a person's ratings."""

    items: IntVector
    ratings: RealVector


def two_steps(first: Answer, second: Answer, regulariser: float, lowest: float, highest: float) -> RatingGuess:
    """The ratings of all items that are in both Updates."""
    items, here, there = np.intersect1d(first.update.items, second.update.items, return_indices=True)
    m, a = (part[here] for part in _along(first, regulariser))
    m2, a2 = (part[there] for part in _along(second, regulariser))
    lengths, lengths2 = _possible(m, highest), _possible(m2, highest)
    best = best2 = 1.0
    for nearby in _NEARBY:
        ratings, ratings2 = _ratings(m, a, lengths), _ratings(m2, a2, lengths2)
        stars = np.clip(np.rint(ratings), lowest, highest)
        uneven = ((ratings - stars) ** 2).mean(axis=1)
        # The mean squared difference for every pair of lengths, without a table of lengths x lengths x items.
        squares, squares2 = (ratings**2).mean(axis=1), (ratings2**2).mean(axis=1)
        apart = squares[:, None] + squares2[None, :] - 2 * ratings @ ratings2.T / max(len(items), 1)
        one, other = np.unravel_index(int(np.argmin(apart + uneven[:, None])), apart.shape)
        best, best2 = float(lengths[one]), float(lengths2[other])
        lengths, lengths2 = (length * np.linspace(1 - nearby, 1 + nearby, _GRID) for length in (best, best2))
    found = m / best + best * a
    return RatingGuess(items.astype(np.int32), np.clip(found, lowest, highest))


def _possible(m: RealVector, highest: float) -> RealVector:
    """Lengths to try, on either side of u: which side U is on is not known."""
    shortest = max(float(np.abs(m).mean()) / (4 * highest), 1e-5)
    lengths = np.geomspace(shortest, _LONGEST, _GRID)
    return np.concatenate((-lengths, lengths))


def _ratings(m: RealVector, a: RealVector, lengths: RealVector) -> RealVector:
    """Lengths x items: what ratings each length would mean."""
    ratings: RealVector = m[None, :] / lengths[:, None] + lengths[:, None] * a[None, :]
    return ratings


def _along(answer: Answer, regulariser: float) -> tuple[RealVector, RealVector]:
    """Of each row: its part along -u, and how far its item's vector goes along u."""
    V = answer.vectors[answer.update.items].astype(np.float64)
    rows = answer.update.vectors.astype(np.float64) - regulariser * V
    u = _direction(rows)
    own = _own_directions(rows, u)
    m = -(rows * own).sum(axis=1)
    a = (V * own).sum(axis=1)
    return m, a


def _direction(rows: RealVector) -> RealVector:
    """The axis along which all rows lie."""
    _, _, axes = np.linalg.svd(rows, full_matrices=False)
    u: RealVector = axes[0]
    return u


def _own_directions(rows: RealVector, u: RealVector) -> RealVector:
    """Each row's own direction, on the side of u; u itself where a row is too short to point anywhere."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    side = np.where(rows @ u <= 0, -1.0, 1.0)[:, None]
    clear = lengths > 1e-3 * lengths.max(initial=1e-12)
    own: RealVector = np.where(clear, side * rows / np.maximum(lengths, 1e-12), u)
    return own
