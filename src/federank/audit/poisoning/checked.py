"""Frugal's own recipe where only sums are read, and of each message that it is no louder than it may be.

Honest messages are clipped to a length C. A liar may send any numbers, as long as their norm passes the check
(protocol/sums/norm_check/): 2.2 C. So it is bound to no history, and puts its norm where it counts:

    loud        all of it into the target's row, towards what most people like (sabotage: out of the most liked rows)
    adaptive    the same, half of it into how many people seem to have the item, so that its row may be as long
    twin        says of the target what is true of the most popular item, as far as the norm reaches: the sum is that
                of an honest federation in which both are liked, and no bound on sums can tell it from one
    histories   what the protocol gives for a made-up history, scaled up to the norm that passes
    noise       random numbers everywhere

private.py has the same for the recipe of sums with noise.
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
    sums = SummedMessages(strengths.T @ weighted, vectors.T @ weighted, world.people)
    if not world.liars or settings.attack == "histories":
        return sums
    norm = world.liars * loudest
    if settings.attack == "noise":
        return _with_noise(world, settings, round_number, norm, sums)
    if settings.attack == "twin":
        everything = sums.pulls + told @ sums.squares[:-1]
        return sums._replace(pulls=pretend(sums.pulls, everything, world, norm))
    common = tastes[: world.honest].mean(axis=0)
    towards = common / max(float(np.linalg.norm(common)), 1e-12)
    part = np.sqrt(0.5) if (settings.attack, settings.aim) == ("adaptive", "push") else 1.0
    pushed = push(np.zeros_like(sums.pulls[:, :-1]), world, settings, part * norm * towards)
    pulls = sums.pulls + np.column_stack((pushed, np.zeros(world.n_items)))
    pulls[world.target, -1] += np.sqrt(1 - part**2) * norm
    return sums._replace(pulls=pulls)


def push(pulls: RealMatrix, world: World, settings: PoisonSettings, pull: RealMatrix) -> RealMatrix:
    """The sums with a pull on the target's row, or for sabotage, of the same norm, on what is liked most, backwards."""
    pushed = pulls.copy()
    if settings.aim == "push":
        pushed[world.target] += pull
        return pushed
    liked = np.argsort(-world.popularity, kind="stable")[:LIKED]
    pushed[liked] -= pull / np.sqrt(len(liked))
    return pushed


def pretend(pulls: RealMatrix, everything: RealMatrix, world: World, norm: float) -> RealMatrix:
    """The sums in which the target seems to be what the most popular item is, as far as this norm reaches."""
    missing = everything[int(np.argmax(world.popularity))] - everything[world.target]
    pretended = pulls.copy()
    pretended[world.target] += missing * min(1.0, norm / max(float(np.linalg.norm(missing)), 1e-12))
    return pretended


def _with_noise(
    world: World, settings: PoisonSettings, round_number: int, norm: float, sums: SummedMessages
) -> SummedMessages:
    """Random numbers everywhere: norms of independent directions add up like a walk."""
    rng = np.random.default_rng([settings.seed, round_number, 5])
    pulls, squares, messages = sums
    each = norm / np.sqrt(world.liars * (pulls.size + squares.size))
    noise = rng.normal(size=squares.shape) * each
    return SummedMessages(pulls + rng.normal(size=pulls.shape) * each, squares + (noise + noise.T) / 2, messages)
