"""Frugal with liars: rounds of few messages, summed as a server sums them, some of them made up.

With alpha = 0 a message says w = p - Y x: the history itself, seen through the model. So all honest messages of a
round are two small matrix products. Liars send:

    loud        a message at the largest norm that pulls the target towards what most people like
    noise       a message of random numbers at the largest norm
    histories   what the protocol gives for a made-up history: the target beside what many like
    adaptive    the same with a short history, which counts the more

A server that reads single messages knows the first two for lies: no history gives them
(protocol/squares/plausibility.py). One that has only sums takes them. Where a norm is checked, checked.py makes them.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from federank.arrays import FloatMatrix, RealMatrix
from federank.audit.poisoning.checked import checked_sums
from federank.audit.poisoning.measure import Measured, measured
from federank.audit.poisoning.private import play_private
from federank.audit.poisoning.world import PoisonSettings, World
from federank.data.interactions import Profiles
from federank.models.squares import gram_matrix
from federank.protocol.defences import Defences, Rows, defend
from federank.protocol.frugal import FrugalSettings
from federank.protocol.squares.aggregation import SquaresShared, first_shared, fold
from federank.protocol.squares.distribution import published
from federank.protocol.squares.recipes import SquaresRecipe, squares_recipe
from federank.protocol.squares.server_steps import SummedMessages
from federank.protocol.squares.shown import USUAL_SPECTRAL, bound_rows, hold_back, spectral_tastes, usual_length


def play_squares(world: World, settings: PoisonSettings, defences: Defences | None) -> Measured:
    """A whole federation of few messages; without `defences` the server folds in whatever comes."""
    has = _matrix(world.profiles, world.n_items)
    if settings.recipe == "private":
        return play_private(world, settings, has, is_defended=defences is not None)
    method = FrugalSettings(seed=settings.seed)
    recipe = squares_recipe(method, world.profiles.sizes, world.n_items)
    shared = first_shared(recipe, method.initial_scale)
    is_bounded = settings.sees == "checked" and defences is not None
    for _ in range(recipe.rounds):
        told = published(recipe, shared.vectors)
        before = Rows(shared.vectors)
        if settings.sees == "checked":
            tastes = _solve(recipe, shared, told, has)
            sums = checked_sums(world, settings, recipe, shared.round_number, told, tastes, has)
        else:
            sums = _sums(world, settings, recipe, shared, told, has, defences is not None)
        if is_bounded:
            _fold_bounded(recipe, shared, sums, settings.bounds)
            continue
        fold(recipe, shared, sums)
        if defences is not None:
            shared.vectors = defend(defences, before, Rows(shared.vectors)).rows.vectors
    told = published(recipe, shared.vectors)
    honest = _solve(recipe, shared, told, has)[: world.honest]
    return measured(world, (honest @ told.T).astype(np.float32))


def _fold_bounded(recipe: SquaresRecipe, shared: SquaresShared, sums: SummedMessages, bounds: str) -> None:
    """A fold with the bounds that a federation of sums has by default, or with one of the two alone."""
    if bounds != "caps":
        sums = bound_rows(sums, published(recipe, shared.vectors))
    fold(recipe, shared, sums)
    if bounds != "rows":
        weight = float(sums.squares[-1, -1]) / sums.messages * shared.heard
        model, having = (shared.vectors, shared.weights, shared.regulariser), shared.counts / shared.heard
        tastes, least = spectral_tastes(*model, having, weight), usual_length(shared.vectors)
        shared.vectors = hold_back(shared.vectors, tastes, USUAL_SPECTRAL, least=least)


def _sums(
    world: World,
    settings: PoisonSettings,
    recipe: SquaresRecipe,
    shared: SquaresShared,
    told: FloatMatrix,
    has: csr_array,
    defended: bool,
) -> SummedMessages:
    tastes = _solve(recipe, shared, told, has)
    scales = np.maximum(world.profiles.sizes, 1).astype(np.float64) ** -recipe.activity
    strengths = has.toarray() - tastes @ told.T
    count = world.people
    liars = slice(world.honest, world.people)
    if settings.attack in ("loud", "noise") and defended and settings.sees == "updates":
        strengths[liars], scales[liars], count = 0.0, 0.0, world.honest  # refused: no history gives such a message
    elif world.liars and settings.attack in ("loud", "noise"):
        rng = np.random.default_rng([settings.seed, shared.round_number, 5])
        if settings.attack == "loud":
            strengths[liars] = 0.0
            strengths[liars, world.target] = 1.0 if settings.aim == "push" else -1.0
            tastes[liars] = tastes[: world.honest].mean(axis=0)
        else:
            strengths[liars] = rng.normal(size=strengths[liars].shape)
            tastes[liars] = rng.normal(size=tastes[liars].shape)
        norms = np.array([_norm(strengths[n], tastes[n]) for n in range(world.honest, world.people)])
        # Its scale must be 1 at most, so the numbers themselves are as large as the norm allows.
        lengths = 1 + np.einsum("ij,ij->i", tastes[liars], tastes[liars])
        pulled = np.einsum("ij,ij->i", strengths[liars], strengths[liars])
        room = np.maximum(settings.most_norm**2 / lengths - lengths, 0.0)
        strengths[liars] *= np.sqrt(room / np.maximum(pulled, 1e-12))[:, None]
        scales[liars] = np.minimum(1.0, settings.most_norm / np.maximum(norms, 1.0)) if not room.any() else 1.0
    vectors = np.column_stack((tastes, np.ones(world.people)))
    weighted = vectors * scales[:, None]
    return SummedMessages(strengths.T @ weighted, vectors.T @ weighted, count)


def _solve(recipe: SquaresRecipe, shared: SquaresShared, told: FloatMatrix, has: csr_array) -> RealMatrix:
    """Everybody's own vector, where all confidences are alike: x = (Y'DY + lambda I)^-1 Y'D p."""
    gram = gram_matrix(np.ascontiguousarray(told), shared.weights)
    sides = gram + shared.regulariser * np.eye(recipe.factors)
    solved: RealMatrix = np.linalg.solve(sides, (has @ (told * shared.weights[:, None])).T.astype(np.float64)).T
    return solved


def _norm(strengths: RealMatrix, vector: RealMatrix) -> float:
    length = 1 + float(vector @ vector)
    return float(np.sqrt(length * (float(strengths @ strengths) + length)))


def _matrix(profiles: Profiles, n_items: int) -> csr_array:
    ones = np.ones(len(profiles.items))
    return csr_array((ones, profiles.items, profiles.starts), shape=(len(profiles.sizes), n_items))
