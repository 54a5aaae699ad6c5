"""Bounds for whoever reads only sums: no row that people cannot have made, and no item that nearly everybody is shown.

A check of norms (protocol/sums/norm_check/) bounds how loud one device is, not where it puts its voice: a history has
many items, and a liar shouts into one row. So the server that folds a sum bounds it twice, by functions of the sum and
of the model alone, which anybody can compute again:

1. `bound_rows`: a row of the sum is no longer than the people who seem to have the item can make it
   (Frugal's own recipe, whose sums tell how many those are);
2. `hold_back`: from the model itself follows how people's vectors lie, x with mean b and covariance E, so that an
   item of vector y has scores of mean y'b and variance y'E y, and a share of people whose score is above t:

       shown_i = Phi((y_i'b - t) / sqrt(y_i'E y_i)),        t such that sum of min(shown_i, most) = 10: full lists

   The vector of an item that would be shown to more than `most` of all people is shortened until it is not.

Where a model is V diag(sqrt(sigma - lambda)) with V'DV = I, what people's vectors add up to is Y'DY again: sum of
a x x' = Y'DY. So both moments follow from the model, its weights, and how many people have each item.

An item that is liked by many stays among the first; a row that is pushed gets as far as those, and no farther. What
it stops, what not and why no bound on sums can stop more is measured (docs/operating.md). A catalogue of fewer than
`LEAST_ITEMS` is left alone: its lists of ten show everything to many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank.models.products import tall_product, weighted_gram
from federank.protocol.squares.server_steps import SummedMessages

LIST = 10
"""Items that people are shown at a time."""
LEAST_ITEMS = 200
"""Below this many items nothing is bounded."""
ROW_QUANTILE = 0.95
"""Rows of a sum may be as long, for each person who has the item, as so many of the rows of well-known items are."""
LENGTH_QUANTILE = 0.9
"""So many vectors are shorter than one is ever made."""
POPULAR_PART = 0.1
"""Sums with noise: the part of a history's length that lies in the direction of popularity; .05 to .17 as measured."""
USUAL_SPECTRAL, USUAL_PRIVATE, USUAL_JOINED = 0.15, 0.2, 0.3
"""To how large a share of people an item may be shown: what costs at most 2 % of P@10 with nobody lying. Under much
noise lists are alike, and so the best items shown to more."""
_HALVINGS = 60
_LITTLE = 1e-15


class Tastes(NamedTuple):
    """How people's vectors lie, as far as a model tells."""

    mean: RealVector
    covariance: RealMatrix


def bound_rows(sums: SummedMessages, told: FloatMatrix, threads: int = 1) -> SummedMessages:
    """No row is longer than the people who seem to have the item can make it, and nobody has an item more than once.

    The last column of S + Y H says how many people have each item, each with their weight (server_steps.py). What a row
    may have for each of them is what rows of the better known half of the catalogue have.
    """
    if len(told) < LEAST_ITEMS or len(sums.pulls) != len(told):
        return sums
    seen = tall_product(told, sums.squares[:-1], threads)
    products = sums.pulls + seen
    people = np.clip(products[:, -1], 0.0, max(float(sums.squares[-1, -1]), 0.0))
    lengths = np.sqrt(np.einsum("ij,ij->i", products[:, :-1], products[:, :-1]))
    known = (people > 0) & (people >= np.median(people))
    if not known.any():
        return sums
    most = people * np.quantile(lengths[known] / people[known], ROW_QUANTILE)
    kept = np.where(lengths > most, most / np.maximum(lengths, _LITTLE), 1.0)
    bounded = np.column_stack((products[:, :-1] * kept[:, None], people))
    return sums._replace(pulls=bounded - seen)


def spectral_tastes(
    vectors: FloatMatrix, weights: FloatVector, regulariser: float, having: RealVector, weight: float, threads: int = 1
) -> Tastes:
    """People's vectors under a model of Frugal's own recipe: `having` is the share of people who have each item, and
    `weight` what all people weigh together."""
    placed = vectors.astype(np.float64)
    gram = weighted_gram(placed, weights, threads)
    sides = gram + regulariser * np.eye(len(gram))
    mean: RealVector = np.linalg.solve(sides, placed.T @ (weights * np.maximum(having, 0.0))).astype(np.float64)
    return Tastes(mean, gram / weight - np.outer(mean, mean))


def private_tastes(vectors: FloatMatrix, weights: FloatVector, threads: int = 1) -> Tastes:
    """The same under a model of sums with noise, Y = D^-1 [U sqrt(f / (1 - f)), q], a history being of length 1.

    With f = 1 - lambda / sigma the vector of a person with history c is sqrt(f (1 - f)) U'c, and c has the mean square
    sigma^2 in a direction: all of them together are what popularity leaves. Of popularity half is counted
    (private/fold.py).
    """
    gram = weighted_gram(vectors.astype(np.float64), weights, threads)
    tasted = np.diag(gram)[:-1]  # f / (1 - f), so that sigma = lambda (1 + f / (1 - f))
    unit = (1 - POPULAR_PART) / float(((1 + tasted) ** 2).sum())
    mean = np.zeros(len(gram))
    mean[-1] = np.sqrt(POPULAR_PART) / 2
    return Tastes(mean, np.diag(np.append(unit * tasted, 0.0)))


def usual_length(vectors: FloatMatrix) -> float:
    """The length that most vectors stay below: no vector of Frugal's own recipe need be held back to less.

    Liars who turn many well-liked rows around make a model look as if people lay far apart in that direction, so that
    all that they like would be shortened to nothing.
    """
    return float(np.quantile(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), LENGTH_QUANTILE))


def hold_back(
    vectors: FloatMatrix, tastes: Tastes, most: float, threads: int = 1, *, least: float = 0.0
) -> FloatMatrix:
    """The vectors, with those shortened that would be shown to a larger share of people than `most`.

    None is shortened below the length `least`.
    """
    from scipy.special import ndtr, ndtri  # a server that bounds nothing need not load it

    if most >= 1 or len(vectors) < LEAST_ITEMS or len(vectors) * most < 2 * LIST:
        return vectors
    means = tall_product(vectors, tastes.mean[:, None], threads)[:, 0]
    turned = tall_product(vectors, tastes.covariance, threads)
    spreads = np.sqrt(np.maximum(np.einsum("ij,ij->i", turned, vectors), _LITTLE))
    low, high = float(means.min()), float((means + 10 * spreads).max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_low = float(np.minimum(ndtr((means - middle) / spreads), most).sum()) > LIST
        low, high = (middle, high) if is_low else (low, middle)
    # Phi((s m - t) / (s d)) = most where s (m - d Phi^-1(most)) = t: a vector s times as long has s times the scores.
    reach = means - spreads * float(ndtri(most))
    if high <= 0:
        return vectors
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    enough = np.minimum(least / np.maximum(lengths, _LITTLE), 1.0)
    kept = np.where(reach > high, np.maximum(high / np.maximum(reach, _LITTLE), enough), 1.0)
    held: FloatMatrix = (vectors * kept[:, None]).astype(np.float32)
    return held
