"""What the server does with the two sums of a round: three ways, each a function of sums and of its own memory.

The sums are S = sum of a_u w_u x_u' (items x factors) and H = sum of a_u x_u x_u' (factors x factors); a constant 1 at
the end of every x_u adds a column to S from which the number of users n_i of each item follows.

**spectral** (where alpha = 0, the default). With Y as it was sent, A = S + Y H = P'X: what everyone's items have in
common, seen through Y. A round is so a step of subspace iteration on C = P'P, and C itself is known inside the span by
Nystrom's formula, C ~ A H^-1 A'. Items weigh d_i = n_i^-popularity (1 - 1/n_i): what one user alone has says nothing
about anyone else, and what everyone has says little. With C = V diag(sigma^2) V' and V'DV = I, the solution of the
whole problem in that span follows at once:

    lambda = shrinkage x sigma_F        Y = V diag(sqrt(sigma - lambda))

so a user's scores become V (1 - lambda / sigma) V'D p. Alternating solves reach the same, but creep there. A cohort's
C is added to what is known of the others'; once everyone has spoken, what is known fades as much as is added.

**solve**: Y + damping (S - lambda Y)(H + lambda I)^-1, the step of alternating least squares; also for alpha > 0, where
damping below 1 makes up for H not knowing of confidences. A cohort's sums are scaled up to everyone, and averaged in:
H <- (1 - b) H + b h, and damping x b of the way, with b = max(1 / t, 1.5 / cohorts) at the t-th cohort.

**adam** (federation/adam.py): a step against the gradient -2 S + 2 lambda Y, as FCF published it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from federank._numerics.arrays import FloatMatrix, FloatVector, RealMatrix, RealVector
from federank._numerics.topn import tall_product, weighted_gram
from federank.errors import Diverged
from federank.federation.defences import Defences
from federank.methods.frugal.settings import FrugalRecipe

_NOTHING = 1e-9
LEAST = 0.01
"""Where lambda follows the data, no direction falls below this part of the smallest singular value: one that is lost
would be in no later message."""


class SummedMessages(NamedTuple):
    """All that the server takes from a round."""

    residuals: RealMatrix  # S for every item, and the column of the constant 1
    squares: RealMatrix  # H, with the row and column of the constant 1
    messages: int


class Spectrum(NamedTuple):
    """C = P'P as far as it is known: V diag(sigma^2) V'."""

    vectors: RealMatrix  # V, items x factors; columns of zeros where less is known
    singular_values: RealVector  # sigma, descending


def spectrum_of(products: RealMatrix, squares: RealMatrix, threads: int = 1) -> RealMatrix:
    """W with W W' = A H^-1 A', Nystrom's formula; directions in which no one has anything are left out."""
    values, directions = np.linalg.eigh(squares)
    kept = values > _NOTHING * max(values[-1], 0.0)
    if not kept.any():
        return np.zeros_like(products)
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return tall_product(products, directions * scale, threads)


def item_weights(counts: RealVector, popularity: float, received: float = 1.0) -> FloatVector:
    """How much items count that this many users have: d, 1 for items of mean popularity that many share.

    What one user alone has weighs nothing, or a little less than the rest where only a share of users was `received`.
    """
    if popularity == 0:
        return np.ones(len(counts), dtype=np.float32)
    known = np.maximum(counts, 1.0)
    weights: FloatVector = ((known / known.mean()) ** -popularity * (1 - received / known)).astype(np.float32)
    return weights


def strongest(sketch: RealMatrix, weights: FloatVector, factors: int, threads: int = 1) -> Spectrum:
    """The largest singular values of a sketch whose items have weights, and their left vectors: V'DV = I."""
    values, directions = np.linalg.eigh(weighted_gram(sketch, weights, threads))
    values, directions = values[::-1][:factors], directions[:, ::-1][:, :factors]
    kept = values > _NOTHING * max(values[0], 0.0)
    singular = np.sqrt(np.where(kept, values, 0.0))
    scale = np.where(kept, 1.0 / np.where(kept, singular, 1.0), 0.0)
    return Spectrum(tall_product(sketch, directions * scale, threads), singular)


def faded(received: float, now: int, all_users: int) -> float:
    """How much is kept of what is known: all until everyone has spoken; then those who speak again replace it."""
    return 1.0 if not received or received + now <= all_users else max(0.0, all_users - now) / received


def balanced(spectrum: Spectrum, shrinkage: float, regulariser: float) -> tuple[FloatMatrix, float]:
    """The item vectors that solve the whole problem in this span, and the lambda that they belong to."""
    sigma = spectrum.singular_values
    if regulariser < 0:
        smallest = sigma[sigma > 0][-1]
        regularisation = shrinkage * smallest
        left = np.where(sigma > 0, np.maximum(sigma - regularisation, LEAST * smallest), 0.0)
    else:
        regularisation, left = regulariser, np.maximum(sigma - regulariser, 0.0)
        if not left.any():
            raise Diverged(
                f"regulariser is {regulariser:g}, and no singular value of the sums is above {sigma[0]:.4g}: every "
                "item vector would be zero. A smaller regulariser is needed; left out, it follows the data."
            )
    vectors = spectrum.vectors * np.sqrt(left)
    return vectors.astype(np.float32), float(regularisation)


def smallest_singular_value(recipe: FrugalRecipe, gram: RealMatrix, squares: RealMatrix, regulariser: float) -> float:
    """sigma_F of everyone's items inside the span of Y, from H and Y'Y alone (Rayleigh and Ritz).

    x = (Y'Y + lambda I)^-1 (1 + alpha) Y'p where own items weigh little, so H gives Y'P'PY back.
    """
    back = (float(recipe.objective.unobserved) * gram + regulariser * np.eye(len(gram))) / float(recipe.objective.liked)
    values, directions = np.linalg.eigh(gram)
    kept = values > _NOTHING * max(values[-1], 0.0)
    half = directions[:, kept] / np.sqrt(values[kept])
    inside = np.linalg.eigvalsh(half.T @ back @ squares @ back @ half)
    # A few users span few directions: what is zero in the others is not small, but unknown.
    known = inside[inside > _NOTHING * max(inside[-1], 0.0)] if len(inside) else inside
    return float(np.sqrt(known[0])) if len(known) else 0.0


def solved(
    recipe: FrugalRecipe,
    vectors: FloatMatrix,
    residuals: RealMatrix,
    curvature: RealMatrix,
    regulariser: float,
    part: float,
) -> FloatMatrix:
    """One step of alternating least squares for these items, this part of the way."""
    sides = curvature + regulariser * np.eye(recipe.factors)
    try:
        steps = np.linalg.solve(sides, (residuals - regulariser * vectors).T).T
    except np.linalg.LinAlgError as reason:
        raise Diverged(
            "The sum of the devices' vectors cannot be solved from: it is singular. A regulariser above 0 is needed."
        ) from reason
    moved: FloatMatrix = (vectors + part * steps).astype(np.float32)
    return moved


# Bounds for anyone who reads only sums: no row that users cannot have made, and no item that nearly everyone is shown.


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

    The last column of S + Y H says how many users have each item, each with their weight (server_steps.py). What a row
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
