"""Bounds for anyone who reads only sums: no row that users cannot have made, no item that nearly everyone is shown.

    bound_rows      rows of a sum are as long as the users who seem to have the item can make them
    hold_back       the exposure cap: vectors are shortened that would be shown to too large a share of users
    without_jumps   items whose predicted audience jumps within one version are hidden

The last two predict from how users' vectors are spread under the model (`Tastes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank._numerics.topn import tall_product, weighted_gram
from federank.federation.defences import Defences
from federank.methods.frugal.records import SummedMessages

LIST = 10
"""Items that users are shown at a time."""
LEAST_ITEMS = 200
"""Below this many items nothing is bounded."""
ROW_QUANTILE = 0.95
"""Rows of a sum may be as long, for each user who has the item, as this many of the rows of well-known items are."""
LENGTH_QUANTILE = 0.9
"""This many vectors are shorter than one is ever made."""
POPULAR_PART = 0.1
"""Sums with noise: the part of a history's length that lies in the direction of popularity; .05 to .17 as measured."""
USUAL_SPECTRAL, USUAL_PRIVATE, USUAL_JOINED = 0.15, 0.2, 0.3
"""To how large a share of users an item may be shown: costs at most 2 % of P@10 without malicious clients. Under much
noise lists are alike, and so the best items shown to more."""
SMALL_AUDIENCE, LARGE_AUDIENCE = 0.01, 0.05
FEWEST_UPLOADS = 100
"""Fewer uploads cannot show whether 1 % of all users would see an item: no jump is looked for in them."""
CALM_ROUNDS = 5
"""In a season's first server steps genuine items jump too: the model is young, and the operator's new items are new."""
_HALVINGS = 60
_LITTLE = 1e-15


class Tastes(NamedTuple):
    """How users' vectors are spread, as far as the model shows."""

    mean: RealVector
    covariance: RealMatrix


def bound_rows(sums: SummedMessages, sent_vectors: FloatMatrix, threads: int = 1) -> SummedMessages:
    """No row is longer than the users who seem to have the item can make it, and no one has an item more than once.

    The last column of S + Y H says how many users have each item, each with their weight (server_update.py). What a row
    may have for each of them is what rows of the better known half of the catalogue have.
    """
    if len(sent_vectors) < LEAST_ITEMS or len(sums.residuals) != len(sent_vectors):
        return sums
    seen = tall_product(sent_vectors, sums.squares[:-1], threads)
    products = sums.residuals + seen
    people = np.clip(products[:, -1], 0.0, max(float(sums.squares[-1, -1]), 0.0))
    lengths = np.sqrt(np.einsum("ij,ij->i", products[:, :-1], products[:, :-1]))
    known = (people > 0) & (people >= np.median(people))
    if not known.any():
        return sums
    most = people * np.quantile(lengths[known] / people[known], ROW_QUANTILE)
    kept = np.where(lengths > most, most / np.maximum(lengths, _LITTLE), 1.0)
    bounded = np.column_stack((products[:, :-1] * kept[:, None], people))
    return sums._replace(residuals=bounded - seen)


def spectral_tastes(
    vectors: FloatMatrix, weights: FloatVector, regulariser: float, having: RealVector, weight: float, threads: int = 1
) -> Tastes:
    """Users' vectors under a model of Frugal's own recipe: `having` is the share of users who have each item, and
    `weight` what all users weigh together."""
    placed = vectors.astype(np.float64)
    gram = weighted_gram(placed, weights, threads)
    sides = gram + regulariser * np.eye(len(gram))
    mean: RealVector = np.linalg.solve(sides, placed.T @ (weights * np.maximum(having, 0.0))).astype(np.float64)
    return Tastes(mean, gram / weight - np.outer(mean, mean))


def private_tastes(vectors: FloatMatrix, weights: FloatVector, threads: int = 1) -> Tastes:
    """The same under a model of sums with noise, Y = D^-1 [U sqrt(f / (1 - f)), q], a history being of length 1.

    With f = 1 - lambda / sigma the vector of a user with history c is sqrt(f (1 - f)) U'c, and c has the mean square
    sigma^2 in a direction: all of them together are what popularity leaves. Of popularity half is counted
    (private_server.py).
    """
    gram = weighted_gram(vectors.astype(np.float64), weights, threads)
    tasted = np.diag(gram)[:-1]  # f / (1 - f), so that sigma = lambda (1 + f / (1 - f))
    unit = (1 - POPULAR_PART) / float(((1 + tasted) ** 2).sum())
    mean = np.zeros(len(gram))
    mean[-1] = np.sqrt(POPULAR_PART) / 2
    return Tastes(mean, np.diag(np.append(unit * tasted, 0.0)))


def usual_length(vectors: FloatMatrix) -> float:
    """The length that most vectors stay below: no vector of Frugal's own recipe need be held back to less.

    Malicious clients who turn many well-liked rows around make a model look as if users lay far apart in that
    direction, so that
    all that they like would be shortened to nothing.
    """
    return float(np.quantile(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), LENGTH_QUANTILE))


def predicted_audience(vectors: FloatMatrix, tastes: Tastes) -> RealVector:
    """The share of users who are shown each item, as far as the model shows."""
    from scipy.special import ndtr

    means, spreads, least = _shown(vectors, tastes, 1.0, 1)
    audience: RealVector = ndtr((means - least) / spreads)
    return audience


def tastes_of_uploads(squares: RealMatrix) -> Tastes:
    """The same as this round's uploads show it, under the model that they were made from."""
    weight = max(float(squares[-1, -1]), _LITTLE)
    mean: RealVector = squares[:-1, -1] / weight
    return Tastes(mean, squares[:-1, :-1] / weight - np.outer(mean, mean))


def without_jumps(sent_vectors: FloatMatrix, before: Tastes, vectors: FloatMatrix, now: Tastes) -> FloatMatrix:
    """The vectors, with zeros for items whose predicted audience went from below 1 % to above 5 % in this version.

    Clients do not show an item without a vector, so its audience is zero in the next version: it stays hidden until
    fewer than 5 % would see it, or until another season begins. What uploads tell of it is not changed by that.
    """
    if len(vectors) < LEAST_ITEMS:
        return vectors
    has_jumped = (predicted_audience(sent_vectors, before) < SMALL_AUDIENCE) & (
        predicted_audience(vectors, now) > LARGE_AUDIENCE
    )
    kept: FloatMatrix = np.where(has_jumped[:, None], np.float32(0), vectors)
    return kept


def _shown(vectors: FloatMatrix, tastes: Tastes, most: float, threads: int) -> tuple[RealVector, RealVector, float]:
    """Mean and deviation of each item's scores, and the score from which an item is among those that are shown."""
    means = tall_product(vectors, tastes.mean[:, None], threads)[:, 0]
    turned = tall_product(vectors, tastes.covariance, threads)
    spreads = np.sqrt(np.maximum(np.einsum("ij,ij->i", turned, vectors), _LITTLE))
    return means, spreads, shown_from(means, spreads, most)


def shown_from(means: RealVector, spreads: RealVector, most: float) -> float:
    """The score from which an item is among those that are shown, by the mean and deviation of each item's scores."""
    from scipy.special import ndtr

    low, high = float(means.min()), float((means + 10 * spreads).max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_low = float(np.minimum(ndtr((means - middle) / spreads), most).sum()) > LIST
        low, high = (middle, high) if is_low else (low, middle)
    return high


def hold_back(
    vectors: FloatMatrix, tastes: Tastes, most: float, threads: int = 1, *, least: float = 0.0
) -> FloatMatrix:
    """The vectors, with those shortened that would be shown to a larger share of users than `most`.

    None is shortened below the length `least`.
    """
    from scipy.special import ndtri  # a server that bounds nothing need not load it

    if most >= 1 or len(vectors) < LEAST_ITEMS or len(vectors) * most < 2 * LIST:
        return vectors
    means, spreads, high = _shown(vectors, tastes, most, threads)
    # Phi((s m - t) / (s d)) = most where s (m - d Phi^-1(most)) = t: a vector s times as long has s times the scores.
    reach = means - spreads * float(ndtri(most))
    if high <= 0:
        return vectors
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    enough = np.minimum(least / np.maximum(lengths, _LITTLE), 1.0)
    kept = np.where(reach > high, np.maximum(high / np.maximum(reach, _LITTLE), enough), 1.0)
    held: FloatMatrix = (vectors * kept[:, None]).astype(np.float32)
    return held


def capped_items(vectors: FloatMatrix, held: FloatMatrix) -> int:
    """How many items the exposure cap has shortened."""
    return 0 if held is vectors else int((held != vectors).any(axis=1).sum())


FRUGAL_DEFENCES = Defences(row_quantile=0.98, move_quantile=1.0)
"""The server solves for all rows again, perhaps in another basis, so how far they move means nothing. Lengths say how
popular items are, so they are capped late."""
