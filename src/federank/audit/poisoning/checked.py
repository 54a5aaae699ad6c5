"""Frugal where only sums are read, and of each message that it is no louder than it may be (protocol/sums/norm_check/).

Honest messages are clipped to a length C. A liar may send any numbers, as long as their norm passes: 2.2 C. So it is
bound to no history, and puts its norm where it counts:

    loud        all of it into the target's row, towards what most people like (sabotage: out of the most liked rows)
    adaptive    the same, half of it into how many people seem to have the item, so that its row may be as long
    histories   what the protocol gives for a made-up history, scaled up to the norm that passes
    noise       random numbers everywhere

A server that reads only the sum can still bound its rows: nobody's vector is long, so no row of the sum is longer than
the people who have the item make it. What that stops and what not is measured (docs/operating.md).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from federank.arrays import FloatMatrix, RealMatrix
from federank.audit.poisoning.world import PoisonSettings, World
from federank.protocol.squares.recipes import SquaresRecipe
from federank.protocol.squares.server_steps import SummedMessages
from federank.protocol.sums.norm_check.parameters import passing_norm

LIKED = 50
"""So many of the most liked items a saboteur pulls down."""
ROW_QUANTILE = 0.95
"""Rows of a sum may be as long, for each person who has the item, as so many of the rows of well-known items are."""


def checked_sums(
    world: World,
    settings: PoisonSettings,
    recipe: SquaresRecipe,
    round_number: int,
    told: FloatMatrix,
    tastes: RealMatrix,
    has: csr_array,
) -> SummedMessages:
    """The sum of a round's messages, honest and not."""
    strengths = has.toarray() - tastes @ told.T
    lengths = 1 + np.einsum("ij,ij->i", tastes, tastes)
    norms = np.sqrt(lengths * (np.einsum("ij,ij->i", strengths, strengths) + lengths))
    scales = np.maximum(world.profiles.sizes, 1).astype(np.float64) ** -recipe.activity
    scales = np.minimum(scales, settings.clip / norms)
    loudest, liars = passing_norm() * settings.clip, slice(world.honest, world.people)
    scales[liars] = loudest / norms[liars] if settings.attack == "histories" else 0.0
    vectors = np.column_stack((tastes, np.ones(world.people)))
    weighted = vectors * scales[:, None]
    pulls, squares = strengths.T @ weighted, vectors.T @ weighted
    if world.liars and settings.attack != "histories":
        common = tastes[: world.honest].mean(axis=0)
        pulls, squares = _lie(world, settings, round_number, common, world.liars * loudest, pulls, squares)
    return SummedMessages(pulls, squares, world.people)


def _lie(
    world: World,
    settings: PoisonSettings,
    round_number: int,
    common: RealMatrix,
    norm: float,
    pulls: RealMatrix,
    squares: RealMatrix,
) -> tuple[RealMatrix, RealMatrix]:
    """The sums with what all liars send, whose norms add up to `norm` where they pull the same way."""
    towards = common / max(float(np.linalg.norm(common)), 1e-12)
    if settings.attack == "noise":  # norms of independent directions add up like a walk
        rng = np.random.default_rng([settings.seed, round_number, 5])
        each = norm / np.sqrt(world.liars * (pulls.size + squares.size))
        noise = rng.normal(size=squares.shape) * each
        return pulls + rng.normal(size=pulls.shape) * each, squares + (noise + noise.T) / 2
    pulls = pulls.copy()
    if settings.aim == "sabotage":
        liked = np.argsort(-world.popularity, kind="stable")[:LIKED]
        pulls[liked, :-1] -= norm / np.sqrt(len(liked)) * towards
        return pulls, squares
    part = np.sqrt(0.5) if settings.attack == "adaptive" else 1.0
    pulls[world.target, :-1] += part * norm * towards
    pulls[world.target, -1] += np.sqrt(1 - part**2) * norm
    return pulls, squares


def bound_rows(sums: SummedMessages, told: FloatMatrix) -> SummedMessages:
    """No row is longer than the people who seem to have the item can make it, and nobody has an item more than once.

    The last column of S + Y H says how many people have each item, each with their weight
    (protocol/squares/server_steps.py). What a row
    may have for each of them is what rows of the better known half of the catalogue have.
    """
    products = sums.pulls + told @ sums.squares[:-1]
    people = np.clip(products[:, -1], 0.0, max(float(sums.squares[-1, -1]), 0.0))
    lengths = np.sqrt(np.einsum("ij,ij->i", products[:, :-1], products[:, :-1]))
    known = (people > 0) & (people >= np.median(people))
    if not known.any():
        return sums
    most = people * np.quantile(lengths[known] / people[known], ROW_QUANTILE)
    kept = np.where(lengths > most, most / np.maximum(lengths, 1e-12), 1.0)
    bounded = np.column_stack((products[:, :-1] * kept[:, None], people))
    return SummedMessages(bounded - told @ sums.squares[:-1], sums.squares, sums.messages)
